/**
 * Supplemental enhancement information: the messages of an SEI NAL unit (ITU-T H.264 7.3.2.3.1, H.265 7.3.2.4). The
 * message types used here have the same numbers in both codecs.
 *
 *   | FF … | type | FF … | size | payload … | repeated
 *
 * Type and size are each the sum of a run of FF bytes and the byte after it.
 *
 * @module
 */
import { unescapeNal } from './annex-b.ts'

/** `payloadType` (H.264 D.1, H.265 D.2.1). */
export const SeiType = {
  USER_DATA_REGISTERED: 4,
  RECOVERY_POINT: 6,
  ALTERNATIVE_TRANSFER_CHARACTERISTICS: 147,
} as const

interface SeiMessage {
  readonly type: number
  /** View into an unescaped copy; truncated when the NAL unit ends early. */
  readonly payload: Buffer
}

/** Maximum number of messages read from a NAL unit; encoders send fewer than ten. */
const MAX_MESSAGES = 32

/** @param body  NAL unit without its header, with emulation prevention bytes */
export function* seiMessages(body: Uint8Array): Generator<SeiMessage, void, undefined> {
  const bytes = unescapeNal(body)
  let at = 0
  const readRun = (): number => {
    let value = 0
    while (bytes[at] === 0xff) {
      value += 255
      at++
    }
    return value + (bytes[at++] ?? 0)
  }
  // The last byte holds rbsp_trailing_bits.
  for (let count = 0; count < MAX_MESSAGES && at < bytes.length - 1; count++) {
    const type = readRun()
    const sizeBytes = readRun()
    yield { type, payload: bytes.subarray(at, at + sizeBytes) }
    at += sizeBytes
  }
}

/**
 * Reads `preferred_transfer_characteristics` (Annex D of H.264 and H.265). HLG video may declare SDR transfer
 * characteristics in its parameter sets, for older displays; then this message declares HLG.
 *
 * @returns undefined for another message or an empty one
 */
export function readPreferredTransfer({ type, payload }: SeiMessage): number | undefined {
  return type === SeiType.ALTERNATIVE_TRANSFER_CHARACTERISTICS ? payload[0] : undefined
}

/** Start of ATSC caption messages: country and provider code, `GA94`, user data type (ATSC A/53 Part 4 6.2.3). */
const CAPTION_HEAD = Buffer.from([0xb5, 0x00, 0x31, 0x47, 0x41, 0x39, 0x34, 0x03])

/**
 * Whether a message carries CEA-608 or CEA-708 captions (CTA-708 4.4): a construct with `cc_valid`. Padding with
 * `cc_valid` counts too, since an encoder that reserves room for captions may send captions later.
 *
 *   | head 64 | x 1 | process_cc_data 1 | x 1 | cc_count 5 | x 8 |
 *   | 11111 5 | cc_valid 1 | cc_type 2 | data 16 |  (cc_count times)
 */
export function carriesCaptions({ type, payload }: SeiMessage): boolean {
  if (type !== SeiType.USER_DATA_REGISTERED) return false
  if (!payload.subarray(0, CAPTION_HEAD.length).equals(CAPTION_HEAD)) return false
  const flags = payload[CAPTION_HEAD.length] ?? 0
  if ((flags & 0x40) === 0) return false
  const first = CAPTION_HEAD.length + 2
  const end = Math.min(first + (flags & 0x1f) * 3, payload.length)
  for (let at = first; at < end; at += 3) if ((payload[at]! & 0x04) !== 0) return true
  return false
}
