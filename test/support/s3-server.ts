/**
 * An S3 server on a free loopback port that verifies signatures: s3rver, which lacks only `If-None-Match` of a PUT.
 *
 * @module
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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

/**
 * Starts a server with an empty bucket, which is removed with the test.
 *
 * @param refuses  whether it answers a request with 503 SlowDown
 */
export async function startS3Server(
  t: Test,
  refuses: () => boolean = () => false,
): Promise<TestS3Server> {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-s3-'))
  const s3 = new S3rver({
    directory,
    silent: true,
    configureBuckets: [{ name: 'archive', configs: [CORS] }],
  })
  await s3.configureBuckets()
  const handle = s3.callback()
  const server = createServer((request, response) => {
    void (async () => {
      if (refuses()) {
        request.resume()
        response.writeHead(503).end('<Error><Code>SlowDown</Code></Error>')
        return
      }
      const [, bucket = '', ...key] = decodeURIComponent(request.url!).split('/')
      const isCreation = request.method === 'PUT' && request.headers['if-none-match'] === '*'
      if (isCreation && (await s3.store.existsObject(bucket, key.join('/')))) {
        response.writeHead(412).end('<Error><Code>PreconditionFailed</Code></Error>')
      } else handle(request, response)
    })()
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
