/**
 * Everything that can publish, in one shape: a program that sends over SRT what it reads on standard input, or our own
 * caller. Each takes whole payloads and makes one packet of each, so what arrives can be compared to the byte.
 *
 * @module
 */
import { isIPv6 } from 'node:net'
import { connect, type Caller, type ConnectOptions } from '../../../src/srt/index.ts'
import { start } from '../../support/process.ts'
import { until } from '../../support/until.ts'

export const PAYLOAD_BYTES = 1316

export interface Test {
  teardown(close: () => unknown): unknown
}

/** Whom to call, and what to ask for. */
export interface Call {
  /** Numeric address. */
  readonly host: string
  readonly port: number
  readonly latencyMs: number
  readonly encryption?: CallEncryption
}

export interface CallEncryption {
  /** Without characters that a URL escapes: srt-live-transmit does not decode percent signs. */
  readonly passphrase: string
  readonly keyBytes: 16 | 24 | 32
  /** Packets per key, and number of packets before a new key at which it is announced; default as in libsrt. */
  readonly refresh?: readonly [packets: number, preannounced: number]
}

export interface Publication {
  /** Resolves once nothing that is written is thrown away; rejects where our own caller was refused. */
  readonly ready: () => Promise<void>
  readonly write: (payload: Buffer) => void
  /** Output so far. */
  readonly output: () => string
}

export interface Publisher {
  /** Program that must be installed. */
  readonly tool?: string
  readonly start: (t: Test, call: Call) => Publication
}

/** More than the 3 s of libsrt: two round trips of 600 ms, and handshakes are lost on the way. */
const CONNECT_TIMEOUT_MS = 15_000

export const PUBLISHERS = {
  /** Data in, data out: with a container in between, bytes would not be those that were written. */
  ffmpeg: {
    tool: 'ffmpeg',
    start: (t, call) => {
      const raw = `-f data -raw_packet_size ${PAYLOAD_BYTES}`
      const input = `${raw} -fflags nobuffer -probesize 32 -analyzeduration 0 -i pipe:0`
      // ffmpeg counts the latency in microseconds.
      const url = urlOf(call, {
        latency: call.latencyMs * 1000,
        connect_timeout: CONNECT_TIMEOUT_MS,
        payload_size: PAYLOAD_BYTES,
      })
      return run(t, `ffmpeg -v warning ${input} -map 0 -c copy -f data -flush_packets 1 ${url}`)
    },
  },
  'srt-live-transmit': {
    tool: 'srt-live-transmit',
    start: (t, call) => {
      const url = libsrtUrl(call)
      const publication = run(t, `srt-live-transmit -v -chunk:${PAYLOAD_BYTES} file://con ${url}`)
      const connected = () => publication.output().includes('SRT target connected')
      // It discards its input until it has received the response.
      return { ...publication, ready: async () => void (await until('a connection', connected)) }
    },
  },
  GStreamer: {
    tool: 'gst-launch-1.0',
    start: (t, call) => {
      const url = libsrtUrl(call)
      const source = `fdsrc fd=0 blocksize=${PAYLOAD_BYTES}`
      return run(t, `gst-launch-1.0 -q ${source} ! srtsink uri=${url} sync=false`)
    },
  },
  'our caller': {
    start: (t, { encryption, ...call }) =>
      publishWith(t, { ...call, ...(encryption && connectOptions(encryption)) }),
  },
} as const satisfies Record<string, Publisher>

export type PublisherName = keyof typeof PUBLISHERS

function urlOf({ host, port, encryption }: Call, query: Record<string, string | number>): string {
  const address = isIPv6(host) ? `[${host}]` : host
  const all = { ...query, ...(encryption && encryptionQuery(encryption)) }
  const pairs = Object.entries(all).map(([name, value]) => `${name}=${value}`)
  return `srt://${address}:${port}?${pairs.join('&')}`
}

function libsrtUrl(call: Call): string {
  return urlOf(call, { latency: call.latencyMs, conntimeo: CONNECT_TIMEOUT_MS })
}

/** URL parameters under the names of libsrt. */
function encryptionQuery({ passphrase, keyBytes, refresh }: CallEncryption) {
  return {
    passphrase,
    pbkeylen: keyBytes,
    ...(refresh && { kmrefreshrate: refresh[0], kmpreannounce: refresh[1] }),
  }
}

/** A program that waits with its input until it is connected. */
export function run(t: Test, commandLine: string): Publication {
  const [command, ...args] = commandLine.split(' ')
  const program = start(t, command!, args, { stdin: 'pipe' })
  // A rejected program has exited; the test reads its output.
  program.child.stdin!.on('error', () => undefined)
  return {
    ready: async () => undefined,
    write: (payload) => void program.child.stdin!.write(payload),
    output: program.output,
  }
}

export function connectOptions({ passphrase, keyBytes, refresh }: CallEncryption) {
  return {
    passphrase,
    keyLengthBytes: keyBytes,
    ...(refresh && { kmRefreshPackets: refresh[0], kmPreannouncePackets: refresh[1] }),
  }
}

/** Our own caller. */
export function publishWith(t: Test, call: ConnectOptions): Publication {
  let caller: Caller | undefined
  let refusal = ''
  const ended = new AbortController()
  t.teardown(() => {
    ended.abort()
    // Takes the latency of the connection; not awaited.
    void caller?.close()
  })
  const connected = connect({
    ...call,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    signal: ended.signal,
  })
  connected.catch((error: unknown) => (refusal = String(error)))
  return {
    ready: async () => void (caller = await connected),
    write: (payload) => {
      if (caller?.send(payload) !== true) refusal ||= 'a payload was not taken'
    },
    output: () => refusal,
  }
}
