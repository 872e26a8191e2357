/**
 * Callers with good cookies and bad tokens, far more of them than there are encoders.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { randomBytes } from 'node:crypto'
import { issueStreamKey } from '../../../src/auth/stream-key.ts'
import type { Target } from '../target.ts'
import { Intruder } from './handshakes.ts'

export interface ConclusionFlood {
  /** Of each /24 one address; default 3. */
  readonly networks?: number
  /** By all of them; default 8000. */
  readonly perSec?: number
  /** At most so many in all; default 160,000. */
  readonly conclusions?: number
}

const BURST_MS = 10
/** Who was held up does not make up for it: what floods the kernel's buffer says nothing of the service. */
const MAX_BURST_SEC = 0.05
const COOKIES = 64

/** @returns how many conclusions were sent, and how many answers of each type came back */
export async function floodConclusions(
  target: Target,
  signal: AbortSignal,
  { networks = 3, perSec = 8000, conclusions = 160_000 }: ConclusionFlood = {},
): Promise<{ sent: number; answers: Record<number, number> }> {
  const { streamKey } = await issueStreamKey({
    streamId: 'studio',
    secret: 'not the secret of this service',
    now: new Date(),
  })
  const unsigned = streamKey.slice(0, streamKey.lastIndexOf('.') + 1)
  const intruders = await Promise.all(
    Array.from({ length: networks }, (_, n) => Intruder.open(`127.66.${n + 1}.1`, target)),
  )
  let sent = 0
  try {
    for (const intruder of intruders) {
      for (let socketId = 1; socketId <= COOKIES; socketId++) await intruder.induce(socketId)
    }
    const startMs = performance.now()
    while (sent < conclusions && !signal.aborted) {
      const scheduled = ((performance.now() - startMs) / 1000) * perSec
      const due = Math.min(scheduled, sent + perSec * MAX_BURST_SEC, conclusions)
      while (sent < due) {
        const forgedKey = unsigned + randomBytes(32).toString('base64url')
        intruders[sent % networks]!.conclude(1 + (sent % COOKIES), forgedKey)
        sent++
      }
      await sleep(BURST_MS)
    }
  } finally {
    for (const intruder of intruders) intruder.close()
  }
  const answers: Record<number, number> = {}
  for (const intruder of intruders) {
    for (const [type, count] of Object.entries(intruder.answers)) {
      answers[Number(type)] = (answers[Number(type)] ?? 0) + count
    }
  }
  return { sent, answers }
}
