/**
 * The session cookie of the dashboard (RFC 6265).
 *
 * @module
 */
import type { FastifyRequest } from 'fastify'
import { SESSION_SEC } from './sessions.ts'

const NAME = 'millrace_admin'

/** @returns an empty text without the cookie */
export function readCookie({ cookie = '' }: FastifyRequest['headers']): string {
  return new RegExp(`(?:^|; *)${NAME}=([\\w.-]+)`).exec(cookie)?.[1] ?? ''
}

/** @param value  an empty text deletes the cookie */
export function formatCookie(value: string, { protocol }: FastifyRequest): string {
  const maxAgeSec = value === '' ? 0 : SESSION_SEC
  const secure = protocol === 'https' ? '; Secure' : ''
  return `${NAME}=${value}; Path=/admin; Max-Age=${maxAgeSec}; HttpOnly; SameSite=Strict${secure}`
}
