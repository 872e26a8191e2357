/**
 * One HTTP/1.1 request with its reply as it is on the wire. Accepts the self-signed certificate of the bench.
 *
 * @module
 */
import { once } from 'node:events'
import { request as requestHttp, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as requestHttps } from 'node:https'
import { buffer } from 'node:stream/consumers'

export interface Exchange {
  readonly status: number
  /** Names and values in turn, without those that each server sets itself. */
  readonly headers: readonly string[]
  readonly body: Buffer
}

/** Headers that Node adds to a reply. */
const OWN_HEADERS = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding'])

export async function exchange(
  url: string,
  headers: RequestOptions['headers'] = {},
  { method = 'GET', content = '' } = {},
): Promise<Exchange> {
  const options = { method, headers, agent: false as const, rejectUnauthorized: false }
  const request = url.startsWith('https:') ? requestHttps(url, options) : requestHttp(url, options)
  const [reply] = (await once(request.end(content), 'response')) as [IncomingMessage]
  const { statusCode = 0, rawHeaders } = reply
  const pairs = rawHeaders.flatMap((name, index) =>
    index % 2 === 1 || OWN_HEADERS.has(name.toLowerCase()) ? [] : [name, rawHeaders[index + 1]!],
  )
  return { status: statusCode, headers: pairs, body: await buffer(reply) }
}

/** @throws {Error} if the file is not there */
export async function fetchBytes(url: string): Promise<Buffer> {
  const { status, body } = await exchange(url)
  if (status !== 200) throw new Error(`${url} answered ${status}`)
  return body
}

/** `fetch` as far as the client of the API needs it: a text goes to a URL. */
export const fetchInsecurely: typeof fetch = async (url, init) => {
  const headers = Object.fromEntries(new Headers(init?.headers))
  const [method, content] = [init?.method ?? 'GET', init?.body as string]
  const { status, body } = await exchange(url as string, headers, { method, content })
  return new Response(body, { status })
}
