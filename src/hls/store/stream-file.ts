/**
 * A file of a stream as it is delivered: a playlist or a segment.
 *
 * @module
 */

export interface StreamFile {
  readonly kind: 'media-playlist' | 'multivariant-playlist' | 'segment'
  /** Its bytes in order. Shared by all readers; not to be changed. */
  readonly chunks: readonly Buffer[]
  /** Changes whenever the bytes do; a strong ETag without quotes. */
  readonly version: string
  /** EXT-X-TARGETDURATION of its stream: the unit of every cache lifetime. */
  readonly targetDurationSec: number
}
