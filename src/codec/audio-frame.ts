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

/**
 * Finds the first frame of a stretch of audio that may begin within one. Sync words also occur in payload, so a header
 * counts only if another one stands where its frame ends, as far as the bytes reach.
 */
export function findAudioFrame(
  bytes: Buffer,
  decode: DecodeAudioFrameHeader,
): AudioFrameHeader | undefined {
  for (let at = 0; at < bytes.length; at++) {
    const header = decode(bytes, at)
    if (header === undefined) continue
    const next = at + header.sizeBytes
    if (next === bytes.length || decode(bytes, next) !== undefined) return header
    // At the start of the stretch nothing came before that could have imitated a header.
    if (at === 0 && next > bytes.length) return header
  }
  return undefined
}
