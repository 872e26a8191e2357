/**
 * The session cookie of the dashboard (RFC 6265).
 *
 * @module
 */
import type { FastifyRequest } from 'fastify'
import { protocolOf } from '../node-access.ts'
import { SESSION_SEC } from './sessions.ts'

const NAME = 'millrace_admin'

/** Maximum number of cookies of the name that are read. */
const MAX_COOKIES = 4

/** Values of the cookie: other services of the host may have set one of the same name. */
export function readCookies({ cookie = '' }: FastifyRequest['headers']): string[] {
  const found = cookie.matchAll(new RegExp(`(?:^|; *)${NAME}=([\\w.-]+)`, 'g'))
  return Array.from(found, ([, value = '']) => value).slice(0, MAX_COOKIES)
}

/** @param value  an empty text deletes the cookie */
export function formatCookie(value: string, request: FastifyRequest): string {
  const maxAgeSec = value === '' ? 0 : SESSION_SEC
  const secure = protocolOf(request) === 'https' ? '; Secure' : ''
  return `${NAME}=${value}; Path=/admin; Max-Age=${maxAgeSec}; HttpOnly; SameSite=Strict${secure}`
}
