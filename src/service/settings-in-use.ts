/**
 * Settings of a running service: secrets can be replaced, everything else stays as it was at the start.
 *
 * @module
 */
import type { Credentials } from '../archive/s3-store.ts'
import { webhookKeys, type WebhookKeys } from '../auth/standard-webhooks.ts'
import { machineClock } from '../timing/clock.ts'
import { NodeCalls } from '../auth/node-calls.ts'
import type { Config } from '../config/schema.ts'
import { parseOptionalSecrets, parseSecrets, type Secrets } from '../config/setting-types.ts'
import { MillraceError } from '../errors.ts'

/** Secrets in use, newest first. */
interface SecretsInUse {
  readonly hmac: Secrets
  readonly jwt: Secrets
  readonly webhook: WebhookKeys
  /** Empty: there is no dashboard. */
  readonly admin: string
  /** Empty: metrics need no token. */
  readonly metrics: readonly string[]
  /** Empty: playback needs no token. */
  readonly playback: readonly string[]
  /** Empty: calls between nodes are not signed. */
  readonly cluster: readonly string[]
  /** Credentials of the store of the archive. */
  readonly archive: Credentials
}

export class Settings {
  /** Settings at the start. Its secrets may have been replaced: read `secrets`. */
  readonly config: Config
  /** May be replaced at any time, by what `readSecrets` returns. */
  secrets: SecretsInUse

  constructor(config: Config) {
    this.config = config
    this.secrets = parseSecretsOf(config)
  }

  /** @throws {MillraceError} `CONFIG_INVALID` for a secret that only a restart can set or remove */
  readSecrets(config: Config): SecretsInUse {
    for (const [name, valueOf] of OPTIONAL_SECRETS) {
      if ((valueOf(config) === '') === (valueOf(this.config) === '')) continue
      const [past, change] = valueOf(config) === '' ? ['set', 'remove'] : ['not set', 'set']
      throw new MillraceError('CONFIG_INVALID', {
        message: `${name} was ${past} at the start: expected the same, since only a restart can ${change} it`,
      })
    }
    return parseSecretsOf(config)
  }
}

/** Signs and verifies calls between nodes; undefined without `CLUSTER_SECRET`. */
export function nodeCallsOf(settings: Settings): NodeCalls | undefined {
  if (settings.config.clusterSecret === '') return undefined
  // Not `systemClock`, which ignores a clock jump for 10 minutes: other nodes have clocks of their own.
  return new NodeCalls(() => settings.secrets.cluster, machineClock)
}

/** Secrets without which a part of the service is absent, or open to all. */
const OPTIONAL_SECRETS: readonly [name: string, valueOf: (config: Config) => string][] = [
  ['ADMIN_PASSWORD', ({ admin }) => admin.password],
  ['METRICS_TOKEN', ({ metrics }) => metrics.token],
  ['PLAYBACK_SECRET', ({ playbackSecret }) => playbackSecret],
  ['CLUSTER_SECRET', ({ clusterSecret }) => clusterSecret],
]

function parseSecretsOf(config: Config): SecretsInUse {
  const { hmacSecret, jwtSecret, webhook, admin, metrics, playbackSecret, clusterSecret } = config
  const { accessKeyId, secretAccessKey, sessionToken } = config.archive
  const hmac = parseSecrets(hmacSecret)
  return {
    hmac,
    jwt: parseSecrets(jwtSecret),
    webhook: webhookKeys(webhook.secret, hmac),
    admin: admin.password,
    metrics: parseOptionalSecrets(metrics.token),
    playback: parseOptionalSecrets(playbackSecret),
    cluster: parseOptionalSecrets(clusterSecret),
    archive: {
      accessKeyId,
      secretAccessKey,
      ...(sessionToken !== '' && { sessionToken }),
    },
  }
}
