/**
 * Waiting for something that a real process or socket will do.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Asks again and again until the answer is neither undefined, null nor false.
 *
 * @throws {Error} that names what was waited for, where it did not come in time
 */
export async function until<T>(
  what: string,
  question: () => T | Promise<T>,
  { timeoutMs = 20_000, everyMs = 25 } = {},
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
