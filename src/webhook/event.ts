/**
 * What a webhook says: one JSON object for each thing that happened to a stream, or to the service.
 *
 * @module
 */
import type { StreamState } from '../contract/state.ts'

export type WebhookType =
  | 'stream.ready'
  | 'stream.live'
  | 'stream.interrupted'
  | 'stream.stopped'
  | 'stream.rejected'
  | 'stream.warning'
  | 'stream.resumed'
  | 'service.started'

export interface WebhookEvent {
  readonly type: WebhookType
  /** Stream that it happened to, and its state; undefined where it happened to the service. */
  readonly streamId?: string
  readonly status?: StreamState
  /** JSON, under the names of the wire (`playlist_url`). Of `stream.ready` it holds a credential. */
  readonly data: object
  /** What could happen again and again: at most one event of this name is sent in 10 s a stream. */
  readonly limitedAs?: string
}

/**
 * Body of a webhook, the same bytes to every URL and at every try.
 *
 * @param id  unique; a receiver that knows it already has met this event before
 */
export function encodeEvent(event: WebhookEvent, id: string, createdAt: Date): Buffer {
  const { type, streamId, status, data } = event
  return Buffer.from(
    JSON.stringify({
      id,
      type,
      created_at: createdAt.toISOString(),
      stream_id: streamId,
      status,
      data,
    }),
  )
}
