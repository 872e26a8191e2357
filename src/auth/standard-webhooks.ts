/**
 * Signatures of webhooks as the Standard Webhooks specification says (standardwebhooks.com): HMAC-SHA256 over
 * `id.timestamp.body`, in base64.
 *
 * The key may be the one of LT-SIGNATURE, yet no signature of a webhook is one of an API request: an `id` is a UUID,
 * and no JSON text begins with one and a dot.
 *
 * @module
 */
import { createHmac } from 'node:crypto'

const PREFIX = 'whsec_'

/** Lengths of a key, in bytes, that the specification asks for. */
const MIN_KEY_BYTES = 24
const MAX_KEY_BYTES = 64

/** More than the new key and the old one are never valid at a time. */
const MAX_KEYS = 2

/** Newest first. */
export type WebhookKeys = readonly [newest: Buffer, ...older: Buffer[]]

/**
 * Parses WEBHOOK_SECRET: base64 with or without `whsec_`, as the libraries of receivers take it; two are separated by
 * a comma, the new one first.
 *
 * @returns the keys; undefined where the text is none of this form, or a key too short or too long
 */
export function parseWebhookSecret(text: string): WebhookKeys | undefined {
  const [newest, ...older] = text.split(',').map((secret) => decodeSecret(secret.trim()))
  const isComplete = older.length < MAX_KEYS && older.every((key) => key !== undefined)
  return newest !== undefined && isComplete ? [newest, ...older] : undefined
}

/** Keys of a service: those of WEBHOOK_SECRET, or the bytes of HMAC_SECRET where that is empty or no secret. */
export function webhookKeys(
  webhookSecret: string,
  [newest, ...older]: readonly [string, ...string[]],
): WebhookKeys {
  const fromHmac: WebhookKeys = [Buffer.from(newest), ...older.map((each) => Buffer.from(each))]
  return parseWebhookSecret(webhookSecret) ?? fromHmac
}

/** Form in which receivers' libraries take a key. */
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
  // Node ignores what is no base64; receivers' libraries do not.
  if (key.toString('base64') !== base64) return undefined
  return key.length >= MIN_KEY_BYTES && key.length <= MAX_KEY_BYTES ? key : undefined
}
