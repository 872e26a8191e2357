/**
 * File of a stream for delivery: a playlist or a segment.
 *
 * @module
 */

export interface StreamFile {
  readonly kind: 'media-playlist' | 'multivariant-playlist' | 'segment'
  /** Bytes in order. Shared by all readers; must not be changed. */
  readonly chunks: readonly Buffer[]
  /** Strong ETag without quotes: changes whenever the bytes do. */
  readonly version: string
  /** EXT-X-TARGETDURATION of the stream, the unit of all cache lifetimes. */
  readonly targetDurationSec: number
}
