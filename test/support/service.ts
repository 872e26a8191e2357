/**
 * A service on free loopback ports, with a client for its API.
 *
 * @module
 */
import { createHmac, randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { createServer, type Server, type ServerOptions } from '../../src/index.ts'

interface Test {
  teardown(close: () => Promise<unknown>): unknown
}

export interface ApiReply {
  readonly status: number
  // The tests check it with t.match.
  readonly body: { success: boolean; data: Record<string, any>; error?: string; code?: string }
}

export interface TestService {
  readonly server: Server
  /** `http://127.0.0.1:port` */
  readonly url: string
  readonly hmacSecret: string
  readonly jwtSecret: string
  /** Sends a signed API request. */
  api(method: 'GET' | 'POST', path: string, body: object): Promise<ApiReply>
}

/** Starts a service without log output, which ends with the test. */
export async function startService(
  t: Test,
  options: Partial<ServerOptions> = {},
): Promise<TestService> {
  const secrets = {
    hmacSecret: options.hmacSecret ?? randomBytes(32).toString('hex'),
    jwtSecret: options.jwtSecret ?? randomBytes(32).toString('hex'),
  }
  const server = await createServer({
    logLevel: 'silent',
    public: { host: '127.0.0.1' },
    ...options,
    ...secrets,
    http: { host: '127.0.0.1', port: 0, ...options.http },
    srt: { host: '127.0.0.1', port: 0, ...options.srt },
  })
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${server.httpPort}`
  return {
    server,
    url,
    ...secrets,
    api: (method, path, body) => signedCall(`${url}${path}`, method, body, secrets.hmacSecret),
  }
}

/** Sends a request with `node:http`, since `fetch` cannot send a GET with a body. */
export function signedCall(
  url: string,
  method: string,
  body: object,
  hmacSecret: string,
): Promise<ApiReply> {
  const text = JSON.stringify(body)
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'lt-signature': createHmac('sha256', hmacSecret).update(text).digest('hex'),
  }
  return new Promise((resolve, reject) => {
    const call = request(url, { method, headers }, (reply) => {
      const chunks: Buffer[] = []
      reply.on('data', (chunk: Buffer) => chunks.push(chunk))
      reply.on('end', () =>
        resolve({
          status: reply.statusCode ?? 0,
          body: JSON.parse(Buffer.concat(chunks).toString()) as ApiReply['body'],
        }),
      )
    })
    call.on('error', reject)
    call.end(text)
  })
}
