/**
 * Flood of conclusions with good cookies and bad tokens.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { issueStreamKey } from '../../../src/auth/stream-key.ts'
import type { Target } from '../target.ts'
import { flood, type Flood } from './handshakes.ts'

/** @param options  default: 160,000 conclusions at 8000 a second, from 3 networks */
export async function floodConclusions(
  target: Target,
  signal: AbortSignal,
  options: Partial<Flood> = {},
): ReturnType<typeof flood> {
  const { streamKey } = await issueStreamKey({
    streamId: 'studio',
    secret: 'not the secret of this service',
    now: new Date(),
  })
  const unsigned = streamKey.slice(0, streamKey.lastIndexOf('.') + 1)
  return flood(target, signal, {
    networks: 3,
    perSec: 8000,
    conclusions: 160_000,
    subnet: 66,
    streamId: () => unsigned + randomBytes(32).toString('base64url'),
    ...options,
  })
}
