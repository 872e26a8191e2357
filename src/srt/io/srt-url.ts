/**
 * The SRT URL of a listener: `srt://host:port?streamid=…&latency=ms&passphrase=…&pbkeylen=…`.
 *
 * In a value, `&` and `%` must be percent-encoded; the commas and equals signs of a stream key need no encoding.
 *
 * @module
 */
import type { KeyBytes } from '../wire/key-material.ts'
import { isPassphrase, MAX_STREAM_ID_BYTES, PASSPHRASE_LENGTH } from '../wire/limits.ts'

/** The parts of an SRT URL. */
export interface SrtUrl {
  /** Name in lower case, or address; an IPv6 address without brackets. */
  readonly host: string
  readonly port: number
  /** A secret; empty for none. */
  readonly streamId: string
  readonly latencyMs?: number
  /** A secret. */
  readonly passphrase?: string
  readonly keyLengthBytes?: KeyBytes
}

/** Maximum of the 16-bit field in the handshake (draft-sharabayko-srt 3.2.1.1). */
const MAX_HANDSHAKE_LATENCY_MS = 65_535

const PARAMETERS = ['streamid', 'latency', 'passphrase', 'pbkeylen', 'mode']

const SHAPE = 'srt://host:port?streamid=…&latency=120&passphrase=…'

/**
 * @throws {RangeError} whose message names the mistake, and contains nothing of the stream id and the passphrase
 */
export function parseSrtUrl(url: string): SrtUrl {
  // A StreamID may contain `#`, which would end the query in other URLs.
  const queryAt = url.indexOf('?')
  const base = queryAt === -1 ? url : url.slice(0, queryAt)
  const parameters = parseQuery(queryAt === -1 ? '' : url.slice(queryAt + 1))
  const mode = parameters.get('mode') ?? 'caller'
  if (mode !== 'caller') throw invalid('mode is not caller')
  return {
    ...parseAuthority(base),
    streamId: checkedStreamId(parameters.get('streamid') ?? ''),
    ...parseLatency(parameters.get('latency')),
    ...parseEncryption(parameters.get('passphrase'), parameters.get('pbkeylen')),
  }
}

function parseAuthority(base: string): { host: string; port: number } {
  const parsed = URL.canParse(base) ? new URL(base) : undefined
  if (parsed?.protocol !== 'srt:') throw invalid('it does not begin with srt://')
  if (parsed.hostname === '') throw invalid('the host is missing')
  if (parsed.port === '' || parsed.port === '0') throw invalid('the port is missing')
  const { username, password, pathname, hash } = parsed
  if (username + password + hash !== '' || !['', '/'].includes(pathname)) {
    throw invalid('it has a user name, a path or a fragment')
  }
  // The URL parser normalizes names and addresses (`0x7f.1`, `[0::1]`) in the schemes that it knows alone.
  const known = `http://${parsed.hostname}`
  if (!URL.canParse(known)) throw invalid('the host is no name and no address')
  const { hostname } = new URL(known)
  return { host: hostname.replace(/^\[(.*)\]$|\.$/, '$1'), port: Number(parsed.port) }
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

function parseLatency(text: string | undefined): Pick<SrtUrl, 'latencyMs'> {
  if (text === undefined) return {}
  const latencyMs = /^\d+$/.test(text) ? Number(text) : Infinity
  if (latencyMs > MAX_HANDSHAKE_LATENCY_MS) {
    throw invalid(`latency is not a whole number of milliseconds up to ${MAX_HANDSHAKE_LATENCY_MS}`)
  }
  return { latencyMs }
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

function invalid(reason: string, cause?: unknown): RangeError {
  return new RangeError(`invalid SRT URL: ${reason}; expected ${SHAPE}`, { cause })
}
