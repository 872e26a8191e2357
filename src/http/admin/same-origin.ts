/**
 * Protection from requests that other sites make with the operator's cookie.
 *
 * @module
 */
import type { FastifyRequest } from 'fastify'
import { MillraceError } from '../../errors.ts'

/**
 * Refuses requests unless a page of ours made them. Browsers send `Sec-Fetch-Site` to HTTPS and loopback, and `Origin`
 * with each POST; no page can set either.
 *
 * @throws {MillraceError} `CROSS_SITE_REQUEST`
 */
export function requireSameOrigin(request: FastifyRequest): void {
  const { 'sec-fetch-site': site, origin } = request.headers
  const isOurs = site === undefined ? isHost(origin, request.host) : site === 'same-origin'
  if (!isOurs) throw new MillraceError('CROSS_SITE_REQUEST')
}

/** @param origin  `null` for a page that has none */
function isHost(origin: string | undefined, host: string): boolean {
  return origin !== undefined && URL.canParse(origin) && new URL(origin).host === host
}
