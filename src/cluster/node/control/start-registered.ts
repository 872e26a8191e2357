/**
 * Start of a stream in the registry of the cluster, with keys that any node accepts.
 *
 * @module
 */
import {
  deriveEncryption,
  issueStreamKeys,
  STREAM_KEY_LIFETIME_SEC,
  type IssuedKeys,
} from '../../../auth/stream-key.ts'
import type { RegisteredStream } from '../../registry/registered.ts'
import type { Config } from '../../../config/schema.ts'
import type { Registry } from '../../registry/registry.ts'
import { decodeOptions, type RegisteredOptions } from '../../registry/registered-options.ts'
import { MillraceError } from '../../../errors.ts'
import type { StartRequest } from '../../../api/requests.ts'
import {
  digestOf,
  findEncryption,
  sealUrls,
  type PolicyOptions,
} from '../registered/registered-policy.ts'
import { checkRange } from '../../../service/stream-ports.ts'
import { checkOptions, type OptionBounds } from '../../../service/stream-defaults.ts'
import { given, MEDIA_OPTIONS, POLICY_OPTIONS } from '../../../api/stream-options.ts'

export interface StartRegisteredOptions extends PolicyOptions, OptionBounds {
  readonly registry: Pick<Registry, 'start'>
  readonly srt: Pick<Config['srt'], 'streamPorts' | 'passphrase'>
}

interface IssuedStream extends IssuedKeys {
  readonly registered: RegisteredStream
  readonly shared: RegisteredOptions
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
  options: StartRegisteredOptions,
): Promise<IssuedStream> {
  const { streamId, webhookUrls, publishPort, keyLifetimeSec = STREAM_KEY_LIFETIME_SEC } = request
  const { registry, clock } = options
  const { streamPorts, passphrase } = options.srt
  if (publishPort !== undefined) checkRange(publishPort, streamPorts)
  if (request.alwaysOn === true) {
    // No node owns the stream before its encoder calls one.
    const message = 'always_on must be false or absent in a cluster'
    throw new MillraceError('BODY_INVALID', { message })
  }
  checkOptions(request, options)
  const secrets = options.readJwtSecrets()
  const wallMs = clock.wallMs()
  const registered = await registry.start(streamId, {
    kept: {
      media: given(MEDIA_OPTIONS, request),
      ...(request.encryption === true && encrypted(streamId, secrets[0], wallMs)),
    },
    options: {
      webhookUrls,
      ...sealUrls(request, options.readClusterSecrets()),
      ...given(POLICY_OPTIONS, request),
    },
    keyExpiresAtMs: wallMs + keyLifetimeSec * 1000,
    keyIssuedAtMs: wallMs,
    backup: request.backup === true,
    ...(publishPort !== undefined && { publishPort }),
    isProtected:
      request.encryption === true || request.allowFrom !== undefined || passphrase !== '',
  })
  const shared = decodeOptions(registered.options)
  const { secret, encryption } =
    shared.encryption === undefined
      ? { secret: secrets[0] }
      : findEncryption(streamId, shared.encryption, secrets)
  const keyOptions = {
    streamId,
    secret,
    now: new Date(registered.issuedAtSec! * 1000),
    lifetimeSec: keyLifetimeSec,
    encryptedSinceSec: encryption?.sinceSec,
  }
  const keys = await issueStreamKeys(keyOptions, request)
  return { registered, shared, ...keys, passphrase: encryption?.passphrase }
}

function encrypted(
  streamId: string,
  secret: string,
  wallMs: number,
): Pick<RegisteredOptions, 'encryption'> {
  const sinceSec = Math.floor(wallMs / 1000)
  return {
    encryption: { sinceSec, digest: digestOf(deriveEncryption({ streamId, secret, sinceSec })) },
  }
}
