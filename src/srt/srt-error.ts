/**
 * Errors of listeners and callers for their users.
 *
 * @module
 */
import { RejectCode } from './wire/reject-code.ts'

/**
 * `SRT_REJECTED`, `SRT_TIMEOUT`: the listener refused the call, or did not answer. `PASSPHRASE_WRONG`,
 * `ENCRYPTION_MISSING`, `ENCRYPTION_UNEXPECTED`: the encryption of a caller is not as the listener requires it.
 * `ADDRESS_IN_USE`: another socket has the port.
 */
export type SrtErrorCode =
  | 'SRT_REJECTED'
  | 'SRT_TIMEOUT'
  | 'PASSPHRASE_WRONG'
  | 'ENCRYPTION_MISSING'
  | 'ENCRYPTION_UNEXPECTED'
  | 'ADDRESS_IN_USE'

/** `code` is stable; `message` says what is wrong and what is expected, and contains no secrets. */
export class SrtError extends Error {
  readonly code: SrtErrorCode
  /** Reject code that was sent to the caller, or received from the listener; `UNKNOWN` without one. */
  readonly rejectCode: number

  constructor(
    code: SrtErrorCode,
    message: string,
    options: { readonly rejectCode?: number; readonly cause?: unknown } = {},
  ) {
    const { rejectCode = RejectCode.UNKNOWN, ...causes } = options
    super(message, causes)
    this.name = 'SrtError'
    this.code = code
    this.rejectCode = rejectCode
  }
}
