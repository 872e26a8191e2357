/**
 * Checks of every API request before its route: LT-SIGNATURE over the raw body, then content type, then JSON.
 *
 * The hook reads the body itself, since Fastify's parsers would check the content type before the signature. app.ts
 * keeps Fastify from parsing the body again.
 *
 * @module
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { findSigner, isSignature, keyId } from '../auth/signature.ts'
import { MillraceError } from '../errors.ts'
import { BodyReader } from './body-reader.ts'
import { checkSignedBody } from './node-access.ts'

/**
 * Requires a signed JSON body on every route of `app`, and sets `request.body` to its value.
 *
 * @returns ids of the secrets that signed the requests, see `keyId`
 */
export function requireSignature(
  app: FastifyInstance,
  readSecrets: () => readonly string[],
): WeakMap<FastifyRequest, string> {
  const bodies = new BodyReader()
  const keyIds = new WeakMap<FastifyRequest, string>()
  app.addHook('preParsing', async (request, _reply, payload) => {
    const { headers } = request
    const signature = findSignature(headers)
    const bytes = await bodies.read(payload, headers['content-length'])
    checkSignedBody(request, bytes)
    const secret = findSigner(bytes, signature, readSecrets())
    if (secret === undefined) throw new MillraceError('SIGNATURE_INVALID')
    keyIds.set(request, keyId(secret))
    request.body = parseJson(bytes, headers['content-type'])
    return payload
  })
  return keyIds
}

/** @returns the header; a malformed one is refused before the body is read */
function findSignature(headers: FastifyRequest['headers']): string {
  const signature = headers['lt-signature']
  if (signature === undefined) throw new MillraceError('SIGNATURE_MISSING')
  // Node joins repeated headers to one value, which is malformed.
  if (!isSignature(String(signature))) throw new MillraceError('SIGNATURE_INVALID')
  return String(signature)
}

/** @throws {MillraceError} `CONTENT_TYPE_UNSUPPORTED`, `BODY_INVALID` */
export function parseJson(bytes: Buffer, contentType: string | undefined): unknown {
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
