/**
 * Storage that speaks as much of S3 as an upload needs. It verifies AWS Signature Version 4 by itself, as the AWS General
 * Reference describes it.
 *
 * @module
 */
import { createHash, createHmac } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

export const CREDENTIALS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'a secret access key' }
export const REGION = 'eu-central-1'

interface Test {
  teardown(close: () => unknown): unknown
}

export interface StoredFile {
  readonly bytes: Buffer
  readonly contentType: string | undefined
}

export interface Storage {
  readonly url: string
  /** Files by path, in the order of their first upload. */
  readonly files: Map<string, StoredFile>
  /** Paths of all uploads in order. */
  readonly uploads: string[]
  /** Why uploads were refused. */
  readonly refused: string[]
}

/**
 * Listens on a free port of the loopback until the test ends.
 *
 * @param failures  number of uploads that are answered with 503 first
 */
export async function startStorage(t: Test, failures = 0): Promise<Storage> {
  const files = new Map<string, StoredFile>()
  const uploads: string[] = []
  const refused: string[] = []
  const put = async (request: IncomingMessage): Promise<number> => {
    const bytes = await buffer(request)
    const fault = findFault(request, bytes)
    if (fault !== undefined) {
      refused.push(fault)
      return 403
    }
    if (failures-- > 0) return 503
    uploads.push(request.url!)
    files.set(request.url!, { bytes, contentType: request.headers['content-type'] })
    return 200
  }
  const server = createServer((request, reply) => {
    put(request).then(
      (status) => reply.writeHead(status).end(),
      () => reply.destroy(),
    )
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/bucket`, files, uploads, refused }
}

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/

/** Why the request is not signed with the credentials; undefined if it is. */
function findFault({ method, url = '', headers }: IncomingMessage, bytes: Buffer) {
  const [, keyId, day, region, names = '', signature] =
    AUTHORIZATION.exec(headers.authorization ?? '') ?? []
  if (signature === undefined) return `Authorization is ${headers.authorization}`
  if (keyId !== CREDENTIALS.accessKeyId || region !== REGION) return `${keyId} in ${region}`
  const time = String(headers['x-amz-date'])
  const [date = '', clock = ''] = time.split(/(?<=^\d{8})T/)
  const iso = `${date.replace(/(....)(..)/, '$1-$2-')}T${clock.replace(/(..)(..)/, '$1:$2:')}`
  if (date !== day || Math.abs(Date.now() - Date.parse(iso)) > 60_000)
    return `x-amz-date is ${time}`
  const payloadHash = sha256(bytes)
  if (headers['x-amz-content-sha256'] !== payloadHash) return 'x-amz-content-sha256'
  const signed = names.split(';')
  for (const name of ['host', 'x-amz-content-sha256', 'x-amz-date']) {
    if (!signed.includes(name)) return `${name} is not signed`
  }

  const canonicalRequest = [
    method,
    url,
    '',
    ...signed.map((name) => `${name}:${String(headers[name]).trim()}`),
    '',
    names,
    payloadHash,
  ].join('\n')
  const scope = `${day}/${region}/s3/aws4_request`
  const stringToSign = ['AWS4-HMAC-SHA256', time, scope, sha256(canonicalRequest)].join('\n')
  const key = [day, region, 's3', 'aws4_request'].reduce<string | Buffer>(
    (secret, text) => hmac(secret, text),
    `AWS4${CREDENTIALS.secretAccessKey}`,
  )
  return hmac(key, stringToSign).toString('hex') === signature ? undefined : 'the signature'
}

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex')
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
