/**
 * Secrets as Redis has them: sealed with a key derived from `CLUSTER_SECRET`, so that a reader of Redis cannot read them,
 * and a writer cannot make others.
 *
 * @module
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** What a text is for: another purpose has another key. */
export type Purpose = 'millrace outbox' | 'millrace pull' | 'millrace push'

/** A text and what it belongs to. */
interface Sealed {
  readonly purpose: Purpose
  /** Name of its owner, such as a stream: what was sealed for another owner does not open. */
  readonly owner: string
  readonly text: string
}

/** @returns base64 */
export function sealText({ purpose, owner, text }: Sealed, secret: string): string {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, keyOf(purpose, secret), nonce).setAAD(Buffer.from(owner))
  const sealed = Buffer.concat([cipher.update(text), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64')
}

/**
 * @param sealed  as `sealText` returns it
 * @returns undefined for what was sealed with none of the secrets
 */
export function openText(
  { purpose, owner, text: sealed }: Sealed,
  secrets: readonly string[],
): string | undefined {
  const bytes = Buffer.from(sealed, 'base64')
  for (const secret of secrets) {
    try {
      const nonce = bytes.subarray(0, NONCE_BYTES)
      const tag = bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)
      const key = keyOf(purpose, secret)
      const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
      decipher.setAAD(Buffer.from(owner)).setAuthTag(tag)
      const text = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES))
      return Buffer.concat([text, decipher.final()]).toString()
    } catch {
      // Sealed with another secret.
    }
  }
  return undefined
}

function keyOf(purpose: Purpose, secret: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', purpose, 32))
}
