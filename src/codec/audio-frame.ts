/**
 * Audio bitstreams are chains of frames that each begin with a header; what is common to all of them.
 *
 * @module
 */

/** What an audio bitstream says of itself. */
export interface AudioParameters {
  /** RFC 6381 string. */
  readonly codecString: string
  /** Hertz. */
  readonly sampleRate: number
  /** Undefined where the header leaves it to the payload. */
  readonly channels?: number
}

/** Header of one audio frame. */
export interface AudioFrameHeader {
  readonly codec: 'aac' | 'mp3' | 'mp2' | 'ac3' | 'eac3'
  /** Length of the frame, header included. */
  readonly sizeBytes: number
  readonly parameters: AudioParameters
}

/** @returns the header at `at`; undefined where there is none, or not all of it */
export type DecodeAudioFrameHeader = (bytes: Buffer, at: number) => AudioFrameHeader | undefined

/** By chance 8 KiB of payload imitate two headers of MPEG audio, the shortest sync word there is. */
const MAX_IMITATIONS = 8

/**
 * Finds the first frame of a stretch of audio that may begin within one. Sync words also occur in payload, so a header
 * counts only if one of the same format stands where its frame ends, or if its frame is the whole stretch.
 */
export function findAudioFrame(
  bytes: Buffer,
  decode: DecodeAudioFrameHeader,
): AudioFrameHeader | undefined {
  let imitations = 0
  for (let at = 0; at < bytes.length && imitations < MAX_IMITATIONS; at++) {
    const header = decode(bytes, at)
    if (header === undefined) continue
    if (at === 0 && header.sizeBytes === bytes.length) return header
    if (isFollowed(bytes, at, header, decode)) return header
    imitations++
  }
  return undefined
}

/** @returns the header at the start of a stretch of audio, if one of the same format stands where its frame ends */
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

/** Channels may differ: E-AC-3 adds some of them in frames of their own. */
function isSameFormat(a: AudioFrameHeader, b: AudioFrameHeader): boolean {
  return (
    a.parameters.codecString === b.parameters.codecString &&
    a.parameters.sampleRate === b.parameters.sampleRate
  )
}
