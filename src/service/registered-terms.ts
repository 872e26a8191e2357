/**
 * Terms and options of a stream, from the registry of the cluster.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import type { KeyFloors } from '../auth/key-floors.ts'
import { deriveEncryption, type StreamEncryption } from '../auth/stream-key.ts'
import type { Clock } from '../clock.ts'
import type { RegisteredStream } from '../cluster/registry/records.ts'
import { decodeSettings, type SharedSettings } from '../cluster/stream-settings.ts'
import type { StreamOptions } from '../contract/streams.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import { chosenTerms } from './stream-options.ts'

export interface TermsOptions {
  readonly clock: Clock
  readonly readJwtSecrets: () => readonly [newest: string, ...older: string[]]
  /** Webhook URLs of streams without their own. */
  readonly webhookUrls: readonly string[]
}

/** Options that a stream has of its own, see `ownOptions`. */
export function ownOptionsOf({ media, latencyMs, allowFrom }: SharedSettings): StreamOptions {
  return {
    ...media,
    ...(latencyMs !== undefined && { latencyMs }),
    ...(allowFrom !== undefined && { allowFrom }),
  }
}

/** Brings streams of this node in line with the registry. */
export class RegisteredTerms {
  readonly #options: TermsOptions
  readonly #floors: KeyFloors
  /** What a stream has had already. */
  readonly #known = new WeakMap<LiveStream, { kick: string | undefined; keyExpiresAtMs: number }>()

  constructor(options: TermsOptions, floors: KeyFloors) {
    this.#options = options
    this.#floors = floors
  }

  /** Applies the terms to a stream that this node has claimed. */
  adopt(stream: LiveStream, registered: RegisteredStream): void {
    const { settings, keyExpiresAtMs, keyFloorSec } = registered
    const known = this.#known.get(stream)
    applyTerms(stream, registered, this.#options)
    if (keyFloorSec !== undefined) this.#floors.raise(stream.id, keyFloorSec)
    if (keyExpiresAtMs > (known?.keyExpiresAtMs ?? 0)) stream.renewKey(keyExpiresAtMs)
    this.#known.set(stream, { kick: decodeSettings(settings).kick, keyExpiresAtMs })
  }

  /** Applies changes to a stream that this node owns. */
  refresh(stream: LiveStream, registered: RegisteredStream): void {
    const known = this.#known.get(stream)
    this.adopt(stream, registered)
    if (this.#known.get(stream)?.kick !== known?.kick) stream.disconnect('kicked')
  }
}

/** Gives a stream of this node the terms that the registry has for it. Its encoder stays. */
export function applyTerms(
  stream: LiveStream,
  { settings }: Pick<RegisteredStream, 'settings'>,
  { clock, readJwtSecrets, webhookUrls }: TermsOptions,
): void {
  const shared = decodeSettings(settings)
  const { bannedUntilMs, encryption } = shared
  stream.webhookUrls = shared.webhookUrls ?? webhookUrls
  stream.terms = {
    ...chosenTerms(shared),
    ...(bannedUntilMs !== undefined && {
      bannedUntilUs: clock.nowUs() + (bannedUntilMs - clock.wallMs()) * 1000,
    }),
  }
  if (encryption !== undefined && encryption.sinceSec !== stream.encryption?.sinceSec) {
    stream.encryption = findEncryption(stream.id, encryption, readJwtSecrets()).encryption
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
  { sinceSec, digest }: NonNullable<SharedSettings['encryption']>,
  secrets: readonly [newest: string, ...older: string[]],
): { readonly secret: string; readonly encryption: StreamEncryption } {
  const derive = (secret: string) => ({
    secret,
    encryption: deriveEncryption({ streamId, secret, sinceSec }),
  })
  const found = secrets.map(derive).find(({ encryption }) => digestOf(encryption) === digest)
  return found ?? derive(secrets[0])
}
