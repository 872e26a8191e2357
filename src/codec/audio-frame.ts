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
  /** Samples for each channel; 0 for a substream that adds channels or programs to a frame. */
  readonly samples: number
  readonly parameters: AudioParameters
}

/**
 * Maximum number of frames read in a PES packet. In 0.7 s, the longest time between two PTS (ISO/IEC 13818-1 2.7.4), AAC
 * has 66 frames at 96 kHz, and E-AC-3 132 syncframes of one block in each substream.
 */
export const MAX_FRAMES = 1024

/** @returns the header at `at`; undefined when there is none or it is truncated */
export type DecodeAudioFrameHeader = (bytes: Buffer, at: number) => AudioFrameHeader | undefined

/** Size of two frames of any codec at usual bit rates, so that the second header confirms the first. */
export const MAX_SEARCHED_BYTES = 8192

/** Maximum number of false headers in a search; MPEG audio, with the shortest syncword, has about two in 8 KiB. */
const MAX_FALSE_HEADERS = 8

/**
 * Finds the first frame header in bytes that may start within a frame. Syncwords also occur in payload, so a header
 * counts only when a header of the same format follows its frame, or when nothing precedes and follows its frame.
 */
export function findAudioFrame(
  payload: Buffer,
  decode: DecodeAudioFrameHeader,
): { readonly at: number; readonly header: AudioFrameHeader } | undefined {
  const first = decode(payload, 0)
  if (first !== undefined) {
    const end = first.sizeBytes
    if (end === payload.length || isSameFormat(first, decode(payload, end))) {
      return { at: 0, header: first }
    }
  }
  const bytes = payload.subarray(0, MAX_SEARCHED_BYTES)
  let falseHeaders = 0
  for (let at = 0; at < bytes.length && falseHeaders < MAX_FALSE_HEADERS; at++) {
    const header = decode(bytes, at)
    if (header === undefined) continue
    if (isSameFormat(header, decode(bytes, at + header.sizeBytes))) return { at, header }
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
