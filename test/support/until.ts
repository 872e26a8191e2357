/**
 * Polling for results of real processes and sockets.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Polls until the result is neither undefined, null nor false.
 *
 * @throws {Error} with the name of the expected result after the timeout
 */
export async function until<T>(
  what: string,
  question: () => T | Promise<T>,
  { timeoutMs = 120_000, everyMs = 25 } = {},
): Promise<Exclude<T, undefined | null | false>> {
  const endsAt = performance.now() + timeoutMs
  for (;;) {
    const answer = await question()
    if (answer !== undefined && answer !== null && answer !== false) {
      return answer as Exclude<T, undefined | null | false>
    }
    if (performance.now() > endsAt) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`)
    await sleep(everyMs)
  }
}
