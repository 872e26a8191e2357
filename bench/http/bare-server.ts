/**
 * Worker with a bare server on `node:http` or on Fastify, which sends the very replies that Millrace has sent.
 *
 * @module
 */
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import { LRUCache } from 'lru-cache'
import { answer, readTask } from '../support/worker.ts'
import type { TlsFiles } from './contender.ts'

export type BareKind = 'node:http' | 'fastify'

export interface BareServerTask {
  readonly kind: BareKind
  readonly tls?: TlsFiles | undefined
  /** By path. */
  readonly files: Readonly<Record<string, FileReplies>>
  readonly missing: StoredReply
}

export interface FileReplies {
  readonly plain: StoredReply
  /** For requests that accept gzip. */
  readonly gzip?: StoredReply | undefined
  /** For requests with this ETag. */
  readonly notModified?: StoredReply | undefined
  readonly etag?: string | undefined
}

export interface StoredReply {
  readonly status: number
  /** Names and values in turn. */
  readonly headers: readonly string[]
  readonly bodyBase64: string
}

export interface BareServerAnswers {
  port(): number
}

interface Reply {
  readonly status: number
  /** For HTTP/1.1, whose flat list is the cheapest. */
  readonly list: string[]
  readonly record: Readonly<Record<string, string>>
  readonly body: Buffer
}

interface Replies {
  readonly plain: Reply
  readonly gzip: Reply | undefined
  readonly notModified: Reply | undefined
  readonly etag: string | undefined
}

const { kind, tls, files, missing } = (await readTask()) as BareServerTask
const notFound = load(missing)
const all = Object.entries(files).map(([path, { plain, gzip, notModified, etag }]) => {
  const replies: Replies = {
    plain: load(plain),
    gzip: gzip && load(gzip),
    notModified: notModified && load(notModified),
    etag,
  }
  return [path, replies] as const
})
const port = kind === 'fastify' ? await listenFastify() : await listenNode()

answer<BareServerAnswers>({ port: () => port })

async function listenNode(): Promise<number> {
  const byPath = new Map(all)
  const handle = (
    request: IncomingMessage | Http2ServerRequest,
    response: ServerResponse | Http2ServerResponse,
  ) => {
    const reply = select(byPath.get(request.url!), request.headers)
    const { status, list, record, body } = reply
    if (request.httpVersionMajor === 2) (response as Http2ServerResponse).writeHead(status, record)
    else (response as ServerResponse).writeHead(status, list)
    response.end(body)
  }
  const server =
    tls === undefined
      ? createServer(handle)
      : createSecureServer(
          { allowHTTP1: true, cert: readFileSync(tls.cert), key: readFileSync(tls.key) },
          handle,
        )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

async function listenFastify(): Promise<number> {
  const byName = new LRUCache<string, Replies>({ max: 1000 })
  for (const [path, replies] of all) byName.set(path.replace('/video/', ''), replies)
  const app = Fastify()
  app.get<{ Params: { stream: string; file: string } }>(
    '/video/:stream/:file',
    (request, reply) => {
      const { stream, file } = request.params
      const { status, record, body } = select(byName.get(`${stream}/${file}`), request.headers)
      reply.code(status).headers(record).send(body)
    },
  )
  await app.listen({ host: '127.0.0.1', port: 0 })
  return (app.server.address() as AddressInfo).port
}

function select(replies: Replies | undefined, headers: IncomingMessage['headers']): Reply {
  if (replies === undefined) return notFound
  const { plain, gzip, notModified, etag } = replies
  if (notModified !== undefined && headers['if-none-match'] === etag) return notModified
  return gzip !== undefined && headers['accept-encoding'] !== undefined ? gzip : plain
}

function load({ status, headers, bodyBase64 }: StoredReply): Reply {
  const names = headers.filter((_, index) => index % 2 === 0)
  return {
    status,
    list: [...headers],
    record: Object.fromEntries(names.map((name, index) => [name, headers[2 * index + 1]!])),
    body: Buffer.from(bodyBase64, 'base64'),
  }
}
