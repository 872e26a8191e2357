/**
 * The SRT URL of an encoder: `srt://host:port?streamid=…&latency=ms&passphrase=…&pbkeylen=…`.
 *
 * In a value, `&` and `%` must be percent-encoded; the commas and equals signs of a stream key need no encoding.
 *
 * @module
 */
import { MillraceError } from '../errors.ts'
import type { KeyBytes } from '../srt/index.ts'
import { isPassphrase, MAX_STREAM_ID_BYTES, PASSPHRASE_LENGTH } from '../srt/wire/limits.ts'

export interface PublishTarget {
  /** Name or address; an IPv6 address without brackets. */
  readonly host: string
  readonly port: number
  /** Stream key; a secret. */
  readonly streamId: string
  readonly latencyMs: number
  /** A secret. */
  readonly passphrase?: string
  readonly keyLengthBytes?: KeyBytes
}

const DEFAULT_LATENCY_MS = 120
/** Maximum of the 16-bit field in the handshake (draft-sharabayko-srt 3.2.1.1). */
const MAX_HANDSHAKE_LATENCY_MS = 65_535

const PARAMETERS = ['streamid', 'latency', 'passphrase', 'pbkeylen', 'mode']

const SHAPE = 'srt://host:port?streamid=mode=publish,rid=…,token=…&latency=120'

/**
 * @throws {MillraceError} `CONFIG_INVALID`; the message names the mistake and never contains the stream key
 */
export function parsePublishUrl(url: string): PublishTarget {
  // A StreamID may contain `#`, which would end the query in other URLs.
  const queryAt = url.indexOf('?')
  const base = queryAt === -1 ? url : url.slice(0, queryAt)
  const parameters = parseQuery(queryAt === -1 ? '' : url.slice(queryAt + 1))
  const mode = parameters.get('mode') ?? 'caller'
  if (mode !== 'caller') throw invalid('mode is not caller')
  return {
    ...parseAuthority(base),
    streamId: checkedStreamId(parameters.get('streamid') ?? ''),
    latencyMs: checkedLatency(parameters.get('latency')),
    ...parseEncryption(parameters.get('passphrase'), parameters.get('pbkeylen')),
  }
}

function parseAuthority(base: string): { host: string; port: number } {
  const parsed = URL.canParse(base) ? new URL(base) : undefined
  if (parsed?.protocol !== 'srt:') throw invalid('it does not begin with srt://')
  if (parsed.hostname === '') throw invalid('the host is missing')
  if (parsed.port === '' || parsed.port === '0') throw invalid('the port is missing')
  if (parsed.username !== '' || !['', '/'].includes(parsed.pathname)) {
    throw invalid('it has a user name or a path')
  }
  return { host: parsed.hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(parsed.port) }
}

/** Parses the query without `URLSearchParams`, which would decode a plus sign as a space. */
function parseQuery(query: string): Map<string, string> {
  const parameters = new Map<string, string>()
  for (const pair of query.split('&').filter((each) => each !== '')) {
    const equalsAt = pair.indexOf('=')
    const name = equalsAt === -1 ? pair : pair.slice(0, equalsAt)
    if (!PARAMETERS.includes(name)) {
      throw invalid(`it may only have ${PARAMETERS.join(', ')}`)
    }
    if (parameters.has(name)) throw invalid(`${name} is repeated`)
    parameters.set(name, decode(name, equalsAt === -1 ? '' : pair.slice(equalsAt + 1)))
  }
  return parameters
}

function decode(name: string, text: string): string {
  try {
    return decodeURIComponent(text)
  } catch (cause) {
    throw invalid(`${name} has a percent sign that encodes nothing (write %25)`, cause)
  }
}

function checkedStreamId(streamId: string): string {
  const sizeBytes = Buffer.byteLength(streamId)
  if (sizeBytes > MAX_STREAM_ID_BYTES) {
    throw invalid(`streamid has ${sizeBytes} bytes, SRT carries at most ${MAX_STREAM_ID_BYTES}`)
  }
  return streamId
}

function checkedLatency(text: string | undefined): number {
  if (text === undefined) return DEFAULT_LATENCY_MS
  const latencyMs = /^\d+$/.test(text) ? Number(text) : Infinity
  if (latencyMs > MAX_HANDSHAKE_LATENCY_MS) {
    throw invalid(`latency is not a whole number of milliseconds up to ${MAX_HANDSHAKE_LATENCY_MS}`)
  }
  return latencyMs
}

function parseEncryption(passphrase: string | undefined, keyLength: string | undefined) {
  if (passphrase !== undefined && !isPassphrase(passphrase)) {
    throw invalid(
      `passphrase has ${Buffer.byteLength(passphrase)} bytes, SRT allows ${PASSPHRASE_LENGTH}`,
    )
  }
  if (keyLength !== undefined && passphrase === undefined) {
    throw invalid('pbkeylen is set without a passphrase')
  }
  if (keyLength !== undefined && !['16', '24', '32'].includes(keyLength)) {
    throw invalid('pbkeylen is not 16, 24 or 32')
  }
  return {
    ...(passphrase !== undefined && { passphrase }),
    ...(keyLength !== undefined && { keyLengthBytes: Number(keyLength) as KeyBytes }),
  }
}

function invalid(reason: string, cause?: unknown): MillraceError {
  return new MillraceError('CONFIG_INVALID', {
    message: `invalid SRT URL: ${reason}; expected ${SHAPE}`,
    cause,
  })
}
