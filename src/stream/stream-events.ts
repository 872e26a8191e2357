/**
 * Events of a stream, with their names in the library.
 *
 * @module
 */
import type { Warning } from '../contract/report.ts'
import type { StopReason } from '../contract/state.ts'
import type { ManifestChange } from '../hls/manifest.ts'
import type { Segment } from '../hls/store/segment.ts'
import type { Encoder, LeaveReason } from './publication.ts'

export interface StreamEvents {
  /** A segment is complete. The cache shares its bytes, which must not be changed. */
  segment: [segment: Segment]
  /**
   * The manifest has changed. A segment is in it when it begins, before any part of it can be read. Emitted once for all
   * changes of a command.
   */
  manifest: [change: ManifestChange]
  /** An encoder connected. */
  publish: [encoder: Encoder]
  /** The playlist is playable and grows. Emitted again after an interruption or a replacement of the encoder. */
  live: []
  /** The encoder disconnected or sends no media; the playlist stops growing until media arrives. */
  interrupted: [event: { reason: LeaveReason | 'no-media' }]
  /** A warning begins: a problem that the operator should fix. */
  warning: [warning: Warning]
  /** The stream is over. Last event. */
  end: [event: { reason: StopReason }]
}
