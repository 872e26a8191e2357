/**
 * TypeBox types of settings that are parsed from text, and the functions that parse them.
 *
 * @module
 */
import { isIP, type BlockList } from 'node:net'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { addressList, isAddressBlock } from '../binary/ip-address.ts'
import { parseWebhookSecret } from '../auth/standard-webhooks.ts'
import { FORMATS } from '../api/stream-options.ts'
import { MAX_WEBHOOK_URL_LENGTH, MAX_WEBHOOK_URLS, WebhookUrls } from '../api/requests.ts'
import { parseProgramChoice, PROGRAM_CHOICES } from '../mpegts/program-choice.ts'
import { isPassphrase, PASSPHRASE_LENGTH } from '../srt/wire/limits.ts'
import { parseAllowList } from '../outbound/address-rules.ts'

export const MIN_SECRET_CHARACTERS = 32

/** Shorter than secrets, since attempts to log in are limited. */
export const MIN_PASSWORD_CHARACTERS = 16

export const port = (preset: number, description: string) =>
  Type.Integer({ minimum: 0, maximum: 65_535, default: preset, description })

/** See `parsePortRange`. */
export const portRange = (description: string) =>
  Type.Refine(
    Type.String({
      default: '',
      allowed: 'two ports with a dash between, `20000-20099`',
      description,
    }),
    (text) => text === '' || parsePortRange(text) !== undefined,
  )

/** @returns undefined for an empty or malformed text */
export function parsePortRange(
  text: string,
): { readonly first: number; readonly last: number } | undefined {
  const [, from, to] = /^(\d{1,5})-(\d{1,5})$/.exec(text) ?? []
  const [first, last] = [Number(from), Number(to)]
  return first >= 1 && first <= last && last <= 65_535 ? { first, last } : undefined
}

const SECRETS_ALLOWED = `at least ${MIN_SECRET_CHARACTERS} characters without a comma, or two such values as \`new,old\``

/** See `parseSecrets`. */
export const secret = (description: string) =>
  Type.Refine(
    Type.String({ secret: true, isLong: hasLongSecrets, allowed: SECRETS_ALLOWED, description }),
    // A short secret in a pair is refused everywhere: probably one secret has a comma.
    (text) => (text.includes(',') ? hasLongSecrets(text) : text !== ''),
  )

export const httpUrl = (description: string) =>
  Type.Refine(
    Type.String({ default: '', allowed: 'an http or https URL', description }),
    (text) => text === '' || (/^https?:/.test(text) && URL.canParse(text)),
  )

const REDIS_URL = /^rediss?(\+sentinel)?:\/\/./

/** See `parseRedisUrl`. It may have a password. */
export const redisUrl = (description: string) =>
  Type.Refine(
    Type.String({
      default: '',
      secret: true,
      allowed: 'a redis:// or redis+sentinel:// URL, rediss with TLS',
      description,
    }),
    (text) => text === '' || REDIS_URL.test(text),
  )

/** See `parseRedisUrls`. They may have passwords. */
export const redisUrls = (description: string) =>
  Type.Refine(
    Type.String({
      default: '',
      secret: true,
      allowed: 'redis:// or redis+sentinel:// URLs separated by commas, rediss with TLS',
      description,
    }),
    (text) => text === '' || parseRedisUrls(text).every((url) => REDIS_URL.test(url)),
  )

/** Like `secret`, for a setting that may be empty. */
export const clusterSecret = (description: string) =>
  Type.Refine(
    Type.String({
      default: '',
      secret: true,
      isLong: hasLongSecrets,
      allowed: SECRETS_ALLOWED,
      description,
    }),
    (text) => !text.includes(',') || hasLongSecrets(text),
  )

export const optionalSecret = (description: string) =>
  Type.Refine(
    Type.String({ default: '', secret: true, allowed: SECRETS_ALLOWED, description }),
    (text) => text === '' || hasLongSecrets(text),
  )

/** Credentials of a store, by the names that all S3 tools use. */
export const awsCredential = (env: string, description: string) =>
  Type.String({
    env,
    default: '',
    secret: true,
    pattern: '^[\\x21-\\x7e]*$',
    allowed: 'printable ASCII characters without blanks',
    description,
  })

/** Secrets that clients send as `Authorization: Bearer`. */
export const bearerToken = (description: string) =>
  Type.Refine(
    Type.String({
      default: '',
      secret: true,
      allowed: `at least ${MIN_SECRET_CHARACTERS} printable ASCII characters without blanks and commas, or two such values as \`new,old\``,
      description,
    }),
    (text) => text === '' || (hasLongSecrets(text) && parseSecrets(text).every(isVisibleAscii)),
  )

function isVisibleAscii(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}

function hasLongSecrets(text: string): boolean {
  const all = parseSecrets(text)
  return all.length <= 2 && all.every((each) => each.length >= MIN_SECRET_CHARACTERS)
}

/** See `parseAddresses`. A wildcard must be the only address, since it binds the port on all addresses. */
export const addresses = (preset: string, description: string) =>
  Type.Refine(
    Type.String({
      default: preset,
      allowed: 'IP addresses separated by commas, or 0.0.0.0 or :: alone',
      description,
    }),
    (text) => {
      const all = parseAddresses(text)
      return all.every(isIP) && (all.length === 1 || !all.some(isWildcard))
    },
  )

export const passphrase = (description: string) =>
  Type.Refine(
    Type.String({ default: '', secret: true, allowed: PASSPHRASE_LENGTH, description }),
    (text) => text === '' || isPassphrase(text),
  )

export const adminPassword = (description: string) =>
  Type.String({ default: '', secret: true, allowed: 'text', description })

/** See `parseUrls`. */
export const webhookUrls = (description: string) =>
  Type.Refine(
    Type.String({
      default: '',
      allowed: `at most ${MAX_WEBHOOK_URLS} http or https URLs of at most ${MAX_WEBHOOK_URL_LENGTH} characters, separated by commas`,
      description,
    }),
    (text) => Value.Check(WebhookUrls, parseUrls(text)),
  )

export const webhookSecret = (description: string) =>
  Type.Refine(
    Type.String({
      default: '',
      secret: true,
      allowed:
        'base64 of 24 to 64 bytes, with or without `whsec_`, or two such values as `new,old`',
      description,
    }),
    (text) => text === '' || parseWebhookSecret(text) !== undefined,
  )

export const allowList = (description: string) =>
  Type.Refine(
    Type.String({
      default: '',
      allowed: 'comma-separated host names, endings (`.example.org`), IP addresses and CIDR blocks',
      description,
    }),
    (text) => parseAllowList(text) !== undefined,
  )

/** See `parseAddressBlocks`. */
export const addressBlocks = (description: string) =>
  Type.Refine(
    Type.String({
      default: '',
      allowed: 'IP addresses and CIDR blocks, separated by commas',
      description,
    }),
    (text) => text === '' || splitList(text).every(isAddressBlock),
  )

export const program = (preset: string, description: string) =>
  Type.Refine(
    Type.String({ default: preset, allowed: PROGRAM_CHOICES, description }),
    (text) => parseProgramChoice(text) !== undefined,
  )

/** `self`, or scheme, host and port. */
const SOURCE = "('self'|self|https?://(\\*\\.)?[A-Za-z0-9.-]+(:([0-9]+|\\*))?)"

/** Sources of `frame-ancestors` (CSP Level 3), without what would end the directive or the header; shells drop quotes. */
export const frameAncestors = (description: string) =>
  Type.String({
    default: '',
    pattern: `^('none'|none|${SOURCE}( ${SOURCE})*)?$`,
    allowed: '`none`, or `self` and origins (`https://*.example.org`) separated by blanks',
    description,
  })

/** See `parseFormats`. */
export const formats = (preset: string, description: string) =>
  Type.Refine(
    Type.String({
      default: preset,
      allowed: `${FORMATS.join(', ')}, or both with a comma between`,
      description,
    }),
    (text) => splitList(text).every((name) => FORMATS.some((format) => format === name)),
  )

/** Secrets of a setting, newest first. */
export type Secrets = readonly [newest: string, ...older: string[]]

/**
 * Parses one secret, or two separated by a comma during a rotation: the first signs, both are accepted. Two secrets are
 * trimmed; a single secret may begin or end with a space.
 */
export function parseSecrets(text: string): Secrets {
  if (!text.includes(',')) return [text]
  const [newest = '', ...older] = text.split(',').map((secret) => secret.trim())
  return [newest, ...older]
}

/** @returns none for an empty text */
export function parseOptionalSecrets(text: string): readonly string[] {
  return text === '' ? [] : parseSecrets(text)
}

/** Parses formats separated by commas, in any order. */
export function parseFormats(text: string): readonly (typeof FORMATS)[number][] {
  const names = splitList(text)
  return FORMATS.filter((format) => names.includes(format))
}

/** Parses addresses separated by commas; drops duplicates. */
export function parseAddresses(text: string): string[] {
  return [...new Set(splitList(text))]
}

/** @returns undefined for an empty text */
export function parseAddressBlocks(text: string): BlockList | undefined {
  return text === '' ? undefined : addressList(splitList(text))
}

/** Parses URLs separated by commas. A comma within a URL must be percent-encoded. */
export function parseUrls(text: string): string[] {
  return text === '' ? [] : splitList(text)
}

/** Parses URLs of Redis separated by commas, which may also stand between the Sentinels of one URL. */
export function parseRedisUrls(text: string): string[] {
  return text.split(/,(?=\s*[a-z+]+:\/\/)/).map((url) => url.trim())
}

export function isWildcard(address: string): boolean {
  return address === '0.0.0.0' || address === '::'
}

function splitList(text: string): string[] {
  return text.split(',').map((entry) => entry.trim())
}
