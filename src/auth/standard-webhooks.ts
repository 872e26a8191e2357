/**
 * Webhook signatures of the Standard Webhooks specification (standardwebhooks.com): HMAC-SHA256 over
 * `id.timestamp.body`, in base64.
 *
 * Even with the key of LT-SIGNATURE, a webhook signature is never valid for an API request: the signed text begins with
 * a UUID and a dot, and no JSON text does.
 *
 * @module
 */
import { createHmac } from 'node:crypto'

const PREFIX = 'whsec_'

/** Key lengths that the specification allows, in bytes. */
const MIN_KEY_BYTES = 24
const MAX_KEY_BYTES = 64

/** The new key and, during a rotation, the old one. */
const MAX_KEYS = 2

/** Keys that sign each webhook, newest first. */
export type WebhookKeys = readonly [newest: Buffer, ...older: Buffer[]]

/**
 * Parses WEBHOOK_SECRET: base64 with or without `whsec_`, as the libraries of receivers accept it, or two such values
 * separated by a comma, the new value first.
 *
 * @returns undefined for text of another form, and for a key that is too short or too long
 */
export function parseWebhookSecret(text: string): WebhookKeys | undefined {
  const [newest, ...older] = text.split(',').map((secret) => decodeSecret(secret.trim()))
  const isComplete = older.length < MAX_KEYS && older.every((key) => key !== undefined)
  return newest !== undefined && isComplete ? [newest, ...older] : undefined
}

/** Keys that sign webhooks: the keys in WEBHOOK_SECRET or, if it is empty, the bytes of each HMAC_SECRET. */
export function webhookKeys(
  webhookSecret: string,
  [newest, ...older]: readonly [string, ...string[]],
): WebhookKeys {
  const fromHmac: WebhookKeys = [Buffer.from(newest), ...older.map((each) => Buffer.from(each))]
  return parseWebhookSecret(webhookSecret) ?? fromHmac
}

/** Key in the form that the libraries of receivers accept. */
export function formatWebhookSecret(key: Uint8Array): string {
  return `${PREFIX}${Buffer.from(key).toString('base64')}`
}

/** Value of `webhook-signature`: one signature for each key, separated by spaces. */
export function signWebhook(
  { id, timestampSec, body }: { id: string; timestampSec: number; body: Uint8Array },
  keys: readonly Uint8Array[],
): string {
  return keys
    .map((key) => createHmac('sha256', key).update(`${id}.${timestampSec}.`).update(body))
    .map((hmac) => `v1,${hmac.digest('base64')}`)
    .join(' ')
}

function decodeSecret(text: string): Buffer | undefined {
  const base64 = text.startsWith(PREFIX) ? text.slice(PREFIX.length) : text
  const key = Buffer.from(base64, 'base64')
  // Node skips characters that are not base64; the libraries of receivers reject them.
  if (key.toString('base64') !== base64) return undefined
  return key.length >= MIN_KEY_BYTES && key.length <= MAX_KEY_BYTES ? key : undefined
}
