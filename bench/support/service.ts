/**
 * The built service in a separate process.
 *
 * @module
 */
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import { Client } from '../../src/client/index.ts'
import { freePorts } from '../../test/support/free-port.ts'
import { startProgram, stopProgram } from './programs.ts'

export interface Service {
  readonly pid: number
  readonly httpUrl: string
  readonly srtPort: number
  readonly hmacSecret: string
  readonly jwtSecret: string
  /** Starts a stream. @returns the URL to publish to */
  start(streamId: string, options?: { readonly encryption: boolean }): Promise<string>
  /** Starts a stream. @returns the URLs of its main encoder and of its backup */
  startWithBackup(streamId: string): Promise<readonly string[]>
  status(streamId: string): Promise<StreamStatus>
  /** Garbage collections since the start; none without the flag `--trace-gc` of Node.js. */
  collections(): Collections
  stop(): Promise<void>
}

export interface StreamStatus {
  readonly live: boolean
  readonly playlist: { readonly gaps: number }
  readonly service: { readonly loop_delay_ms_p99: number; readonly loop_delay_ms_max: number }
  readonly publisher: {
    readonly packets_received: number
    readonly packets_lost: number
    readonly packets_dropped: number
  } | null
}

/** What publishers have lost since they connected. */
export interface Losses {
  /** Packets found missing, repaired or not. */
  readonly lost: number
  /** Packets given up. */
  readonly dropped: number
  /** Segments missing in playlists. */
  readonly gaps: number
  readonly load: StreamStatus['service']
}

/** @throws {Error} if a stream is not live */
export async function readLosses(service: Service, ids: readonly string[]): Promise<Losses> {
  const all = await Promise.all(ids.map((id) => service.status(id)))
  const dead = all.filter(({ live }) => !live).length
  if (dead > 0) throw new Error(`${dead} of ${ids.length} streams are not live`)
  const sum = (read: (status: StreamStatus) => number) =>
    all.reduce((total, status) => total + read(status), 0)
  return {
    lost: sum(({ publisher }) => publisher!.packets_lost),
    dropped: sum(({ publisher }) => publisher!.packets_dropped),
    gaps: sum(({ playlist }) => playlist.gaps),
    load: all[0]!.service,
  }
}

export interface Collections {
  /** Of the whole heap. */
  readonly major: number
  /** Sum of the pauses of the main thread, of the young generation too. */
  readonly pauseMs: number
}

export interface ServiceOptions {
  /** Environment variables besides secrets; ports are free ones by default. */
  readonly env?: Readonly<Record<string, string>>
  /** Calls the API; by default `fetch`, which accepts no self-signed certificate. */
  readonly fetch?: typeof fetch
  /** `HTTP_WORKERS`; default: 0. */
  readonly workers?: number
  /** `INGEST_WORKERS`, which take one of `HTTP_WORKERS` at least; default: 1. */
  readonly ingestWorkers?: number
  /** Flags of Node.js. */
  readonly nodeArgs?: readonly string[]
}

/** Starts the service on free loopback ports. */
export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const hmacSecret = randomBytes(32).toString('hex')
  const jwtSecret = randomBytes(32).toString('hex')
  const { workers = 0, ingestWorkers = 1 } = options
  // Processes share ports that are known beforehand.
  const ports = workers > 0 || ingestWorkers > 1 ? await freePorts(2) : [0, 0]
  const args = [...(options.nodeArgs ?? []), 'dist/cli.js', 'serve']
  const child = startProgram(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      HMAC_SECRET: hmacSecret,
      JWT_SECRET: jwtSecret,
      HTTP_HOST: '127.0.0.1',
      HTTP_PORT: String(ports[0]),
      HTTP_WORKERS: String(workers),
      INGEST_WORKERS: String(ingestWorkers),
      SRT_HOST: '127.0.0.1',
      SRT_PORT: String(ports[1]),
      PUBLIC_HOST: '127.0.0.1',
      ...options.env,
    },
  })
  const collections = { major: 0, pauseMs: 0 }
  const { http: httpUrl, srt_port: srtPort } = await listening(child, collections)
  const client = new Client({
    ...{ url: httpUrl, secret: hmacSecret },
    ...(options.fetch !== undefined && { fetch: options.fetch }),
  })
  return {
    pid: child.pid!,
    httpUrl,
    srtPort,
    hmacSecret,
    jwtSecret,
    start: async (streamId, options) =>
      (await client.call('start-stream', { stream_id: streamId, ...options })).srt_url,
    startWithBackup: async (streamId) => {
      const started = await client.call('start-stream', { stream_id: streamId, backup: true })
      return [started.srt_url, started.backup_srt_url!]
    },
    status: async (streamId) =>
      (await client.call('status', { stream_id: streamId })) as unknown as StreamStatus,
    collections: () => ({ ...collections }),
    stop: () => stopProgram(child),
  }
}

interface ListeningLine {
  readonly msg: string
  readonly http: string
  readonly srt_port: number
}

/** Line of V8's `--trace-gc`: `… ms: Scavenge 52.1 (59.0) -> 49.8 (59.0) MB, 1.43 / 0.00 ms …`. */
const COLLECTION = /ms: (Scavenge|Mark-Compact).* MB, (?:pooled: .* MB, )?([\d.]+) \/ /

/** Waits for the log line with the ports, then counts collections until the end. */
async function listening(
  child: ChildProcess,
  collections: { major: number; pauseMs: number },
): Promise<ListeningLine> {
  const lines = createInterface({ input: child.stdout! })
  lines.on('line', (line) => {
    const [, kind, pauseMs] = COLLECTION.exec(line) ?? []
    if (kind === 'Mark-Compact') collections.major++
    collections.pauseMs += Number(pauseMs ?? 0)
    // Errors and worse.
    if (/^\{"level":[56]0/.test(line)) console.error(line)
  })
  return new Promise((resolve, reject) => {
    lines.on('line', (line) => {
      const entry = line.startsWith('{') ? (JSON.parse(line) as ListeningLine) : undefined
      if (entry?.msg === 'listening') resolve(entry)
    })
    lines.once('close', () =>
      reject(new Error('the service ended before it listened; is it built? npm run build')),
    )
  })
}
