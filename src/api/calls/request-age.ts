/**
 * Age of a request by the time in its signed body. Limits replays of recorded requests to `API_MAX_AGE_SEC`.
 *
 * @module
 */
import { MillraceError } from '../../errors.ts'

/**
 * Checks the age of a request.
 *
 * @param issuedAtSec  field `issued_at` of a verified body, in seconds since 1970
 * @param options.maxAgeSec  `API_MAX_AGE_SEC`; 0: any age
 * @throws {MillraceError} `BODY_INVALID` without the field, `REQUEST_EXPIRED` if it is too far from now, past or future
 */
export function checkRequestAge(
  issuedAtSec: number | undefined,
  { maxAgeSec, nowMs }: { readonly maxAgeSec: number; readonly nowMs: number },
): void {
  if (maxAgeSec === 0) return
  if (issuedAtSec === undefined) {
    const message =
      'issued_at is missing: API_MAX_AGE_SEC requires the time of the request, in seconds since 1970'
    throw new MillraceError('BODY_INVALID', { message })
  }
  const ageSec = nowMs / 1000 - issuedAtSec
  if (Math.abs(ageSec) <= maxAgeSec) return
  const distance = `${Math.round(Math.abs(ageSec))} s in the ${ageSec > 0 ? 'past' : 'future'}`
  const message = `issued_at is ${distance}: expected at most ${maxAgeSec} s; compare the clocks, and sign each request anew`
  throw new MillraceError('REQUEST_EXPIRED', { message })
}
