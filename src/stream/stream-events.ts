/**
 * Events of a stream, under the names of the library.
 *
 * @module
 */
import type { Warning } from '../contract/report.ts'
import type { StopReason } from '../contract/state.ts'
import type { Segment } from '../hls/store/segment.ts'
import type { Encoder, LeaveReason } from './publication.ts'

export interface StreamEvents {
  /** A segment is complete; its bytes are shared with the cache and not to be changed. */
  segment: [segment: Segment]
  /** An encoder connected. */
  publish: [encoder: Encoder]
  /** The playlist is playable and grows; emitted again after every interruption. */
  live: []
  /** The encoder disconnected or sends no media; the playlist stops growing until media arrives. */
  interrupted: [event: { reason: LeaveReason | 'no-media' }]
  /** A problem of the source that the operator should fix; emitted when it begins. */
  warning: [warning: Warning]
  /** The stream is over. Last event. */
  end: [event: { reason: StopReason }]
}
