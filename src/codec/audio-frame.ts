/**
 * Audio frames: the search for frame headers, which all audio codecs share.
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
  /** Size of the frame, header included. */
  readonly sizeBytes: number
  readonly parameters: AudioParameters
}

/** @returns the header at `at`; undefined when there is none or it is truncated */
export type DecodeAudioFrameHeader = (bytes: Buffer, at: number) => AudioFrameHeader | undefined

/** Maximum number of false headers in a search; MPEG audio, with the shortest syncword, has about two in 8 KiB. */
const MAX_FALSE_HEADERS = 8

/**
 * Finds the first frame header in bytes that may start within a frame. Syncwords also occur in payload, so a header
 * counts only when a header of the same format follows its frame, or when its frame is all of `bytes`.
 */
export function findAudioFrame(
  bytes: Buffer,
  decode: DecodeAudioFrameHeader,
): AudioFrameHeader | undefined {
  let falseHeaders = 0
  for (let at = 0; at < bytes.length && falseHeaders < MAX_FALSE_HEADERS; at++) {
    const header = decode(bytes, at)
    if (header === undefined) continue
    if (at === 0 && header.sizeBytes === bytes.length) return header
    if (isFollowed(bytes, at, header, decode)) return header
    falseHeaders++
  }
  return undefined
}

/** @returns the header at the start of `bytes`, if a header of the same format follows its frame */
export function readAudioFrame(
  bytes: Buffer,
  decode: DecodeAudioFrameHeader,
): AudioFrameHeader | undefined {
  const header = decode(bytes, 0)
  return header !== undefined && isFollowed(bytes, 0, header, decode) ? header : undefined
}

function isFollowed(
  bytes: Buffer,
  at: number,
  header: AudioFrameHeader,
  decode: DecodeAudioFrameHeader,
): boolean {
  const next = decode(bytes, at + header.sizeBytes)
  return next !== undefined && isSameFormat(header, next)
}

/** Compares without channels: in E-AC-3, dependent substreams are frames with other channels. */
function isSameFormat(a: AudioFrameHeader, b: AudioFrameHeader): boolean {
  return (
    a.parameters.codecString === b.parameters.codecString &&
    a.parameters.sampleRate === b.parameters.sampleRate
  )
}
