/**
 * A service on free loopback ports, with a client for its API.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { ApiError, Client, type EndpointName, type RequestBody } from '../../src/client/index.ts'
import { createServer } from '../../src/create-server.ts'
import type { ServerOptions } from '../../src/index.ts'
import type { Server } from '../../src/service/server.ts'
import { checkDescribed } from './api-description.ts'

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
  /** See `callApi`. */
  api(name: EndpointName, body: object): Promise<ApiReply>
  /** See `tryApi`. */
  tryApi(name: EndpointName, body: object): Promise<ApiReply>
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
    api: (name, body) => callApi(url, name, body, secrets.hmacSecret),
    tryApi: (name, body) => tryApi(url, name, body, secrets.hmacSecret),
  }
}

/**
 * Calls the API with the client of the package, which adds `issued_at` unless the body has it, and compares each
 * answer with the OpenAPI document.
 *
 * @throws {Error} with status, code and message of a refusal
 */
export async function callApi(
  url: string,
  name: EndpointName,
  body: object,
  secret: string,
): Promise<ApiReply> {
  const reply = await tryApi(url, name, body, secret)
  const { status, body: answer } = reply
  if (answer.success) return reply
  throw new Error(`${name} was refused: ${status} ${answer.code}, ${answer.error}`)
}

/** Calls the API as `callApi` does, and returns a refusal like any other answer. */
export async function tryApi(
  url: string,
  name: EndpointName,
  body: object,
  secret: string,
): Promise<ApiReply> {
  let reply: ApiReply | undefined
  const client = new Client({
    url,
    secret,
    fetch: async (...request) => {
      const answer = await fetch(...request)
      const { status } = answer
      const bytes = Buffer.from(await answer.clone().arrayBuffer())
      const contentType = answer.headers.get('content-type') ?? undefined
      checkDescribed({ method: 'POST', path: `/api/${name}`, status, contentType, body: bytes })
      reply = { status, body: JSON.parse(bytes.toString()) as ApiReply['body'] }
      return answer
    },
  })
  await client.call(name, body as RequestBody<typeof name>).catch((error: unknown) => {
    if (!(error instanceof ApiError)) throw error
  })
  return reply!
}
