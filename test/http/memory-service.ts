/**
 * The application over real HTTP on a free port of the loopback, with an in-memory service behind it, and clients
 * that can say what `fetch` would not: GET with a body, the same header twice, half a request.
 *
 * @module
 */
import { uncachedMemoryBeside } from '../../src/playback/uncached-memory.ts'
import { request, type Agent, type OutgoingHttpHeaders, type Server } from 'node:http'
import { request as requestHttps } from 'node:https'
import { connect } from 'node:net'
import { pino } from 'pino'
import { sign } from '../../src/auth/signature.ts'
import { MillraceError } from '../../src/errors.ts'
import { systemClock } from '../../src/timing/clock.ts'
import { buildApp, type AppOptions } from '../../src/service/app.ts'
import { CertificateSource } from '../../src/http/tls/certificate-source.ts'
import { HttpGuard, type HttpGuardOptions } from '../../src/http/guard/http-guard.ts'
import type { FileStore } from '../../src/hls/store/file-store.ts'
import type {
  PlayableStream,
  PlaybackSource,
  StreamFile,
} from '../../src/playback/playback-source.ts'
import type {
  ClipRequest,
  KickRequest,
  ListRequest,
  StartRequest,
  StopRequest,
} from '../../src/api/requests.ts'
import type { StreamControl } from '../../src/api/control.ts'
import { checkSource } from '../../src/api/records.ts'
import { NO_TOTALS } from '../../src/cluster/node/control/remote-records.ts'
import type {
  ClipReport,
  EncoderSource,
  StreamPage,
  StreamRecord,
  StreamState,
} from '../../src/api/records.ts'
import { PUBLISHER_REPORT } from '../stream/publisher-report.ts'
import { checkDescribed } from '../support/api-description.ts'
import { writeCertificate } from '../support/certificate.ts'

export const SECRET = 'a secret of at least 32 characters'

interface Test {
  teardown(close: () => unknown): unknown
}

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** Stream with files put there by the test. */
export class MemoryStream implements PlayableStream {
  status: StreamState = 'READY'
  live = false
  stateSinceMs?: number
  stopsAtMs?: number
  policy: { playbackToken?: boolean } = {}
  readonly files = new Map<string, StreamFile>()
}

/** Stream whose files are those of a store. */
export type StoredStream = PlayableStream & { readonly files: FileStore }

/** Starts, stops and reports streams as the contract says, without an encoder. */
export class MemoryService implements StreamControl, PlaybackSource {
  readonly streams = new Map<string, MemoryStream>()
  readonly stored = new Map<string, PlayableStream>()
  readonly started: StartRequest[] = []
  readonly stopped: (StopRequest & { readonly streamId: string })[] = []
  readonly revoked: { readonly streamId: string; readonly keyId: string }[] = []
  readonly kicked: (KickRequest & { readonly streamId: string })[] = []
  readonly switched: { readonly streamId: string; readonly source: EncoderSource }[] = []
  readonly listed: ListRequest[] = []
  readonly lookUps: string[] = []

  async startStream(start: StartRequest) {
    this.started.push(start)
    const stream = new MemoryStream()
    this.streams.set(start.streamId, stream)
    return {
      streamId: start.streamId,
      status: stream.status,
      srtUrl: `srt://127.0.0.1:10080?streamid=mode=publish,rid=${start.streamId},token=t`,
      streamKey: `mode=publish,rid=${start.streamId},token=t`,
      shortStreamKey: `${start.streamId}-${'s'.repeat(22)}`,
      expiresAt: new Date('2026-03-01T14:00:00Z'),
      playlistUrl: `http://127.0.0.1:8080/video/${start.streamId}/playlist.m3u8`,
      masterUrl: `http://127.0.0.1:8080/video/${start.streamId}/master.m3u8`,
      watchUrl: `http://127.0.0.1:8080/watch/${start.streamId}`,
    }
  }

  async stopStream(streamId: string, request: StopRequest = {}): Promise<StreamRecord> {
    this.stopped.push({ streamId, ...request })
    this.#find(streamId).status = 'STOPPED'
    return this.status(streamId)
  }

  async revokeKey(streamId: string, keyId: string): Promise<StreamRecord> {
    this.revoked.push({ streamId, keyId })
    return this.status(streamId)
  }

  kick(streamId: string, request: KickRequest = {}): StreamRecord {
    this.kicked.push({ streamId, ...request })
    return this.status(streamId)
  }

  switchSource(streamId: string, source: EncoderSource): StreamRecord {
    checkSource(this.status(streamId), source)
    this.switched.push({ streamId, source })
    return this.status(streamId)
  }

  async clip(streamId: string, { from, to }: ClipRequest): Promise<ClipReport> {
    if (!this.streams.has(streamId)) throw new MillraceError('ARCHIVE_NOT_FOUND')
    const url = `s3://archive/${streamId}/20260101T000000Z-a/clip.m3u8`
    return { url, from, to, durationSec: (to.getTime() - from.getTime()) / 1000, gapSec: 0 }
  }

  list(request: ListRequest = {}): StreamPage {
    this.listed.push(request)
    return { streams: [...this.streams.keys()].map((id) => this.status(id)), next: 'z' }
  }

  status(streamId: string): StreamRecord {
    const { status, live } = this.#find(streamId)
    const publisher = {
      ...PUBLISHER_REPORT,
      remote: '127.0.0.1:50000',
      rttMs: 1.5,
      bitrateBps: 5_000_000,
      packetsLost: 2,
    }
    return {
      streamId,
      status,
      live,
      startedAt: new Date('2026-03-01T12:00:00Z'),
      ...(live ? { liveSince: new Date('2026-03-01T12:01:00Z'), publisher, onAir: 'main' } : {}),
      sources: live ? [{ source: 'main', ready: true, connection: publisher }] : [],
      readers: [],
      pushes: [],
      tracks: live ? [{ pid: 256, kind: 'video', codec: 'h264', codecString: 'avc1.64001f' }] : [],
      playlist: { listedSegments: 0, wantedSegments: 6, releasedEarly: 0, gaps: 0 },
      queuedBytes: 0,
      viewers: 0,
      totals: NO_TOTALS,
      warnings: [{ code: 'NO_PAT', message: 'no PAT for 5 s' }],
      playlistUrl: `http://127.0.0.1:8080/video/${streamId}/playlist.m3u8`,
      masterUrl: `http://127.0.0.1:8080/video/${streamId}/master.m3u8`,
      playbackToken: false,
      options: {},
    }
  }

  findStream(streamId: string): PlayableStream | undefined {
    this.lookUps.push(streamId)
    return this.peek(streamId)
  }

  /** As `findStream`, for the guard, which looks once a second: `lookUps` are those of requests alone. */
  peek(streamId: string): PlayableStream | undefined {
    return this.streams.get(streamId) ?? this.stored.get(streamId)
  }

  #find(streamId: string): MemoryStream {
    const stream = this.streams.get(streamId)
    if (stream === undefined) throw new MillraceError('STREAM_NOT_FOUND')
    return stream
  }
}

export interface TestApp {
  readonly service: MemoryService
  readonly url: string
  readonly port: number
  readonly guard: HttpGuard
  readonly server: Server
  /** Every line that was logged. */
  readonly log: string[]
  close(): Promise<void>
}

/** Starts the application with HTTPS; it ends with the test. */
export function startHttpsApp(
  t: Test,
  service?: MemoryService,
  guarding?: Partial<HttpGuardOptions>,
): Promise<TestApp> {
  return startApp(t, service, guarding, new CertificateSource(writeCertificate(t)))
}

/** Starts the application; it ends with the test. */
export async function startApp(
  t: Test,
  service = new MemoryService(),
  guarding: Partial<HttpGuardOptions> = {},
  certificates?: CertificateSource,
  overrides: Partial<AppOptions> = {},
): Promise<TestApp> {
  const log: string[] = []
  const logger = pino({ level: 'trace' }, { write: (line: string) => void log.push(line) })
  const guard = new HttpGuard({
    limits: { maxConnections: 1000, maxBufferedMib: 64 },
    uncachedMemory: uncachedMemoryBeside((id) => service.peek(id)),
    clock: systemClock,
    logger,
    ...guarding,
  })
  const app = buildApp({
    control: service,
    playback: service,
    readHmacSecrets: () => [SECRET],
    guard,
    certificates,
    logger,
    ...overrides,
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => app.close())
  const { server } = app
  const port = Number(new URL(url).port)
  return { service, url, port, guard, server, log, close: () => app.close() }
}

/** Switches off Node's time-outs of 10 s for a request, which go by no clock of the test: a busy machine may need longer. */
export function allowSlowRequests({ server }: TestApp): void {
  Object.assign(server, { requestTimeout: 0, headersTimeout: 0 })
}

/** Sends a request on a connection of its own. `path` is sent unchanged, `../` included. */
export function call(
  { port, url = '' }: { readonly port: number; readonly url?: string },
  method: string,
  path: string,
  options: {
    headers?: OutgoingHttpHeaders
    body?: string | Buffer
    /** Connections to use; default: a new one. */
    agent?: Agent
  } = {},
): Promise<Reply> {
  const { headers = {}, body, agent = false } = options
  return new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? requestHttps : request
    const target = { host: '127.0.0.1', port, method, path, agent, headers }
    const outgoing = send({ ...target, rejectUnauthorized: false } as object)
    outgoing.on('error', reject)
    outgoing.on('response', (incoming) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('error', reject)
      incoming.on('end', () => {
        const { statusCode: status = 0, headers } = incoming
        const reply = { status, headers, body: Buffer.concat(chunks) }
        try {
          checkDescribed({ method, path, contentType: headers['content-type'], ...reply })
          resolve(reply)
        } catch (error) {
          reject(error)
        }
      })
    })
    if (body !== undefined && headers['transfer-encoding'] === undefined) {
      outgoing.setHeader('content-length', Buffer.byteLength(body))
    }
    outgoing.end(body)
  })
}

/** Calls the API with a valid signature and content type; `headers` replace or add. */
export function signedCall(
  app: { readonly port: number; readonly url?: string },
  method: string,
  path: string,
  body: string | Buffer | object,
  headers: OutgoingHttpHeaders = {},
): Promise<Reply> {
  const bytes = Buffer.from(
    typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
  )
  return call(app, method, path, {
    headers: {
      'content-type': 'application/json',
      'lt-signature': sign(bytes, SECRET),
      ...headers,
    },
    body: bytes,
  })
}

/** Sends bytes on a TCP connection, and returns the response until the server closes it. */
export function speak({ port }: { readonly port: number }, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    let answer = ''
    socket.on('data', (chunk) => (answer += chunk.toString()))
    socket.on('error', reject)
    socket.on('close', () => resolve(answer))
  })
}

export function json(reply: Reply): Record<string, unknown> {
  return JSON.parse(reply.body.toString()) as Record<string, unknown>
}
