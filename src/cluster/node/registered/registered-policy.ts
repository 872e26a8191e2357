/**
 * Policy of a stream, from the registry of the cluster.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { deriveEncryption, type StreamEncryption } from '../../../auth/stream-key.ts'
import type { Clock } from '../../../timing/clock.ts'
import type { RegisteredStream } from '../../registry/registered.ts'
import { decodeOptions, type RegisteredOptions } from '../../registry/registered-options.ts'
import type { LiveStream } from '../../../stream/live-stream.ts'
import type { StartRequest } from '../../../api/requests.ts'
import { given, POLICY_OPTIONS } from '../../../api/stream-options.ts'
import { openText, sealText, type Purpose } from '../sealed-text.ts'

export interface PolicyOptions {
  readonly clock: Clock
  readonly readJwtSecrets: () => readonly [newest: string, ...older: string[]]
  readonly readClusterSecrets: () => readonly string[]
  /** Webhook URLs of streams without their own. */
  readonly webhookUrls: readonly string[]
}

/** Gives a stream of this node the policy that the registry has for it. Its encoder stays. */
export function applyPolicy(
  stream: LiveStream,
  { options }: Pick<RegisteredStream, 'options'>,
  { clock, readJwtSecrets, readClusterSecrets, webhookUrls }: PolicyOptions,
): void {
  const shared = decodeOptions(options)
  const { bannedUntilMs, preferredSource, encryption, pullUrl = '', pushUrls = '' } = shared
  const open = (purpose: Purpose, text: string) =>
    text === '' ? undefined : openText({ purpose, owner: stream.id, text }, readClusterSecrets())
  const hasNewPassphrase =
    encryption !== undefined && encryption.sinceSec !== stream.encryption?.sinceSec
  stream.configure({
    webhookUrls: shared.webhookUrls ?? webhookUrls,
    pullUrl: open('millrace pull', pullUrl),
    pushUrls: JSON.parse(open('millrace push', pushUrls) ?? '[]') as string[],
    policy: {
      ...given(POLICY_OPTIONS, shared),
      ...(preferredSource !== undefined && { preferredSource }),
      ...(bannedUntilMs !== undefined && {
        bannedUntilUs: clock.nowUs() + (bannedUntilMs - clock.wallMs()) * 1000,
      }),
    },
    ...(hasNewPassphrase && {
      encryption: findEncryption(stream.id, encryption, readJwtSecrets()).encryption,
    }),
  })
}

/** @returns URLs of a request as the registry has them; an empty `pull_url` stays empty */
export function sealUrls(
  { streamId: owner, pullUrl, pushUrls }: Pick<StartRequest, 'streamId' | 'pullUrl' | 'pushUrls'>,
  [secret = '']: readonly string[],
): Pick<RegisteredOptions, 'pullUrl' | 'pushUrls'> {
  const seal = (purpose: Purpose, text: string) =>
    text === '' ? '' : sealText({ purpose, owner, text }, secret)
  return {
    ...(pullUrl !== undefined && { pullUrl: seal('millrace pull', pullUrl) }),
    ...(pushUrls !== undefined && { pushUrls: seal('millrace push', JSON.stringify(pushUrls)) }),
  }
}

/** Names a passphrase, which has 192 random bits, without telling anything of it. */
export function digestOf({ passphrase }: StreamEncryption): string {
  return createHash('sha256').update(passphrase).digest('hex').slice(0, 16)
}

/**
 * Finds the passphrase of a stream, and the value of `JWT_SECRET` that it is derived from: the newest one if that is gone,
 * the same on all nodes.
 */
export function findEncryption(
  streamId: string,
  { sinceSec, digest }: NonNullable<RegisteredOptions['encryption']>,
  secrets: readonly [newest: string, ...older: string[]],
): { readonly secret: string; readonly encryption: StreamEncryption } {
  const derive = (secret: string) => ({
    secret,
    encryption: deriveEncryption({ streamId, secret, sinceSec }),
  })
  const found = secrets.map(derive).find(({ encryption }) => digestOf(encryption) === digest)
  return found ?? derive(secrets[0])
}
