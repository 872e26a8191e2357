/**
 * Time limits of promises and requests.
 *
 * @module
 */
import { machineTimers, type Timers } from './clock.ts'

export class TimeoutError extends Error {
  override readonly name = 'TimeoutError'
}

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

interface TimeLimit {
  /** Aborted after the limit, with a `TimeoutError`. */
  readonly signal: AbortSignal
  /** Ends the limit: nothing of it is kept. */
  readonly cancel: () => void
}

/**
 * `AbortSignal.timeout` keeps 1.5 KB until the limit, however early a request ends, and in Node 20 one that only
 * `AbortSignal.any` knows is collected as garbage, and never aborts.
 */
export function startTimeLimit(
  timeoutMs: number,
  timers: Pick<Timers, 'sleep'> = machineTimers,
): TimeLimit {
  const [late, cancelled] = [new AbortController(), new AbortController()]
  void timers.sleep(timeoutMs, cancelled.signal).then(
    () => late.abort(new TimeoutError(`no reply in ${timeoutMs} ms`)),
    () => undefined,
  )
  return { signal: late.signal, cancel: () => cancelled.abort() }
}
