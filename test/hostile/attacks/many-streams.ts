/**
 * Starts streams that no encoder publishes, as an API client without memory would.
 *
 * @module
 */
import { tryApi } from '../../support/service.ts'
import type { Target } from '../target.ts'

const MAX_STREAMS_TRIED = 100_000
const CALLS_AT_ONCE = 16

/** Number of refusals after which the attack stops. */
const MAX_REFUSED = 100

/** @returns how many starts were answered with 200, and how many with anything else */
export async function startManyStreams(target: Target, signal: AbortSignal) {
  const { host, httpPort, hmacSecret } = target
  const url = `http://${host}:${httpPort}`
  const figures = { started: 0, refused: 0 }
  let tried = 0
  const client = async () => {
    while (tried < MAX_STREAMS_TRIED && figures.refused < MAX_REFUSED && !signal.aborted) {
      const { status } = await tryApi(url, 'start-stream', { stream_id: `s${tried++}` }, hmacSecret)
      figures[status === 200 ? 'started' : 'refused']++
    }
  }
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, client))
  return figures
}
