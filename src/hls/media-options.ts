/**
 * Settings that a stream may have of its own.
 *
 * @module
 */
import type { Format } from './file-names.ts'

export interface MediaOptions {
  /** Formats of the segments; default: transport stream alone. */
  readonly formats?: readonly Format[] | undefined
  readonly segmentSec: number
  readonly playlistSegments: number
  /** Desired duration of a part of low-latency HLS, which CMAF has; default: no parts. */
  readonly partSec?: number | undefined
}
