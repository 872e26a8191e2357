/**
 * Time limit of a promise.
 *
 * @module
 */

export class TimeoutError extends Error {}

/** @throws {TimeoutError} after the time limit; the promise may then settle as it likes */
export async function inTime<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TimeoutError(`no reply in ${timeoutMs} ms`)), timeoutMs)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
