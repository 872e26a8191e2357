/**
 * Replays recorded signed API requests unchanged.
 *
 * @module
 */
import { tryApi } from '../../support/service.ts'
import type { Target } from '../target.ts'

const AGES_SEC = [0, 5, 60, 3600, 86_400]

/** @returns by age of the request in seconds, negative for one from the future: status and code of the answer */
export async function replayRequests(target: Target, signal: AbortSignal) {
  const { host, httpPort, hmacSecret } = target
  const url = `http://${host}:${httpPort}`
  const answers: Record<string, string> = {}
  for (const ageSec of [...AGES_SEC, ...AGES_SEC.map((sec) => -sec)]) {
    if (signal.aborted) break
    const body = { stream_id: 'replayed', issued_at: Date.now() / 1000 - ageSec }
    const reply = await tryApi(url, 'start-stream', body, hmacSecret)
    answers[ageSec] = `${reply.status} ${reply.body.code ?? ''}`.trim()
  }
  return answers
}
