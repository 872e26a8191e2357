/**
 * Events of webhooks as Redis has them: sealed with `CLUSTER_SECRET`, since they contain stream keys, and since a
 * writer of Redis must not be able to have webhooks signed.
 *
 * @module
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import type { OutboxEvent } from '../../cluster/registry/outboxes.ts'
import type { WebhookType } from '../../webhook/event.ts'
import type { AddressedEvent } from '../../webhook/outbox.ts'

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

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

/** What is needed of a body. */
interface Body {
  readonly type: WebhookType
  readonly created_at: string
  readonly stream_id?: string
}

export function sealEvent({ number, event }: NumberedEvent, secret: string): OutboxEvent {
  const { id, urls, body } = event
  const content: Content = { number, urls, body: body.toString() }
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, keyOf(secret), nonce).setAAD(Buffer.from(id))
  const sealed = Buffer.concat([cipher.update(JSON.stringify(content)), cipher.final()])
  return { id, text: Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64') }
}

/** @returns undefined for what was sealed with none of the secrets */
export function openEvent(
  { id, text }: OutboxEvent,
  secrets: readonly string[],
  clock: Clock,
): NumberedEvent | undefined {
  const bytes = Buffer.from(text, 'base64')
  const content = secrets
    .map((secret) => open(id, bytes, secret))
    .find((each) => each !== undefined)
  if (content === undefined) return undefined
  const { number, urls } = content
  const { type, created_at: createdAt, stream_id: streamId } = JSON.parse(content.body) as Body
  const ageMs = Math.max(0, clock.wallMs() - Date.parse(createdAt))
  const createdUs = clock.nowUs() - ageMs * 1000
  return {
    number,
    event: { id, type, streamId, urls, createdUs, body: Buffer.from(content.body) },
  }
}

function open(id: string, bytes: Buffer, secret: string): Content | undefined {
  try {
    const nonce = bytes.subarray(0, NONCE_BYTES)
    const tag = bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)
    const decipher = createDecipheriv(CIPHER, keyOf(secret), nonce, { authTagLength: TAG_BYTES })
    decipher.setAAD(Buffer.from(id)).setAuthTag(tag)
    const sealed = bytes.subarray(NONCE_BYTES + TAG_BYTES)
    const text = Buffer.concat([decipher.update(sealed), decipher.final()])
    return JSON.parse(text.toString()) as Content
  } catch {
    return undefined
  }
}

function keyOf(secret: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', 'millrace outbox', 32))
}
