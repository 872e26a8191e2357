/**
 * A bucket of an S3-compatible store (AWS, R2, MinIO, Ceph): single PUTs, whose bytes the store has to confirm.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { AwsV4Signer } from 'aws4fetch'
import { Pool, type Dispatcher } from 'undici'
import { machineClock } from '../timing/clock.ts'
import { startTimeLimit } from '../timing/time-limit.ts'
import { failureOf, storeErrorOf, StoreError } from './store-error.ts'

const MAX_CONNECTIONS = 16

/** Maximum size of the body of a refusal; the rest is not read. */
const MAX_REFUSAL_BYTES = 16 * 1024

const TIME_LIMITS = {
  connectMs: 5000,
  /** Maximum pause while either side sends, and until a response begins. */
  pauseMs: 20_000,
  /** From the call to the end of the response, with the wait for a connection. */
  requestMs: 300_000,
}

const EMPTY_SHA256 = createHash('sha256').digest('hex')

const [NOT_FOUND, PRECONDITION_FAILED, NOT_IMPLEMENTED] = [404, 412, 501]

/** Statuses of a PUT with a condition: 409 while another one is on its way, 304 by older versions of MinIO. */
const CONFLICTS: readonly number[] = [304, 409, PRECONDITION_FAILED]

/** RFC 9110, 8.8.3; DigitalOcean Spaces takes no quotes. */
const ETAG_FORMS: readonly ((etag: string) => string)[] = [(etag) => `"${etag}"`, (etag) => etag]

export interface StoredObject {
  /** Relative to the prefix. */
  readonly key: string
  /** Must not change until the store has confirmed them. */
  readonly chunks: readonly Buffer[]
  readonly contentType: string
  readonly cacheControl: string
}

interface ObjectHead {
  readonly sizeBytes: number
  /** In hexadecimal; undefined where the store does not say. */
  readonly md5: string | undefined
  /** Names this version, without quotes; undefined where the store does not say. */
  readonly etag: string | undefined
}

interface StoredVersion extends Pick<ObjectHead, 'etag'> {
  readonly bytes: Buffer
}

interface PutOptions {
  /** Whether to overwrite no object, where the store can; one that is the same is a success. */
  readonly createOnly?: boolean
  /** ETag of the only version to overwrite, where the store can; one that is the same as the new one is a success. */
  readonly replaces?: string | undefined
  /** Ends the request; whether the object has been stored is unknown then. */
  readonly signal?: AbortSignal | undefined
}

export interface Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

interface S3StoreOptions {
  /** `s3://bucket/prefix`; the prefix may be empty. */
  readonly url: string
  /** http or https URL, which may have a path; empty: AWS in `region`. */
  readonly endpoint: string
  readonly region: string
  /** Called for each request. */
  readonly readCredentials: () => Credentials
  /** Time of signatures; default: the clock of this machine. */
  readonly now?: () => Date
  readonly timeLimits?: Partial<typeof TIME_LIMITS>
  /** Maximum number of connections; further requests wait for one. */
  readonly connections?: number
}

/**
 * Path style everywhere: AWS takes it too, buckets with a dot in their name have a certificate only so, and other stores
 * need no wildcard in DNS. Redirects are not followed, since a signature is for one host. Nothing is tried twice.
 */
export class S3Store {
  readonly #pool: Pool
  readonly #base: URL
  /** Path of the prefix, percent-encoded, with a slash at its end. */
  readonly #path: string
  readonly #region: string
  readonly #readCredentials: () => Credentials
  readonly #now: () => Date
  readonly #requestMs: number
  /** Whether the store knows `If-None-Match` of a PUT, as far as it has said. */
  #canCreateOnly = true
  /** Forms of ETags in `If-Match` of a PUT, as far as the store has not refused them; it knows the first one, if any. */
  #etagForms = ETAG_FORMS

  constructor(options: S3StoreOptions) {
    const { url, endpoint, region, readCredentials, now, timeLimits } = options
    const { connectMs, pauseMs, requestMs } = { ...TIME_LIMITS, ...timeLimits }
    this.#base = new URL(endpoint === '' ? `https://s3.${region}.amazonaws.com` : endpoint)
    const folders = [this.#base.pathname, encodePath(url.replace(/^s3:\/\//, ''))]
    this.#path = `${folders.map((folder) => folder.replace(/\/+$/, '')).join('/')}/`
    this.#region = region
    this.#readCredentials = readCredentials
    this.#now = now ?? (() => new Date(machineClock.wallMs()))
    this.#requestMs = requestMs
    this.#pool = new Pool(this.#base.origin, {
      connections: options.connections ?? MAX_CONNECTIONS,
      connect: { timeout: connectMs },
      headersTimeout: pauseMs,
      bodyTimeout: pauseMs,
    })
  }

  /**
   * Resolves when the store has confirmed exactly these bytes: by their MD5 as the ETag, or where it has none by their
   * number.
   *
   * @returns its ETag, see `ObjectHead`
   * @throws {StoreError} `CONFLICT`: there is another version than the options allow to overwrite
   */
  async put(object: StoredObject, options: PutOptions = {}): Promise<string | undefined> {
    const { key, chunks, contentType, cacheControl } = object
    const { replaces, signal } = options
    const [triedForm] = this.#etagForms
    const condition = this.#conditionOf(options)
    const { sha256, md5, sizeBytes } = await digestOf(chunks)
    const response = await this.#send('PUT', key, {
      headers: {
        'content-type': contentType,
        'content-length': String(sizeBytes),
        'cache-control': cacheControl,
        ...condition,
      },
      body: Readable.from(chunks),
      sha256,
      signal,
    })
    const { statusCode } = response
    if (condition !== undefined && statusCode === NOT_IMPLEMENTED) {
      await response.body.dump()
      if ('if-match' in condition) this.#etagForms = []
      else this.#canCreateOnly = false
      return this.put(object, options)
    }
    const isConflict =
      condition !== undefined &&
      (CONFLICTS.includes(statusCode) || ('if-match' in condition && statusCode === NOT_FOUND))
    if (statusCode !== 200 && !isConflict) throw await this.#refusal(response)
    await response.body.dump()
    const confirmedMd5 = isConflict ? undefined : md5Of(response.headers)
    if (confirmedMd5 === md5) return etagOf(response.headers)
    const stored = confirmedMd5 === undefined ? await this.head(key) : undefined
    if (replaces !== undefined && isConflict) {
      if (stored?.md5 === md5) return stored.etag
      if (stored?.etag === replaces && statusCode === PRECONDITION_FAILED) {
        // The store refuses the ETag that it gives, as older versions of Versity Gateway do in any form.
        this.#etagForms = this.#etagForms.filter((form) => form !== triedForm)
        return this.put(object, options)
      }
    } else if (stored?.sizeBytes === sizeBytes && (stored.md5 ?? md5) === md5)
      return (isConflict ? undefined : etagOf(response.headers)) ?? stored.etag
    throw isConflict
      ? new StoreError('CONFLICT', 'The store has another object of this name: it is not replaced')
      : new StoreError('NOT_STORED', 'The store has confirmed other bytes than were sent')
  }

  /**
   * @returns undefined: there is no such object
   * @throws {StoreError} also if the object has more than `maxBytes`
   */
  async get(
    key: string,
    { maxBytes }: { readonly maxBytes: number },
  ): Promise<StoredVersion | undefined> {
    const response = await this.#send('GET', key)
    if (response.statusCode !== 200) {
      const refusal = await this.#refusal(response)
      if (response.statusCode === 404 && refusal.code !== 'NO_BUCKET') return undefined
      throw refusal
    }
    const chunks: Buffer[] = []
    try {
      for await (const chunk of beginning(response.body, maxBytes)) chunks.push(chunk)
    } catch (error) {
      throw failureOf(error, this.#base.host)
    }
    const bytes = Buffer.concat(chunks)
    if (bytes.length <= maxBytes) return { bytes, etag: etagOf(response.headers) }
    throw new StoreError('TOO_LARGE', `The object has more than ${maxBytes} bytes`)
  }

  /**
   * @returns undefined: there is no such object, or no such bucket
   * @throws {StoreError}
   */
  async head(key: string): Promise<ObjectHead | undefined> {
    const response = await this.#send('HEAD', key)
    const { statusCode, headers, body } = response
    if (statusCode !== 200 && statusCode !== 404) throw await this.#refusal(response)
    await body.dump()
    return statusCode === 404
      ? undefined
      : {
          sizeBytes: Number(headers['content-length']),
          md5: md5Of(headers),
          etag: etagOf(headers),
        }
  }

  /** Ends all requests. */
  async close(): Promise<void> {
    await this.#pool.destroy()
  }

  /** @returns headers for what the store knows of it; undefined for nothing */
  #conditionOf({ createOnly, replaces }: PutOptions): Record<string, string> | undefined {
    const [form] = this.#etagForms
    if (replaces !== undefined) return form && { 'if-match': form(replaces) }
    return createOnly && this.#canCreateOnly ? { 'if-none-match': '*' } : undefined
  }

  /** @returns the response as soon as its head is there */
  async #send(
    method: 'GET' | 'HEAD' | 'PUT',
    key: string,
    {
      headers = {},
      body = null,
      sha256 = EMPTY_SHA256,
      signal,
    }: {
      headers?: Record<string, string>
      body?: Readable | null
      sha256?: string
      signal?: AbortSignal | undefined
    } = {},
  ): Promise<Dispatcher.ResponseData> {
    const path = this.#path + encodePath(key)
    const signed = await new AwsV4Signer({
      ...this.#readCredentials(),
      service: 's3',
      region: this.#region,
      datetime: this.#now()
        .toISOString()
        .replaceAll(/[:-]|\.\d+/g, ''),
      method,
      url: this.#base.origin + path,
      headers: { ...headers, 'x-amz-content-sha256': sha256 },
    }).sign()
    const limit = startTimeLimit(this.#requestMs)
    try {
      const response = await this.#pool.request({
        method,
        path,
        headers: Object.fromEntries(signed.headers),
        body,
        signal: signal ? AbortSignal.any([limit.signal, signal]) : limit.signal,
      })
      response.body.once('close', limit.cancel)
      return response
    } catch (error) {
      limit.cancel()
      throw failureOf(error, this.#base.host)
    }
  }

  async #refusal({ statusCode, headers, body }: Dispatcher.ResponseData): Promise<StoreError> {
    let text = ''
    try {
      for await (const chunk of beginning(body, MAX_REFUSAL_BYTES)) text += chunk.toString()
    } catch {
      // The status says enough.
    }
    return storeErrorOf({ status: statusCode, headers, text })
  }
}

/** Chunks of a body up to the one with which it has more than `maxBytes`; the rest is not read. */
async function* beginning(body: Readable, maxBytes: number): AsyncGenerator<Buffer> {
  let sizeBytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    yield chunk
    sizeBytes += chunk.length
    if (sizeBytes > maxBytes) break
  }
}

/** In turns of the event loop: 256 KiB take a millisecond. */
async function digestOf(
  chunks: readonly Buffer[],
): Promise<{ sha256: string; md5: string; sizeBytes: number }> {
  const [sha256, md5] = [createHash('sha256'), createHash('md5')]
  let sizeBytes = 0
  for (const chunk of chunks) {
    sha256.update(chunk)
    md5.update(chunk)
    sizeBytes += chunk.length
    await nextTurn()
  }
  return { sha256: sha256.digest('hex'), md5: md5.digest('hex'), sizeBytes }
}

function etagOf(headers: Dispatcher.ResponseData['headers']): string | undefined {
  return /^(?:W\/)?"?([^"]+)"?$/.exec(String(headers['etag'] ?? ''))?.[1]
}

/** MD5 of an object by its ETag; undefined where that is something else, as with encryption by KMS or a key of the client. */
function md5Of(headers: Dispatcher.ResponseData['headers']): string | undefined {
  const isEncrypted =
    String(headers['x-amz-server-side-encryption']).startsWith('aws:kms') ||
    headers['x-amz-server-side-encryption-customer-algorithm'] !== undefined
  const [md5] = /^[0-9a-f]{32}$/i.exec(etagOf(headers) ?? '') ?? []
  return isEncrypted ? undefined : md5?.toLowerCase()
}

/** RFC 3986, as signatures need it: everything but unreserved characters and slashes is percent-encoded, once. */
function encodePath(path: string): string {
  return encodeURIComponent(path)
    .replaceAll('%2F', '/')
    .replaceAll(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}
