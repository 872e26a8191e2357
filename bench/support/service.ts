/**
 * The built service in a separate process.
 *
 * @module
 */
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import { signedCall } from '../../test/support/service.ts'
import { startProgram, stopProgram } from './programs.ts'

export interface Service {
  readonly pid: number
  readonly httpUrl: string
  readonly srtPort: number
  readonly hmacSecret: string
  readonly jwtSecret: string
  /** Starts a stream. @returns the URL to publish to */
  start(streamId: string, options?: { readonly encryption: boolean }): Promise<string>
  status(streamId: string): Promise<StreamStatus>
  stop(): Promise<void>
}

export interface StreamStatus {
  readonly live: boolean
  readonly playlist: { readonly gaps: number }
  readonly service: { readonly loop_delay_ms_max: number }
  readonly publisher?: {
    readonly packets_received: number
    readonly packets_lost: number
    readonly packets_dropped: number
  }
}

export interface ServiceOptions {
  /** Environment variables besides ports and secrets. */
  readonly env?: Readonly<Record<string, string>>
  /** Flags of Node.js. */
  readonly nodeArgs?: readonly string[]
}

/** Starts the service on free loopback ports. */
export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const hmacSecret = randomBytes(32).toString('hex')
  const jwtSecret = randomBytes(32).toString('hex')
  const args = [...(options.nodeArgs ?? []), 'dist/cli.js', 'serve']
  const child = startProgram(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      ...options.env,
      HMAC_SECRET: hmacSecret,
      JWT_SECRET: jwtSecret,
      HTTP_HOST: '127.0.0.1',
      HTTP_PORT: '0',
      SRT_HOST: '127.0.0.1',
      SRT_PORT: '0',
      PUBLIC_HOST: '127.0.0.1',
    },
  })
  const { http: httpUrl, srt_port: srtPort } = await listening(child)
  const call = async (method: 'GET' | 'POST', path: string, streamId: string, options = {}) => {
    const body = { stream_id: streamId, ...options }
    const reply = await signedCall(httpUrl + path, method, body, hmacSecret)
    if (!reply.body.success) throw new Error(`${path}: ${reply.body.error}`)
    return reply.body.data
  }
  return {
    pid: child.pid!,
    httpUrl,
    srtPort,
    hmacSecret,
    jwtSecret,
    start: async (streamId, options) =>
      (await call('POST', '/api/start-stream', streamId, options))['srt_url'] as string,
    status: async (streamId) =>
      (await call('GET', '/api/status', streamId)) as unknown as StreamStatus,
    stop: () => stopProgram(child),
  }
}

interface ListeningLine {
  readonly msg: string
  readonly http: string
  readonly srt_port: number
}

/** Waits for the log line with the ports. */
async function listening(child: ChildProcess): Promise<ListeningLine> {
  for await (const line of createInterface({ input: child.stdout! })) {
    const entry = JSON.parse(line) as ListeningLine
    if (entry.msg !== 'listening') continue
    // Later output must not fill the pipe.
    child.stdout!.resume()
    return entry
  }
  throw new Error('the service ended before it listened; is it built? npm run build')
}
