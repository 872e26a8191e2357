/**
 * Every setting, declared once: type, default, bounds, and through its path the name in the environment
 * (`srt.port` -> `SRT_PORT`) and as a flag (`--srt-port`). The README table is made from it.
 *
 * @module
 */
import { isIP } from 'node:net'
import { parseArgs } from 'node:util'
import { Type, type Static, type TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { isSameSecret } from '../auth/same-secret.ts'
import { parseWebhookSecret } from '../auth/standard-webhooks.ts'
import { MillraceError } from '../errors.ts'
import { WebhookUrls } from '../contract/schema.ts'
import { quarterMib, usableMemoryBytes } from './machine-memory.ts'
import { parseProgramChoice, PROGRAM_CHOICES } from '../mpegts/program-choice.ts'
import { isPassphrase, MAX_LATENCY_MS, PASSPHRASE_LENGTH } from '../srt/wire/limits.ts'
import { hostOf, isForbidden, parseAllowList } from '../webhook/address-rules.ts'

const MIN_CACHE_MIB = 16
const MAX_CACHE_MIB = 1_048_576

const MIN_SECRET_CHARACTERS = 32

const port = (preset: number, description: string) =>
  Type.Integer({ minimum: 0, maximum: 65_535, default: preset, description })

/** For `parseSecrets`. */
const secret = (description: string) =>
  Type.Refine(
    Type.String({
      secret: true,
      takes:
        'at least 32 characters without a comma; or two such, new and old, with a comma between',
      description,
    }),
    (text) => {
      const all = parseSecrets(text)
      // A short one alone is only warned of; a short part of a pair was not meant to be one.
      if (all.length === 1) return text !== ''
      return all.length === 2 && all.every((each) => each.length >= MIN_SECRET_CHARACTERS)
    },
  )

/** For `parseAddresses`. A wildcard stands alone: it takes the port at every address that could stand beside it. */
const addresses = (preset: string, description: string) =>
  Type.Refine(
    Type.String({
      default: preset,
      takes: 'IP addresses separated by commas, or 0.0.0.0 or :: alone',
      description,
    }),
    (text) => {
      const all = parseAddresses(text)
      return all.every(isIP) && (all.length === 1 || !all.some(isWildcard))
    },
  )

const passphrase = (description: string) =>
  Type.Refine(
    Type.String({ default: '', secret: true, takes: PASSPHRASE_LENGTH, description }),
    (text) => text === '' || isPassphrase(text),
  )

/** For `parseUrls`. */
const webhookUrls = (description: string) =>
  Type.Refine(
    Type.String({
      default: '',
      takes: 'at most 16 http or https URLs of at most 2048 characters, separated by commas',
      description,
    }),
    (text) => Value.Check(WebhookUrls, parseUrls(text)),
  )

const webhookSecret = (description: string) =>
  Type.Refine(
    Type.String({
      default: '',
      secret: true,
      takes:
        'base64 of 24 to 64 bytes, with or without `whsec_`; or two, new and old, with a comma between them',
      description,
    }),
    (text) => text === '' || parseWebhookSecret(text) !== undefined,
  )

const allowList = (description: string) =>
  Type.Refine(
    Type.String({
      default: '',
      takes:
        'host names, `.example.org` for all names that end so, IP addresses and CIDR blocks, separated by commas',
      description,
    }),
    (text) => parseAllowList(text) !== undefined,
  )

const program = (preset: string, description: string) =>
  Type.Refine(
    Type.String({ default: preset, takes: PROGRAM_CHOICES, description }),
    (text) => parseProgramChoice(text) !== undefined,
  )

/** The library's options are of this shape; the environment and the flags fill the same one. */
export const Config = Type.Object({
  hmacSecret: secret(
    'signs API requests, and webhooks without `WEBHOOK_SECRET`; `millrace keygen` makes one',
  ),
  jwtSecret: secret('signs stream keys; `millrace keygen` makes one'),
  http: Type.Object({
    host: Type.String({ default: '0.0.0.0', description: 'address the HTTP server listens on' }),
    port: port(8080, 'TCP port of the API and of playback; 0 takes a free one'),
    maxConnections: Type.Integer({
      minimum: 16,
      maximum: 1_000_000,
      default: 10_000,
      description:
        'TCP connections at once, a quarter of them from one address (loopback: all); others get 503',
    }),
    maxBufferedMib: Type.Integer({
      minimum: 16,
      maximum: 1_048_576,
      default: 256,
      description:
        'memory for replies that wait for slow readers, beside the cache; over it the slowest are cut',
    }),
  }),
  srt: Type.Object({
    host: addresses(
      '0.0.0.0',
      'addresses of this machine that encoders call; `0.0.0.0`: any of IPv4, `::`: any at all',
    ),
    port: port(10_080, 'UDP port for all encoders; 0 takes a free one'),
    latencyMs: Type.Integer({
      minimum: 20,
      maximum: MAX_LATENCY_MS,
      default: 120,
      description: 'least time SRT may take to repair a loss; an encoder may ask for more',
    }),
    passphrase: passphrase('what encoders must encrypt with; none: they must not'),
  }),
  public: Type.Object({
    host: Type.String({
      default: '',
      description:
        "host in the SRT URL; empty: the first of `SRT_HOST`, or this machine's where that is any",
    }),
    url: Type.String({
      default: '',
      pattern: '^(https?://.+)?$',
      description:
        'base of playlist URLs, an http or https URL; empty: `http://PUBLIC_HOST:HTTP_PORT`',
    }),
  }),
  ts: Type.Object({
    program: program(
      'first',
      'which program of a transport stream is carried: the first that has video, that of a number, or all as one; `program=` in a stream key goes before',
    ),
  }),
  hls: Type.Object({
    segmentSec: Type.Number({
      minimum: 0.5,
      maximum: 60,
      default: 2,
      description: 'least length of a segment; it ends at the next key frame',
    }),
    maxSegmentSec: Type.Integer({
      minimum: 1,
      maximum: 60,
      default: 10,
      description: 'a group of pictures that outlasts it is cut between key frames',
    }),
    playlistSegments: Type.Integer({
      minimum: 3,
      maximum: 1000,
      default: 6,
      description: 'segments a playlist lists at least',
    }),
    tracks: Type.Enum(['compatible', 'all'], {
      default: 'compatible',
      description:
        'tracks that are carried: `all`, or those that every player takes (H.264, H.265, AAC, MP3, MP2, AC-3, ID3)',
    }),
    lingerSec: Type.Integer({
      minimum: 0,
      maximum: 86_400,
      default: 60,
      description: 'how long a stopped stream can still be fetched',
    }),
  }),
  apiMaxAgeSec: Type.Integer({
    minimum: 0,
    maximum: 86_400,
    default: 0,
    description:
      'requests whose `issued_at` is further from now are refused, and those without one; 0: they are not',
  }),
  resumeStreams: Type.Boolean({
    default: true,
    description:
      'whether a stream key from before the start of the process brings its stream back, without a call of the API',
  }),
  defaultWebhookUrls: webhookUrls(
    'webhooks of streams that are started without `webhook_urls` or resumed, and of the start of the service',
  ),
  maxStreams: Type.Integer({
    minimum: 1,
    maximum: 100_000,
    default: 1000,
    description: 'streams that are not stopped; a start beyond them is answered with 503',
  }),
  webhook: Type.Object({
    secret: webhookSecret(
      'signs webhooks; empty: the bytes of `HMAC_SECRET`. `millrace webhook-secret` prints it for receivers',
    ),
    allow: allowList(
      'the only receivers of webhooks; empty: all. Link-local and metadata addresses never are',
    ),
  }),
  reconnectGraceSec: Type.Integer({
    minimum: 0,
    maximum: 86_400,
    default: 120,
    description: 'how long a stream waits for a lost encoder before it stops',
  }),
  maxPublishers: Type.Integer({
    minimum: 1,
    maximum: 100_000,
    default: 1000,
    description: 'encoders that are connected; one more is refused with SRT reject code 1003',
  }),
  ingest: Type.Object({
    maxMbps: Type.Number({
      minimum: 0,
      maximum: 10_000,
      default: 100,
      description:
        'payload of one publisher, in Mbit/s as a mean of 5 s; one above it is disconnected; 0: no limit',
    }),
  }),
  cache: Type.Object({
    maxMib: Type.Integer({
      minimum: MIN_CACHE_MIB,
      maximum: MAX_CACHE_MIB,
      default: quarterMib(usableMemoryBytes(), MIN_CACHE_MIB, MAX_CACHE_MIB),
      preset: 'a quarter of memory',
      description:
        'memory for segments of all streams; where it is short, playlists are, and then segments are missing',
    }),
  }),
  logLevel: Type.Enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
    default: 'info',
    description: 'least severity that is logged',
  }),
})

export type Config = Static<typeof Config>

/** `Config` as a caller writes it: what is left out takes its default. */
export type Options = {
  readonly [Key in keyof Config as Key extends RequiredKey ? Key : never]: string
} & {
  readonly [
    Key in keyof Config as Key extends RequiredKey ? never : Key
  ]?: Config[Key] extends object ? Partial<Config[Key]> : Config[Key]
}

type RequiredKey = 'hmacSecret' | 'jwtSecret'

/** One leaf of the schema and its names. */
export interface Setting {
  readonly path: readonly string[]
  /** Name in the environment. */
  readonly env: string
  /** Name as a flag, without the dashes. */
  readonly flag: string
  readonly schema: TSchema & LeafKeywords
}

interface LeafKeywords {
  readonly type?: string
  readonly enum?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: string | number | boolean
  /** The default in words, where it depends on the machine. */
  readonly preset?: string
  /** The value is never printed. */
  readonly secret?: boolean
  /** What it takes, where type and bounds do not say it. */
  readonly takes?: string
  readonly description?: string
}

/** All settings in the order of the schema. */
export const SETTINGS: readonly Setting[] = leaves(Config, [])

function leaves(schema: TSchema, path: readonly string[]): Setting[] {
  const properties = (schema as { properties?: Record<string, TSchema> }).properties
  if (properties !== undefined) {
    return Object.entries(properties).flatMap(([key, child]) => leaves(child, [...path, key]))
  }
  const words = path.flatMap((key) => key.split(/(?=[A-Z])/)).map((word) => word.toLowerCase())
  return [{ path, env: words.join('_').toUpperCase(), flag: words.join('-'), schema }]
}

/**
 * Completes options with the defaults.
 *
 * @throws {MillraceError} `CONFIG_INVALID` that names the setting, its value (never a secret) and what it takes
 */
export function completeOptions(options: Options): Config {
  const config: Record<string, unknown> = {}
  for (const setting of SETTINGS) {
    const value = read(options, setting.path) ?? setting.schema.default
    if (!Value.Check(setting.schema, value)) throw invalid(setting, value)
    write(config, setting.path, value)
  }
  const complete = config as Config
  checkSecretsDiffer(complete)
  checkDefaultWebhookUrls(complete)
  if (complete.hls.maxSegmentSec < complete.hls.segmentSec) {
    throw new MillraceError('CONFIG_INVALID', {
      message: `HLS_MAX_SEGMENT_SEC is ${complete.hls.maxSegmentSec}: expected at least HLS_SEGMENT_SEC, ${complete.hls.segmentSec}`,
    })
  }
  return complete
}

/** Whoever signs API requests must not be able to make stream keys, nor a receiver of webhooks either of them. */
function checkSecretsDiffer({ hmacSecret, jwtSecret, webhook }: Config): void {
  const secrets = Object.entries({
    HMAC_SECRET: parseSecrets(hmacSecret),
    JWT_SECRET: parseSecrets(jwtSecret),
    WEBHOOK_SECRET: webhook.secret === '' ? [] : parseSecrets(webhook.secret),
  })
  for (const [index, [name, values]] of secrets.entries()) {
    for (const [otherName, others] of secrets.slice(index + 1)) {
      if (!values.some((value) => others.some((other) => isSameSecret(value, other)))) continue
      throw new MillraceError('CONFIG_INVALID', {
        message: `${name} and ${otherName} are the same: expected different ones, since one must not open what the other guards; \`millrace keygen\` prints one`,
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
    message: `DEFAULT_WEBHOOK_URLS leads to ${forbidden}: expected no link-local, metadata or multicast address, and none beyond WEBHOOK_ALLOW`,
  })
}

/**
 * Options from the environment and, above it, from flags. An empty variable counts as not set.
 *
 * @param flags  values by flag name, see `parseFlags`
 */
export function readOptions(
  env: Readonly<Record<string, string | undefined>>,
  flags: Readonly<Record<string, string | undefined>>,
): Partial<Options> {
  const options: Record<string, unknown> = {}
  for (const { env: name, flag, path, schema } of SETTINGS) {
    const text = flags[flag] ?? (env[name] === '' ? undefined : env[name])
    if (text !== undefined) write(options, path, fromText(text, schema))
  }
  return options
}

/** Splits arguments into flags of this module's names, flags of `own`, and what stands alone. */
export function parseFlags(args: readonly string[], own: Record<string, { type: 'boolean' }> = {}) {
  const settings = Object.fromEntries(
    SETTINGS.map(({ flag }) => [flag, { type: 'string' as const }]),
  )
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { ...settings, ...own },
    allowPositionals: true,
  })
  return { values: values as Record<string, string | undefined>, positionals }
}

/** What no line of a log may hold. */
export function secretsOf(config: Config): readonly string[] {
  return SETTINGS.filter(({ schema }) => schema.secret === true).flatMap(({ path }) =>
    parseSecrets(String(read(config, path))),
  )
}

/** Sentences about what works but should not stay as it is. */
export function configWarnings(config: Config): string[] {
  return (['hmacSecret', 'jwtSecret'] as const)
    .filter((key) =>
      parseSecrets(config[key]).some((secret) => secret.length < MIN_SECRET_CHARACTERS),
    )
    .map(
      (key) =>
        `${envName([key])} has fewer than 32 characters; \`millrace keygen\` makes a good one`,
    )
}

/** The table of the README, in Markdown. */
export function configTable(): string {
  const rows = SETTINGS.map(({ env, schema }) => {
    const preset = schema.preset ?? String(schema.default ?? '(required)')
    return `| \`${env}\` | ${preset === '' ? '(none)' : preset} | ${allowed(schema)} | ${schema.description} |`
  })
  return ['| setting | default | takes | meaning |', '|---|---|---|---|', ...rows].join('\n')
}

/**
 * The secrets of a setting that takes two during a rotation: the first signs, all are accepted. One without a comma is
 * taken to the letter.
 */
export function parseSecrets(text: string): Secrets {
  if (!text.includes(',')) return [text]
  const [newest = '', ...older] = text.split(',').map((secret) => secret.trim())
  return [newest, ...older]
}

/** Newest first. */
export type Secrets = readonly [newest: string, ...older: string[]]

/** The addresses of a setting that takes several, each of them once. */
export function parseAddresses(text: string): string[] {
  return [...new Set(text.split(',').map((address) => address.trim()))]
}

/** URLs separated by commas, which stand encoded within one. */
export function parseUrls(text: string): string[] {
  return text === '' ? [] : text.split(',').map((url) => url.trim())
}

export function isWildcard(address: string): boolean {
  return address === '0.0.0.0' || address === '::'
}

function envName(path: readonly string[]): string {
  return (
    SETTINGS.find((setting) => setting.path.join('.') === path.join('.'))?.env ?? path.join('.')
  )
}

function fromText(text: string, schema: LeafKeywords): unknown {
  if (schema.type === 'boolean' && /^(true|false)$/.test(text)) return text === 'true'
  const isNumber = schema.type === 'integer' || schema.type === 'number'
  return isNumber && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
}

function invalid(setting: Setting, value: unknown): MillraceError {
  const { env, schema } = setting
  const advice = schema.default === undefined ? '; `millrace keygen` prints a good one' : ''
  return new MillraceError('CONFIG_INVALID', {
    message: `${env} ${describe(value, schema)}: expected ${allowed(schema)}${advice}`,
  })
}

function describe(value: unknown, schema: LeafKeywords): string {
  if (value === undefined) return 'is not set'
  if (schema.secret !== true) return `is ${JSON.stringify(value)}`
  if (typeof value !== 'string') return 'is no text'
  return value === '' ? 'is empty' : `has ${Buffer.byteLength(value)} bytes`
}

function allowed(schema: LeafKeywords): string {
  if (schema.takes !== undefined) return schema.takes
  if (schema.enum !== undefined) return `one of ${schema.enum.join(', ')}`
  if (schema.type === 'integer') return `a whole number from ${schema.minimum} to ${schema.maximum}`
  if (schema.type === 'boolean') return 'true or false'
  if (schema.type === 'number') return `a number from ${schema.minimum} to ${schema.maximum}`
  return 'text'
}

function read(object: object, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (value as Record<string, unknown> | undefined)?.[key],
    object,
  )
}

function write(object: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [key, ...rest] = path
  if (key === undefined) return
  if (rest.length === 0) object[key] = value
  else write((object[key] ??= {}) as Record<string, unknown>, rest, value)
}
