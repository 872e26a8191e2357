/**
 * Refusal of what needs the registry, for a client to try again.
 *
 * @module
 */
import { MillraceError } from '../../errors.ts'

/** @param cause  why the registry has not answered, or not in time */
export function unavailable(cause?: unknown): MillraceError {
  return new MillraceError('REGISTRY_UNAVAILABLE', { cause, retryAfterSec: 1 })
}
