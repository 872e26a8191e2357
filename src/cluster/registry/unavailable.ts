/**
 * Refusal of what needs the registry, for a client to try again.
 *
 * @module
 */
import { MillraceError } from '../../errors.ts'

/**
 * @param cause  why the registry has not answered, or not in time
 * @param message  where it may be another node that has not
 */
export function unavailable(cause?: unknown, message?: string): MillraceError {
  const options = { cause, retryAfterSec: 1, ...(message !== undefined && { message }) }
  return new MillraceError('REGISTRY_UNAVAILABLE', options)
}
