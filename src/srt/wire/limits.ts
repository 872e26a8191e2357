/**
 * Limits of SRT that settings, stream keys and URLs have to respect.
 *
 * @module
 */

/** Longest StreamID, in bytes (draft-sharabayko-srt 3.2.1.3). */
export const MAX_STREAM_ID_BYTES = 512

/** Shortest and longest passphrase that libsrt accepts, in bytes (`SRTO_PASSPHRASE`). */
export const MIN_PASSPHRASE_BYTES = 10
/** Longest passphrase (SRT 6.1.5). */
export const MAX_PASSPHRASE_BYTES = 80

/** Accepted passphrase length, for messages. */
export const PASSPHRASE_LENGTH = `${MIN_PASSPHRASE_BYTES} to ${MAX_PASSPHRASE_BYTES} bytes`

/** Upper limit on the receive latency that a listener negotiates, in milliseconds. The handshake allows 65,535. */
export const MAX_LATENCY_MS = 8000

/** Whether SRT accepts `text` as a passphrase. */
export function isPassphrase(text: string): boolean {
  const sizeBytes = Buffer.byteLength(text)
  return sizeBytes >= MIN_PASSPHRASE_BYTES && sizeBytes <= MAX_PASSPHRASE_BYTES
}
