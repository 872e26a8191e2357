/**
 * Settings that a stream may have of its own.
 *
 * @module
 */

export interface MediaOptions {
  readonly segmentSec: number
  readonly playlistSegments: number
  /** Desired duration of a part of low-latency HLS; default: no parts. */
  readonly partSec?: number | undefined
}
