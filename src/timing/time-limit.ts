/**
 * Time limit of a promise.
 *
 * @module
 */
import { machineTimers, type Timers } from './clock.ts'

export class TimeoutError extends Error {}

/**
 * The lateness of the event loop is none of the promise, see `Timers.sleep`.
 *
 * @throws {TimeoutError} after the time limit; the promise may then settle as it likes
 */
export async function withTimeout<T>(
  promise: Promise<T>,
  timeoutMs: number,
  timers: Pick<Timers, 'sleep'> = machineTimers,
): Promise<T> {
  const settled = new AbortController()
  const late = timers.sleep(timeoutMs, settled.signal).then(() => {
    throw new TimeoutError(`no reply in ${timeoutMs} ms`)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    settled.abort()
  }
}
