/**
 * Complete settings from those that are given: defaults, bounds, and rules that span several settings.
 *
 * @module
 */
import { Value } from 'typebox/value'
import { isSameSecret } from '../auth/same-secret.ts'
import { MillraceError } from '../errors.ts'
import { hostOf, isForbidden, parseAllowList } from '../outbound/address-rules.ts'
import { canReusePort } from '../srt/io/socket.ts'
import { usableMemoryBytes } from './machine-memory.ts'
import type { Config, GivenSettings } from './schema.ts'
import { clip, readSetting, problemWith, SETTINGS, writeSetting } from './setting-names.ts'
import {
  MIN_PASSWORD_CHARACTERS,
  MIN_SECRET_CHARACTERS,
  parseOptionalSecrets,
  parsePortRange,
  parseSecrets,
  parseUrls,
} from './setting-types.ts'

/**
 * Completes settings with the defaults.
 *
 * @param memoryBytes  memory that the process may use; some defaults depend on it
 * @param unreadable  what is wrong with settings that could not be read, by their names in the environment
 * @throws {MillraceError} `CONFIG_INVALID` with a line for each wrong setting: its value (never a secret) and the allowed values
 */
export function completeSettings(
  given: GivenSettings,
  memoryBytes = usableMemoryBytes(),
  unreadable: ReadonlyMap<string, string> = new Map(),
): Config {
  const config: Record<string, unknown> = {}
  const problems = wrongOptions(given)
  for (const setting of SETTINGS) {
    const { env, path, schema } = setting
    const preset = schema.default ?? schema.presetFor?.(memoryBytes)
    const value = readSetting(given, path) ?? preset
    writeSetting(config, path, value)
    const problem = unreadable.get(env)
    if (problem !== undefined) problems.push(problem)
    else if (!Value.Check(schema, value)) problems.push(problemWith(setting, value))
  }
  refuse(problems)
  const complete = config as Config
  // They read values that are allowed one by one.
  refuse(RULES.flatMap((problemsOf) => problemsOf(complete)))
  return complete
}

const KNOWN = new Set(['logger', ...SETTINGS.map(({ path }) => path.join('.'))])
const GROUPS = new Set(SETTINGS.filter(({ path }) => path.length > 1).map(({ path }) => path[0]))

/** A misspelt option of a program in JavaScript, or `true` in place of a group, would be off without a word. */
function wrongOptions(given: object): string[] {
  return Object.entries(given).flatMap(([name, value]: [string, unknown]) => {
    const isGroup = GROUPS.has(name)
    const expected = name === 'http' ? 'an object or false' : 'an object'
    // Without the value, which may be a secret.
    if (isGroup && typeof (value ?? {}) !== 'object') return [`${name} must be ${expected}`]
    const names = isGroup ? Object.keys(value ?? {}).map((key) => `${name}.${key}`) : [name]
    return names
      .filter((option) => !KNOWN.has(option))
      .map((option) => `unknown option ${option}: expected one of docs/settings.md`)
  })
}

function refuse(problems: readonly string[]): void {
  const [first, ...others] = problems
  if (first === undefined) return
  const message =
    others.length === 0 ? first : ['several settings are wrong:', ...problems].join('\n  ')
  throw new MillraceError('CONFIG_INVALID', { message })
}

/** Rules that span several settings; each returns a sentence for everything that breaks it. */
const RULES: readonly ((config: Config) => string[])[] = [
  equalSecrets,
  forbiddenWebhookUrls,
  reversedSegmentDurations,
  missingTlsFile,
  unusedApiHost,
  unsharedPort,
  unsharedSrtPort,
  unsuitedIngestWorkers,
  incompleteCluster,
  unsuitedStreamPorts,
  incompleteArchive,
]

/** Ports of streams on which each node of a cluster may listen. */
const MAX_CLUSTER_PORTS = 256

/** An ingest node of a cluster listens on all of `SRT_STREAM_PORTS`, for streams alone. */
function unsuitedStreamPorts(config: Config): string[] {
  const { role, srt, srtla } = config
  const range = parsePortRange(srt.streamPorts)
  if (!isClustered(config) || role === 'edge' || range === undefined) return []
  const { first, last } = range
  if (last - first >= MAX_CLUSTER_PORTS)
    return [
      `SRT_STREAM_PORTS is ${srt.streamPorts}: expected at most ${MAX_CLUSTER_PORTS} ports in a cluster, whose nodes listen on all of them`,
    ]
  return Object.entries({ SRT_PORT: srt.port, SRTLA_PORT: srtla.port })
    .filter(([, port]) => port >= first && port <= last)
    .map(
      ([name, port]) =>
        `SRT_STREAM_PORTS is ${srt.streamPorts} and ${name} is ${port}: expected ports without it in a cluster, whose nodes listen on all of them`,
    )
}

/** Nodes of a cluster sign their calls, and a backup has a cluster. */
function incompleteCluster({ redisUrl, clusterSecret, clusterBackup }: Config): string[] {
  if (redisUrl === '') {
    return clusterBackup
      ? ['CLUSTER_BACKUP is set and REDIS_URL is not: expected the registry of a cluster']
      : []
  }
  if (clusterSecret !== '') return []
  return [
    'REDIS_URL is set and CLUSTER_SECRET is not: expected one that all nodes have, since it signs their calls',
  ]
}

function incompleteArchive({ archive, hls }: Config): string[] {
  const { mode, url, endpoint, publicUrl, accessKeyId, secretAccessKey } = archive
  if (url === '') {
    const useless = Object.entries({
      ARCHIVE: mode === 'all' || mode === 'request',
      ARCHIVE_ENDPOINT: endpoint !== '',
      ARCHIVE_PUBLIC_URL: publicUrl !== '',
      HLS_DVR_SEC: hls.dvrSec > 0,
    })
    return useless
      .filter(([, isSet]) => isSet)
      .map(([name]) => `${name} is set and ARCHIVE_URL is not: expected the bucket of the archive`)
  }
  if (mode === 'off' && hls.dvrSec > 0)
    return ['HLS_DVR_SEC is set and ARCHIVE is off: expected streams that are archived']
  if (mode === 'off' || (accessKeyId !== '' && secretAccessKey !== '')) return []
  const missing = accessKeyId === '' ? 'AWS_ACCESS_KEY_ID' : 'AWS_SECRET_ACCESS_KEY'
  return [`ARCHIVE_URL is set and ${missing} is not: expected the credentials of the store`]
}

/**
 * No two settings have the same secret. Otherwise an API client could sign stream keys, and a webhook
 * receiver, Prometheus, an encoder or an operator could sign API requests or stream keys.
 */
function equalSecrets(config: Config): string[] {
  const { hmacSecret, jwtSecret, playbackSecret, clusterSecret, webhook } = config
  const { metrics, srt, admin, archive } = config
  const secrets = Object.entries({
    HMAC_SECRET: parseSecrets(hmacSecret),
    JWT_SECRET: parseSecrets(jwtSecret),
    WEBHOOK_SECRET: parseOptionalSecrets(webhook.secret),
    PLAYBACK_SECRET: parseOptionalSecrets(playbackSecret),
    CLUSTER_SECRET: parseOptionalSecrets(clusterSecret),
    METRICS_TOKEN: parseOptionalSecrets(metrics.token),
    AWS_SECRET_ACCESS_KEY: parseOptionalSecrets(archive.secretAccessKey),
    // These may contain a comma. Their halves must not be secrets either.
    SRT_PASSPHRASE: parseOptionalSecrets(srt.passphrase),
    ADMIN_PASSWORD: parseOptionalSecrets(admin.password),
  })
  return secrets.flatMap(([name, values], index) =>
    secrets
      .slice(index + 1)
      .filter(([, others]) => values.some((value) => others.some((it) => isSameSecret(value, it))))
      .map(
        ([otherName]) =>
          `${name} and ${otherName} are the same: expected different secrets; \`millrace keygen\` prints one`,
      ),
  )
}

function forbiddenWebhookUrls({ defaultWebhookUrls, webhook }: Config): string[] {
  const allowed = parseAllowList(webhook.allow)
  if (allowed === undefined) return []
  const hosts = parseUrls(defaultWebhookUrls).map((url) => hostOf(new URL(url)))
  const forbidden = hosts.find((host) => isForbidden(allowed, host))
  if (forbidden === undefined) return []
  return [
    `DEFAULT_WEBHOOK_URLS leads to ${clip(forbidden)}: expected no link-local, metadata or multicast address, and none beyond WEBHOOK_ALLOW`,
  ]
}

function reversedSegmentDurations({ hls: { segmentSec, maxSegmentSec } }: Config): string[] {
  if (maxSegmentSec >= segmentSec) return []
  return [
    `HLS_MAX_SEGMENT_SEC is ${maxSegmentSec}: expected at least HLS_SEGMENT_SEC, ${segmentSec}`,
  ]
}

function missingTlsFile({ tls: { cert, key } }: Config): string[] {
  if ((cert === '') === (key === '')) return []
  const [missing, given] = cert === '' ? ['TLS_CERT', 'TLS_KEY'] : ['TLS_KEY', 'TLS_CERT']
  return [`${missing} is not set, ${given} is: expected both or none`]
}

function unusedApiHost({ apiHost, apiPort, metrics }: Config): string[] {
  if (apiHost === '' || apiPort !== 0 || metrics.port !== 0) return []
  return ['API_HOST is set, API_PORT and METRICS_PORT are not: expected one of these ports']
}

function unsharedPort({ http: { port, workers } }: Config): string[] {
  if (workers === 0 || port !== 0) return []
  return [`HTTP_PORT is 0, HTTP_WORKERS is ${workers}: expected a port that all workers share`]
}

/** Processes that receive SRT share its port, and are nodes of a cluster of their own. */
function unsuitedIngestWorkers({ ingest: { workers }, http, srt, redisUrl }: Config): string[] {
  if (workers === 1) return []
  const is = `INGEST_WORKERS is ${workers}`
  const { node } = process.versions
  return [
    ...(canReusePort(node) ? [] : [`${is} and this is Node.js ${node}: expected 22.12 or newer`]),
    ...(redisUrl === '' ? [] : [`${is} and REDIS_URL is set: expected several nodes instead`]),
    ...(srt.port === 0 ? [`${is} and SRT_PORT is 0: expected a port that all of them share`] : []),
    ...(http.port === 0 ? [`${is} and HTTP_PORT is 0: expected a port for HTTP_WORKERS`] : []),
  ]
}

function unsharedSrtPort({ srt: { reusePort }, redisUrl }: Config): string[] {
  if (!reusePort) return []
  const { node } = process.versions
  if (!canReusePort(node))
    return [`SRT_REUSE_PORT is true and this is Node.js ${node}: expected 22.12 or newer`]
  if (redisUrl !== '') return []
  return [
    'SRT_REUSE_PORT is true and REDIS_URL is not set: expected nodes of a cluster, since each takes encoders of all streams',
  ]
}

/** Whether streams are in a registry that several processes share. */
export function isClustered({ redisUrl, ingest }: Pick<Config, 'redisUrl' | 'ingest'>): boolean {
  return redisUrl !== '' || ingest.workers > 1
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
