/**
 * Search for audio frame headers, common to ADTS, MPEG audio, AC-3 and E-AC-3.
 *
 * @module
 */

/** Parameters in an audio frame header. */
export interface AudioParameters {
  /** CODECS value (RFC 6381). */
  readonly codecString: string
  /** Hertz. */
  readonly sampleRate: number
  /** Number of channels; undefined when only the payload contains it. */
  readonly channels?: number
}

/** Header of one audio frame. */
export interface AudioFrameHeader {
  readonly codec: 'aac' | 'mp3' | 'mp2' | 'ac3' | 'eac3'
  /** Size of the frame, including its header. */
  readonly sizeBytes: number
  readonly parameters: AudioParameters
}

/** @returns the header at `at`; undefined when there is none or it is truncated */
export type DecodeAudioFrameHeader = (bytes: Buffer, at: number) => AudioFrameHeader | undefined

/** @returns at least `count` bytes from offset `at` on, or all bytes from there if there are fewer */
type ReadBytes = (at: number, count: number) => Buffer

/** Maximum number of bytes that a `DecodeAudioFrameHeader` needs: the AC-3 decoder needs 8, the others fewer. */
const MAX_HEADER_BYTES = 8

/** Size of two frames of any codec at usual bit rates, so that the second header confirms the first. */
const MAX_SEARCHED_BYTES = 8192

/** Maximum number of false headers in a search; MPEG audio, with the shortest syncword, has about two in 8 KiB. */
const MAX_FALSE_HEADERS = 8

/**
 * Finds the first frame header in bytes that may start within a frame. Syncwords also occur in payload, so a header
 * counts only when a header of the same format follows its frame, or when nothing precedes and follows its frame.
 *
 * @param read  usually called for two headers only, since most PES packets start with a frame. Reading whole payloads
 *   would copy 1.6 % of all bytes of a stream of 2 Mbit/s (bench/mpegts).
 */
export function findAudioFrame(
  read: ReadBytes,
  decode: DecodeAudioFrameHeader,
): AudioFrameHeader | undefined {
  const first = decode(read(0, MAX_HEADER_BYTES), 0)
  if (first !== undefined) {
    // Last byte of the frame, and next header: one byte if nothing follows the frame, none if the frame is truncated.
    const end = read(first.sizeBytes - 1, 1 + MAX_HEADER_BYTES)
    if (end.length === 1 || isSameFormat(first, decode(end, 1))) return first
  }
  const bytes = read(0, MAX_SEARCHED_BYTES)
  let falseHeaders = 0
  for (let at = 0; at < bytes.length && falseHeaders < MAX_FALSE_HEADERS; at++) {
    const header = decode(bytes, at)
    if (header === undefined) continue
    if (isSameFormat(header, decode(bytes, at + header.sizeBytes))) return header
    falseHeaders++
  }
  return undefined
}

/** Compares without channels: in E-AC-3, dependent substreams are frames with other channels. */
function isSameFormat(a: AudioFrameHeader, b: AudioFrameHeader | undefined): boolean {
  return (
    a.parameters.codecString === b?.parameters.codecString &&
    a.parameters.sampleRate === b.parameters.sampleRate
  )
}
