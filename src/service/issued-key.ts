/**
 * Answer to `start-stream` for an encoder.
 *
 * @module
 */
import type { StreamKey } from '../auth/stream-key.ts'
import type { PublicUrls } from './public-urls.ts'

/** Credentials of an encoder, alone and in its SRT URL. */
export interface IssuedKey extends StreamKey {
  readonly srtUrl: string
  readonly passphrase?: string
}

export function issuedKey(
  key: StreamKey,
  passphrase: string | undefined,
  urls: Pick<PublicUrls, 'publish'>,
): IssuedKey {
  const srtUrl = urls.publish(key.streamKey, passphrase)
  return { srtUrl, ...key, ...(passphrase !== undefined && { passphrase }) }
}
