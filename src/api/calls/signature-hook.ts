/**
 * Checks of every API request before its route: LT-SIGNATURE over the raw body, then content type, then JSON. Fastify's
 * parsers would check the content type before the signature.
 *
 * @module
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { findSigner, isSignature, keyId } from '../../auth/signature.ts'
import { MillraceError } from '../../errors.ts'
import { parseJson, readBodies } from '../../http/body-reader.ts'

/**
 * Requires a signed JSON body on every route of `app`, and sets `request.body` to its value.
 *
 * @returns ids of the secrets that signed the requests, see `keyId`
 */
export function requireSignature(
  app: FastifyInstance,
  readSecrets: () => readonly string[],
): WeakMap<FastifyRequest, string> {
  const keyIds = new WeakMap<FastifyRequest, string>()
  // A missing or malformed signature is refused before the body is read.
  app.addHook('onRequest', async (request) => void signatureOf(request))
  readBodies(app, (bytes, request) => {
    const secret = findSigner(bytes, signatureOf(request), readSecrets())
    if (secret === undefined) throw new MillraceError('SIGNATURE_INVALID')
    keyIds.set(request, keyId(secret))
    return parseJson(bytes, request)
  })
  return keyIds
}

function signatureOf({ headers }: FastifyRequest): string {
  const signature = headers['lt-signature']
  if (signature === undefined) throw new MillraceError('SIGNATURE_MISSING')
  // Node joins repeated headers to one value, which is malformed.
  if (!isSignature(String(signature))) throw new MillraceError('SIGNATURE_INVALID')
  return String(signature)
}
