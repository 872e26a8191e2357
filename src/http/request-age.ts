/**
 * The time at which a request was signed, as its body says it: a guard against requests that somebody recorded and sends
 * again. Within the age it is none.
 *
 * @module
 */
import { MillraceError } from '../errors.ts'

/**
 * @param issuedAtSec  field `issued_at` of a body whose signature was good; seconds since 1970
 * @param options.maxAgeSec  `API_MAX_AGE_SEC`; 0: any age
 * @throws {MillraceError} `BODY_INVALID` where it is missing, `REQUEST_EXPIRED` where it is too old or too far ahead
 */
export function checkRequestAge(
  issuedAtSec: number | undefined,
  { maxAgeSec, nowMs }: { readonly maxAgeSec: number; readonly nowMs: number },
): void {
  if (maxAgeSec === 0) return
  if (issuedAtSec === undefined) {
    const message =
      'issued_at is missing: API_MAX_AGE_SEC asks for the time of the request, in seconds since 1970'
    throw new MillraceError('BODY_INVALID', { message })
  }
  const ageSec = nowMs / 1000 - issuedAtSec
  if (Math.abs(ageSec) <= maxAgeSec) return
  const distance = `${Math.round(Math.abs(ageSec))} s in the ${ageSec > 0 ? 'past' : 'future'}`
  const message = `issued_at lies ${distance}: expected at most ${maxAgeSec} s; compare the clocks, and sign each request anew`
  throw new MillraceError('REQUEST_EXPIRED', { message })
}
