/**
 * Checks of every API request before its route: LT-SIGNATURE over the raw body, then content type, then JSON.
 *
 * The body is read here, and not by Fastify's parsers, because these judge the content type before anybody sees the
 * bytes. Fastify must not parse after it: see app.ts.
 *
 * @module
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isSignature, verifyAny } from '../auth/signature.ts'
import { MillraceError } from '../errors.ts'
import { BodyReader } from './body-reader.ts'

/** Makes every route of `app` demand a signed JSON body; `request.body` is the value it holds. */
export function requireSignature(app: FastifyInstance, hmacSecrets: readonly string[]): void {
  const bodies = new BodyReader()
  app.addHook('preParsing', async (request, _reply, payload) => {
    const { headers } = request
    const signature = findSignature(headers)
    const bytes = await bodies.read(payload, headers['content-length'])
    if (!verifyAny(bytes, signature, hmacSecrets)) throw new MillraceError('SIGNATURE_INVALID')
    request.body = parseJson(bytes, headers['content-type'])
    return payload
  })
}

/** The header, if it could be the signature of any body: otherwise none is read. */
function findSignature(headers: FastifyRequest['headers']): string {
  const signature = headers['lt-signature']
  if (signature === undefined) throw new MillraceError('SIGNATURE_MISSING')
  // Node joins repeated headers to one value, which then is no signature.
  if (!isSignature(String(signature))) throw new MillraceError('SIGNATURE_INVALID')
  return String(signature)
}

function parseJson(bytes: Buffer, contentType: string | undefined): unknown {
  if (!isJson(contentType)) throw new MillraceError('CONTENT_TYPE_UNSUPPORTED')
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
