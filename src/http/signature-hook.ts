/**
 * What every API request passes before its route: LT-SIGNATURE over the raw body, then content type, then JSON.
 *
 * The body is read here, and not by Fastify's parsers, because these judge the content type before anybody sees the
 * bytes. Fastify must not parse after it: see app.ts.
 *
 * @module
 */
import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { verifyAny } from '../auth/signature.ts'
import { MillraceError } from '../errors.ts'

const MAX_BODY_BYTES = 64 * 1024

/** Makes every route of `app` demand a signed JSON body; `request.body` is the value it holds. */
export function requireSignature(app: FastifyInstance, hmacSecrets: readonly string[]): void {
  app.addHook('preParsing', async (request, _reply, payload) => {
    request.body = await readSignedBody(request, payload, hmacSecrets)
    return payload
  })
}

async function readSignedBody(
  { headers }: FastifyRequest,
  payload: Readable,
  hmacSecrets: readonly string[],
): Promise<unknown> {
  const signature = headers['lt-signature']
  if (signature === undefined) throw new MillraceError('SIGNATURE_MISSING')
  const bytes = await readBody(payload)
  // Node joins repeated headers to one value, which then is no signature.
  if (!verifyAny(bytes, String(signature), hmacSecrets))
    throw new MillraceError('SIGNATURE_INVALID')
  if (!isJson(headers['content-type'])) throw new MillraceError('CONTENT_TYPE_UNSUPPORTED')
  try {
    return JSON.parse(bytes.toString())
  } catch {
    throw new MillraceError('BODY_INVALID', { message: 'the request body is not valid JSON' })
  }
}

/** What comes after a refusal is read and thrown away, so that the client lives to see the reply. */
function readBody(payload: Readable): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let sizeBytes = 0
    payload.on('data', (chunk: Buffer) => {
      sizeBytes += chunk.length
      if (sizeBytes <= MAX_BODY_BYTES) chunks.push(chunk)
      else reject(new MillraceError('BODY_TOO_LARGE'))
    })
    payload.once('end', () => resolve(Buffer.concat(chunks)))
    payload.once('error', (cause) => reject(new MillraceError('REQUEST_MALFORMED', { cause })))
  })
}

/** Media type `application/json`, with or without parameters (RFC 9110 section 8.3.1). */
function isJson(contentType: string | undefined): boolean {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() === 'application/json'
}
