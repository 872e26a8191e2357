/**
 * Bodies of API requests in memory. A signature can be verified only when the whole body has arrived, so a client
 * without a secret can make the service store one. Each body and their total are limited, in bytes of memory.
 *
 * @module
 */
import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { MillraceError } from '../errors.ts'
import { checkSignedBody } from './node-access.ts'

/** Default limit. */
const MAX_BODY_BYTES = 64 * 1024

/** Initial capacity of a body. */
const MIN_CAPACITY_BYTES = 256

/** Part of each body's capacity that does not count toward MAX_SHARED_BYTES: small requests are read at any load. */
const FREE_CAPACITY_BYTES = 2 * 1024

/** Maximum total capacity of all bodies, each less FREE_CAPACITY_BYTES. */
const MAX_SHARED_BYTES = 16 * 1024 * 1024

/** An application has read it, so that its bytes cannot be verified. */
const ALREADY_READ = new MillraceError('REQUEST_MALFORMED', {
  message: 'the request body was read before: pass requests to Millrace before they are parsed',
})

/** One instance for all requests of a service. */
export class BodyReader {
  readonly #maxBytes: number
  #sharedBytes = 0

  /** @param maxBytes  maximum size of a body */
  constructor(maxBytes = MAX_BODY_BYTES) {
    this.#maxBytes = maxBytes
  }

  /**
   * Reads a body into one buffer. A list of chunks could take far more memory: each chunk is a view that retains a
   * whole socket read.
   *
   * @param contentLength  header `Content-Length`, if present
   * @throws {MillraceError} `BODY_TOO_LARGE`, `TOO_MANY_BODIES`, `REQUEST_MALFORMED`; the rest of the body is not read
   */
  async read(payload: Readable, contentLength = '0'): Promise<Buffer> {
    if (payload.readableEnded) throw ALREADY_READ
    if (Number(contentLength) > this.#maxBytes) throw this.#tooLarge()
    let body: Buffer = Buffer.allocUnsafeSlow(MIN_CAPACITY_BYTES)
    let sizeBytes = 0
    const append = (chunk: Buffer) => {
      const neededBytes = sizeBytes + chunk.length
      if (neededBytes > this.#maxBytes) throw this.#tooLarge()
      if (neededBytes > body.length) body = this.#grow(body, neededBytes)
      chunk.copy(body, sizeBytes)
      sizeBytes = neededBytes
    }
    try {
      await forEachChunk(payload, append)
      return body.subarray(0, sizeBytes)
    } finally {
      this.#sharedBytes -= sharedBytes(body.length)
    }
  }

  #tooLarge(): MillraceError {
    const message = `the request body may have at most ${this.#maxBytes} bytes`
    return new MillraceError('BODY_TOO_LARGE', { message })
  }

  #grow(body: Buffer, neededBytes: number): Buffer {
    const capacity = Math.min(Math.max(neededBytes, 2 * body.length), this.#maxBytes)
    const addedBytes = sharedBytes(capacity) - sharedBytes(body.length)
    if (addedBytes > 0 && this.#sharedBytes + addedBytes > MAX_SHARED_BYTES) {
      throw new MillraceError('TOO_MANY_BODIES')
    }
    this.#sharedBytes += addedBytes
    const grown = Buffer.allocUnsafeSlow(capacity)
    body.copy(grown)
    return grown
  }
}

/**
 * Reads the bodies of all requests of `app` after its `onRequest` hooks, which may refuse a request before it costs
 * memory. Fastify parses nothing, see create-app.ts.
 *
 * @param parse  makes `request.body` of the bytes, which a node that has signed the request has signed too
 * @param maxBytes  maximum size of a body
 */
export function readBodies(
  app: FastifyInstance,
  parse: (bytes: Buffer, request: FastifyRequest) => unknown,
  maxBytes?: number,
): void {
  const bodies = new BodyReader(maxBytes)
  app.addHook('preParsing', async (request, _reply, payload) => {
    const bytes = await bodies.read(payload, request.headers['content-length'])
    checkSignedBody(request, bytes)
    request.body = parse(bytes, request)
    return payload
  })
}

/** @throws {MillraceError} `CONTENT_TYPE_UNSUPPORTED`, `BODY_INVALID` */
export function parseJson(bytes: Buffer, { headers }: Pick<FastifyRequest, 'headers'>): unknown {
  if (!isJson(headers['content-type'])) throw new MillraceError('CONTENT_TYPE_UNSUPPORTED')
  try {
    return JSON.parse(bytes.toString())
  } catch {
    throw new MillraceError('BODY_INVALID', { message: 'the request body is not valid JSON' })
  }
}

/** Media type `application/json`, with or without parameters (RFC 9110 section 8.3.1). */
function isJson(contentType: string | undefined): boolean {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() === 'application/json'
}

function sharedBytes(capacity: number): number {
  return Math.max(0, capacity - FREE_CAPACITY_BYTES)
}

/** Calls `take` for each chunk as it arrives; `for await` would queue chunks. Rejects if the client disconnects. */
function forEachChunk(payload: Readable, take: (chunk: Buffer) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const onData = (chunk: Buffer) => {
      try {
        take(chunk)
      } catch (error) {
        payload.off('data', onData).pause()
        reject(error)
      }
    }
    const onLost = (cause?: Error) => reject(new MillraceError('REQUEST_MALFORMED', { cause }))
    payload.on('data', onData).once('end', resolve).once('error', onLost).once('close', onLost)
  })
}
