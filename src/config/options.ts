/**
 * Complete configuration from options: defaults, bounds, and rules that span several settings.
 *
 * @module
 */
import { Value } from 'typebox/value'
import { isSameSecret } from '../auth/same-secret.ts'
import { MillraceError } from '../errors.ts'
import { hostOf, isForbidden, parseAllowList } from '../webhook/address-rules.ts'
import { usableMemoryBytes } from './machine-memory.ts'
import type { Config, Options } from './schema.ts'
import { allowedValues, SETTINGS, type Setting } from './settings.ts'
import { readSetting, writeSetting } from './setting-path.ts'
import {
  MIN_PASSWORD_CHARACTERS,
  MIN_SECRET_CHARACTERS,
  parseOptionalSecrets,
  parseSecrets,
  parseUrls,
} from './setting-types.ts'

/** Maximum length of a value quoted in a message, so that the message has at most 160 characters. */
const MAX_QUOTED_CHARACTERS = 40

/**
 * Completes options with the defaults.
 *
 * @param memoryBytes  memory that the process may use; some defaults depend on it
 * @throws {MillraceError} `CONFIG_INVALID` with the setting, its value (never a secret) and the allowed values
 */
export function completeOptions(options: Options, memoryBytes = usableMemoryBytes()): Config {
  const config: Record<string, unknown> = {}
  for (const setting of SETTINGS) {
    const { path, schema } = setting
    const preset = schema.default ?? schema.presetFor?.(memoryBytes)
    const value = readSetting(options, path) ?? preset
    if (!Value.Check(schema, value)) throw invalid(setting, value)
    writeSetting(config, path, value)
  }
  const complete = config as Config
  checkSecretsDiffer(complete)
  checkDefaultWebhookUrls(complete)
  checkSegmentDurations(complete)
  checkTlsFiles(complete)
  checkApiHost(complete)
  checkWorkers(complete)
  checkCluster(complete)
  return complete
}

/** Checks that nodes of a cluster can sign their calls, and that a backup has a cluster. */
function checkCluster({ redisUrl, clusterSecret, clusterBackup }: Config): void {
  if (redisUrl === '' && clusterBackup) {
    throw new MillraceError('CONFIG_INVALID', {
      message: 'CLUSTER_BACKUP is set and REDIS_URL is not: expected the registry of a cluster',
    })
  }
  if (redisUrl === '' || clusterSecret !== '') return
  throw new MillraceError('CONFIG_INVALID', {
    message:
      'REDIS_URL is set and CLUSTER_SECRET is not: expected one that all nodes have, since it signs their calls',
  })
}

/**
 * Checks that no two settings have the same secret. Otherwise an API client could sign stream keys, and a webhook
 * receiver, Prometheus, an encoder or an operator could sign API requests or stream keys.
 */
function checkSecretsDiffer(config: Config): void {
  const { hmacSecret, jwtSecret, playbackSecret, clusterSecret, webhook } = config
  const { metrics, srt, admin } = config
  const secrets = Object.entries({
    HMAC_SECRET: parseSecrets(hmacSecret),
    JWT_SECRET: parseSecrets(jwtSecret),
    WEBHOOK_SECRET: parseOptionalSecrets(webhook.secret),
    PLAYBACK_SECRET: parseOptionalSecrets(playbackSecret),
    CLUSTER_SECRET: parseOptionalSecrets(clusterSecret),
    METRICS_TOKEN: parseOptionalSecrets(metrics.token),
    // These may contain a comma. Their halves must not be secrets either.
    SRT_PASSPHRASE: parseOptionalSecrets(srt.passphrase),
    ADMIN_PASSWORD: parseOptionalSecrets(admin.password),
  })
  for (const [index, [name, values]] of secrets.entries()) {
    for (const [otherName, others] of secrets.slice(index + 1)) {
      if (!values.some((value) => others.some((other) => isSameSecret(value, other)))) continue
      throw new MillraceError('CONFIG_INVALID', {
        message: `${name} and ${otherName} are the same: expected different secrets; \`millrace keygen\` prints one`,
      })
    }
  }
}

function checkDefaultWebhookUrls({ defaultWebhookUrls, webhook }: Config): void {
  const allowed = parseAllowList(webhook.allow)
  if (allowed === undefined) return
  const hosts = parseUrls(defaultWebhookUrls).map((url) => hostOf(new URL(url)))
  const forbidden = hosts.find((host) => isForbidden(allowed, host))
  if (forbidden === undefined) return
  throw new MillraceError('CONFIG_INVALID', {
    message: `DEFAULT_WEBHOOK_URLS leads to ${clip(forbidden)}: expected no link-local, metadata or multicast address, and none beyond WEBHOOK_ALLOW`,
  })
}

function checkSegmentDurations({ hls: { segmentSec, maxSegmentSec } }: Config): void {
  if (maxSegmentSec >= segmentSec) return
  throw new MillraceError('CONFIG_INVALID', {
    message: `HLS_MAX_SEGMENT_SEC is ${maxSegmentSec}: expected at least HLS_SEGMENT_SEC, ${segmentSec}`,
  })
}

function checkTlsFiles({ tls: { cert, key } }: Config): void {
  if ((cert === '') === (key === '')) return
  const [missing, given] = cert === '' ? ['TLS_CERT', 'TLS_KEY'] : ['TLS_KEY', 'TLS_CERT']
  throw new MillraceError('CONFIG_INVALID', {
    message: `${missing} is not set, ${given} is: expected both or none`,
  })
}

function checkApiHost({ apiHost, apiPort, metrics }: Config): void {
  if (apiHost === '' || apiPort !== 0 || metrics.port !== 0) return
  throw new MillraceError('CONFIG_INVALID', {
    message: 'API_HOST is set, API_PORT and METRICS_PORT are not: expected one of these ports',
  })
}

function checkWorkers({ http: { port, workers } }: Config): void {
  if (workers === 0 || port !== 0) return
  throw new MillraceError('CONFIG_INVALID', {
    message: `HTTP_PORT is 0, HTTP_WORKERS is ${workers}: expected a port that all workers share`,
  })
}

/** Values of all secret settings, which no log line may contain. */
export function secretsOf(config: Config): readonly string[] {
  return SETTINGS.filter(({ schema }) => schema.secret === true).flatMap(({ path }) =>
    parseSecrets(String(readSetting(config, path))),
  )
}

/** Warnings about settings that are accepted although they protect less than they seem to. */
export function configWarnings(config: Config): string[] {
  return [...shortSecretWarnings(config), ...exposureWarnings(config)]
}

function exposureWarnings({ apiHost, apiPort, apiFrom, http, metrics }: Config): string[] {
  const warnings: string[] = []
  if (apiHost !== '' && apiPort === 0) {
    warnings.push(
      'API_HOST is set, API_PORT is not. The API stays on HTTP_PORT, at HTTP_HOST. Set API_PORT to serve it at API_HOST.',
    )
  }
  const isOpen = metrics.token === '' && apiFrom === '' && apiHost === '' && !isLocal(http.host)
  if (metrics.port !== 0 && isOpen) {
    warnings.push(
      'METRICS_PORT is open to all addresses. Anyone who reaches it reads the names of streams. Set METRICS_TOKEN, API_FROM or API_HOST.',
    )
  }
  return warnings
}

function isLocal(host: string): boolean {
  return /^(127\.|::1$|localhost$)/.test(host)
}

function shortSecretWarnings(config: Config): string[] {
  const { hmacSecret, jwtSecret, clusterSecret, admin } = config
  const secrets = {
    HMAC_SECRET: { secrets: parseSecrets(hmacSecret), danger: 'controls streams' },
    JWT_SECRET: { secrets: parseSecrets(jwtSecret), danger: 'controls streams' },
    CLUSTER_SECRET: { secrets: parseOptionalSecrets(clusterSecret), danger: 'passes for a node' },
  }
  const warnings = Object.entries(secrets)
    .filter(([, { secrets: all }]) => all.some((each) => each.length < MIN_SECRET_CHARACTERS))
    .map(
      ([name, { danger }]) =>
        `${name} has fewer than ${MIN_SECRET_CHARACTERS} characters. An attacker who guesses it ${danger}. Set one that \`millrace keygen\` prints.`,
    )
  if (admin.password !== '' && admin.password.length < MIN_PASSWORD_CHARACTERS) {
    warnings.push(
      `ADMIN_PASSWORD has fewer than ${MIN_PASSWORD_CHARACTERS} characters. Anyone who guesses it controls streams. Set a longer one, or API_FROM.`,
    )
  }
  return warnings
}

function invalid(setting: Setting, value: unknown): MillraceError {
  const { env, schema } = setting
  const isRequired = schema.default === undefined && schema.presetFor === undefined
  const advice = isRequired ? '; `millrace keygen` prints one' : ''
  return new MillraceError('CONFIG_INVALID', {
    message: `${env} ${describe(value, setting)}: expected ${allowedValues(setting)}${advice}`,
  })
}

function describe(value: unknown, { schema }: Setting): string {
  if (value === undefined) return 'is not set'
  if (schema.secret !== true) return `is ${clip(JSON.stringify(value))}`
  if (typeof value !== 'string') return 'is not text'
  return value === '' ? 'is empty' : `has ${Buffer.byteLength(value)} bytes`
}

function clip(text: string): string {
  return text.length <= MAX_QUOTED_CHARACTERS ? text : `${text.slice(0, MAX_QUOTED_CHARACTERS)}…`
}
