/**
 * Events of webhooks as Redis has them: sealed with `CLUSTER_SECRET`, since they contain stream keys, and since a
 * writer of Redis must not be able to have webhooks signed.
 *
 * @module
 */
import type { Clock } from '../../../timing/clock.ts'
import type { OutboxEvent } from '../../registry/outboxes.ts'
import type { WebhookType, AddressedEvent } from '../../../webhook/event.ts'
import { openText, sealText } from '../sealed-text.ts'

const PURPOSE = 'millrace outbox'

export interface NumberedEvent {
  /** Place of the event among those of its outbox. */
  readonly number: number
  readonly event: AddressedEvent
}

interface Content {
  readonly number: number
  readonly urls: readonly string[]
  readonly body: string
}

/** Fields of a body that are read. */
interface Body {
  readonly type: WebhookType
  readonly created_at: string
  readonly stream_id?: string
}

export function sealEvent({ number, event }: NumberedEvent, secret: string): OutboxEvent {
  const { id, urls, body } = event
  const content: Content = { number, urls, body: body.toString() }
  const text = JSON.stringify(content)
  return { id, text: sealText({ purpose: PURPOSE, owner: id, text }, secret) }
}

/** @returns undefined for what was sealed with none of the secrets */
export function openEvent(
  { id, text }: OutboxEvent,
  secrets: readonly string[],
  clock: Clock,
): NumberedEvent | undefined {
  const opened = openText({ purpose: PURPOSE, owner: id, text }, secrets)
  if (opened === undefined) return undefined
  const { number, urls, body } = JSON.parse(opened) as Content
  const { type, created_at: createdAt, stream_id: streamId } = JSON.parse(body) as Body
  const ageMs = Math.max(0, clock.wallMs() - Date.parse(createdAt))
  const createdUs = clock.nowUs() - ageMs * 1000
  return {
    number,
    event: { id, type, streamId, urls, createdUs, body: Buffer.from(body) },
  }
}
