/**
 * An S3 server on a free loopback port that verifies signatures: s3rver, which lacks only the conditions of a PUT. It may
 * fail as a store or a proxy before it does.
 *
 * @module
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, ServerResponse, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import S3rver from '@20minutes/s3rver'

/** Lets the players of all pages read. */
const CORS = `<?xml version="1.0"?>
<CORSConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <CORSRule>
    <AllowedOrigin>*</AllowedOrigin>
    <AllowedMethod>GET</AllowedMethod>
    <AllowedMethod>HEAD</AllowedMethod>
    <AllowedHeader>*</AllowedHeader>
    <ExposeHeader>*</ExposeHeader>
  </CORSRule>
</CORSConfiguration>`

interface Test {
  teardown(close: () => void): unknown
}

export interface TestS3Server {
  /** `http://127.0.0.1:port`. Objects are below `/archive/live/` and need no signature to be read. */
  readonly endpoint: string
  /** `s3://archive/live` */
  readonly url: string
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string }
}

interface TestS3Options {
  /** Whether it answers a request with 503 SlowDown. */
  readonly refuses?: () => boolean
  /** Whether it carries a request out, and closes the connection instead of an answer. */
  readonly loses?: () => boolean
  /** Whether it knows `If-Match` and `If-None-Match` of a PUT; default: true. */
  readonly compares?: boolean
  /** Called for each PUT that was not refused by `refuses`. */
  readonly onPut?: (put: TestPut) => void
}

export interface TestPut {
  /** Without the bucket. */
  readonly key: string
  readonly status: number
  /** MD5 of what is stored, in quotes, for status 200. */
  readonly etag: string | undefined
}

/** Options of a service that archives to the server. */
export function archiveOptionsOf({ endpoint, url, credentials }: TestS3Server) {
  return { ...credentials, endpoint, url, publicUrl: `${endpoint}/archive/live` }
}

/** Starts a server with an empty bucket, which is removed with the test. */
export async function startS3Server(
  t: Test,
  {
    refuses = () => false,
    loses = () => false,
    compares = true,
    onPut = () => undefined,
  }: TestS3Options = {},
): Promise<TestS3Server> {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-s3-'))
  const s3 = new S3rver({
    directory,
    silent: true,
    configureBuckets: [{ name: 'archive', configs: [CORS] }],
  })
  await s3.configureBuckets()
  const handle = s3.callback()
  /** Whether the conditions of a PUT hold; without an object, `If-Match` does not (AWS: 404 NoSuchKey). */
  const isWanted = async (bucket: string, key: string, { headers }: IncomingMessage) => {
    const exists = await s3.store.existsObject(bucket, key)
    if (headers['if-none-match'] === '*') return !exists
    const match = headers['if-match']
    return (
      match === undefined || (exists && (await s3.store.getMetadata(bucket, key)).etag === match)
    )
  }
  const refuse = (
    request: IncomingMessage,
    response: ServerResponse,
    status: number,
    code: string,
  ) => {
    request.resume()
    response.writeHead(status).end(`<Error><Code>${code}</Code></Error>`)
  }
  const put = async (request: IncomingMessage, response: ServerResponse) => {
    const [, bucket = '', ...names] = decodeURIComponent(request.url!).split('/')
    const key = names.join('/')
    response.once('finish', () => {
      const etag = response.getHeader('etag')?.toString()
      onPut({ key, status: response.statusCode, etag })
    })
    if (!compares || (await isWanted(bucket, key, request))) handle(request, response)
    else refuse(request, response, 412, 'PreconditionFailed')
  }
  const server = createServer((request, response) => {
    if (refuses()) {
      refuse(request, response, 503, 'SlowDown')
      return
    }
    let answer = response
    if (loses()) {
      answer = new ServerResponse(request)
      answer.assignSocket(new PassThrough().resume() as never)
      answer.once('finish', () => request.socket.destroy())
    }
    if (request.method === 'PUT') void put(request, answer)
    else handle(request, answer)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.close().closeAllConnections()
    rmSync(directory, { recursive: true })
  })
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    url: 's3://archive/live',
    // Those of s3rver.
    credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
  }
}
