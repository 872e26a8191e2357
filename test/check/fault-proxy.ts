/**
 * HTTP proxy on loopback that breaks what passes it, in front of a real service or of a recorded session.
 *
 * @module
 */
import { once } from 'node:events'
import {
  Agent,
  createServer,
  request as send,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync, gzipSync } from 'node:zlib'

export interface ProxyRequest {
  readonly method: string
  /** Path and query. */
  readonly url: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
}

export interface ProxyReply {
  readonly status: number
  /** Names in lower case; the proxy sets Content-Length. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** Pause between two halves of the body, in milliseconds; default none. */
  readonly pauseMs?: number
}

export type Origin = (request: ProxyRequest) => Promise<ProxyReply>

/** Passes a request on to the origin, or not, and may change both ways. */
export type Tamper = (request: ProxyRequest, origin: Origin) => Promise<ProxyReply>

interface Test {
  teardown(close: () => unknown): unknown
}

/** @returns `http://127.0.0.1:port` of the proxy, which ends with the test */
export async function startFaultProxy(t: Test, origin: string, tamper: Tamper): Promise<string> {
  const agent = new Agent({ keepAlive: true })
  const server = createServer((request, response) => {
    const { method = 'GET', url = '/' } = request
    const gone = new AbortController()
    response.on('close', () => gone.abort())
    const answer = async (): Promise<void> => {
      const headers = flatten(request.headers)
      const forward: Origin = (it) => passOn(origin, it, agent, gone.signal)
      const reply = await tamper({ method, url, headers }, forward)
      response.writeHead(reply.status, headersOf(reply, method))
      if (reply.pauseMs !== undefined) {
        response.write(reply.body.subarray(0, reply.body.length / 2))
        await sleep(reply.pauseMs, undefined, { signal: gone.signal })
        response.end(reply.body.subarray(reply.body.length / 2))
      } else response.end(method === 'HEAD' ? undefined : reply.body)
    }
    answer().catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    agent.destroy()
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Sends a request to the origin; content codings stay. */
async function passOn(
  origin: string,
  { method, url, headers }: ProxyRequest,
  agent: Agent,
  signal: AbortSignal,
): Promise<ProxyReply> {
  const call = send(origin + url, { method, headers: { ...headers }, agent, signal })
  call.end()
  const [reply] = (await once(call, 'response')) as [IncomingMessage]
  return {
    status: reply.statusCode ?? 0,
    headers: flatten(reply.headers),
    body: await buffer(reply),
  }
}

/** Headers for the client, with the length of the body that is sent; a reply to HEAD keeps that of the origin. */
function headersOf({ headers, body, status }: ProxyReply, method: string) {
  const kept = Object.entries(headers).filter(
    ([name]) => !['connection', 'keep-alive', 'transfer-encoding'].includes(name),
  )
  const hasBody = method !== 'HEAD' && status !== 204
  return { ...Object.fromEntries(kept), ...(hasBody && { 'content-length': body.length }) }
}

function flatten(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
}

/** @returns the reply with another text; its coding stays */
export function withText(reply: ProxyReply, edit: (text: string) => string): ProxyReply {
  const isZipped = reply.headers['content-encoding'] === 'gzip'
  const text = (isZipped ? gunzipSync(reply.body) : reply.body).toString()
  const body = Buffer.from(edit(text))
  return { ...reply, body: isZipped ? gzipSync(body) : body }
}
