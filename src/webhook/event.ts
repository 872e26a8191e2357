/**
 * Events of streams and of the service: as they happen, as they wait for their delivery, and the JSON body and the headers of
 * their webhooks.
 *
 * To add one:
 * - its type, here
 * - who sends it: `service/notifications.ts`, told by an event of `StreamEvents` in `stream/live-stream.ts`, or by a caller
 * - if the dashboard's journal has it: `web/dashboard/wire.ts`, `web/dashboard/journal.ts`
 * - the table of `test/hostile/webhooks.test.ts`, and `docs/api.md`
 *
 * @module
 */
import type { OutgoingHttpHeaders } from 'node:http'
import { signWebhook } from '../auth/standard-webhooks.ts'
import type { StreamState } from '../api/records.ts'

export type WebhookType =
  | 'stream.ready'
  | 'stream.live'
  | 'stream.interrupted'
  | 'stream.source_changed'
  | 'stream.stopped'
  | 'stream.rejected'
  | 'stream.warning'
  | 'stream.key_expiring'
  | 'stream.resumed'
  | 'stream.viewers'
  | 'stream.push_connected'
  | 'stream.push_lost'
  | 'archive.started'
  | 'archive.completed'
  | 'archive.failed'
  | 'service.started'

export interface WebhookEvent {
  /** Recognizes an event that several nodes may send. Default: one of its own. */
  readonly id?: string
  readonly type: WebhookType
  /** Stream of the event; undefined for an event of the service. */
  readonly streamId?: string
  /** State of the stream; undefined for an event of the service. */
  readonly status?: StreamState
  /** Data with the field names of the API (`playlist_url`). Contains credentials in `stream.ready`. */
  readonly data: object
  /** Key of the rate limit: at most one event per stream and key in 10 s. Default: no limit. */
  readonly rateLimitKey?: string
}

/** Event that waits for its delivery. Its body is shared by the queues of all its URLs. */
export interface QueuedEvent {
  readonly type: WebhookType
  readonly streamId: string | undefined
  readonly id: string
  readonly body: Buffer
  readonly createdUs: number
}

/** An event and all its URLs. */
export interface AddressedEvent extends QueuedEvent {
  readonly urls: readonly string[]
}

/** Keeps events for other processes, which deliver them if this one ends before. */
export interface EventOutbox {
  keep(event: AddressedEvent): void
  /** Notes that an event was delivered to a URL, or dropped. */
  settle(eventId: string, url: string): void
}

/**
 * Body of a webhook, the same bytes for every URL and every attempt.
 *
 * @param id  unique; lets a receiver recognize a repetition
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

/** Headers of one attempt, signed by each key. */
export function encodeHeaders(
  { id, body }: { readonly id: string; readonly body: Uint8Array },
  wallMs: number,
  keys: readonly Uint8Array[],
): OutgoingHttpHeaders {
  const timestampSec = Math.floor(wallMs / 1000)
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': timestampSec,
    'webhook-signature': signWebhook({ id, timestampSec, body }, keys),
  }
}
