/**
 * Stream keys that any node of the cluster issues and accepts.
 *
 * @module
 */
import {
  deriveEncryption,
  issueStreamKey,
  STREAM_KEY_LIFETIME_SEC,
  type StreamKey,
} from '../../auth/stream-key.ts'
import type { RegisteredStream } from '../../cluster/registry/records.ts'
import type { Registry } from '../../cluster/registry/registry.ts'
import { decodeSettings, type SharedSettings } from '../../cluster/stream-settings.ts'
import type { StartRequest } from '../../contract/streams.ts'
import { digestOf, findEncryption, type TermsOptions } from '../registered-terms.ts'
import { checkMedia, givenMedia, streamTerms, type MediaSettings } from '../stream-options.ts'

export interface IssueOptions
  extends TermsOptions, Pick<MediaSettings, 'formats' | 'maxSegmentSec' | 'lowLatency'> {
  readonly registry: Pick<Registry, 'start'>
  readonly hasPlaybackSecret: boolean
}

export interface IssuedStream {
  readonly registered: RegisteredStream
  readonly settings: SharedSettings
  readonly key: StreamKey
  readonly passphrase: string | undefined
}

/**
 * Starts a stream in the registry unless it is running, and issues a new key for it.
 *
 * @param request  already checked against the schema
 * @throws {MillraceError} `BODY_INVALID` if the settings do not allow a value, `TOO_MANY_STREAMS`,
 *   `REGISTRY_UNAVAILABLE`
 */
export async function startRegistered(
  request: StartRequest,
  options: IssueOptions,
): Promise<IssuedStream> {
  const { streamId, webhookUrls, latencyMs, allowFrom, playbackToken } = request
  const { registry, clock } = options
  checkMedia(request, options)
  streamTerms(request, options)
  const secrets = options.readJwtSecrets()
  const wallMs = clock.wallMs()
  const media = givenMedia(request)
  const registered = await registry.start(streamId, {
    kept: { media, ...(request.encryption === true && encrypted(streamId, secrets[0], wallMs)) },
    settings: { webhookUrls, latencyMs, allowFrom, playbackToken },
    keyExpiresAtMs: wallMs + STREAM_KEY_LIFETIME_SEC * 1000,
  })
  const settings = decodeSettings(registered.settings)
  const { secret, encryption } =
    settings.encryption === undefined
      ? { secret: secrets[0] }
      : findEncryption(streamId, settings.encryption, secrets)
  const key = await issueStreamKey({
    streamId,
    secret,
    now: new Date(Math.max(wallMs, (registered.keyFloorSec ?? 0) * 1000)),
    encryptedSinceSec: encryption?.sinceSec,
  })
  return { registered, settings, key, passphrase: encryption?.passphrase }
}

function encrypted(
  streamId: string,
  secret: string,
  wallMs: number,
): Pick<SharedSettings, 'encryption'> {
  const sinceSec = Math.floor(wallMs / 1000)
  return {
    encryption: { sinceSec, digest: digestOf(deriveEncryption({ streamId, secret, sinceSec })) },
  }
}
