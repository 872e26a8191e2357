/**
 * Time limit of a promise.
 *
 * @module
 */

export class TimeoutError extends Error {}

/**
 * The lateness of the event loop is none of the promise: what has arrived by the time limit is read first.
 *
 * @throws {TimeoutError} after the time limit; the promise may then settle as it likes
 */
export async function withTimeout<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const fail = () => reject(new TimeoutError(`no reply in ${timeoutMs} ms`))
    // A turn of the event loop calls its timers, reads sockets, then calls immediates.
    timer = setTimeout(() => setImmediate(fail), timeoutMs)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
