/**
 * The dashboard at `/admin`: its page, login, live snapshots, graphs, and calls that change streams.
 *
 * The cookie opens these routes alone: `/api` takes signed requests only.
 *
 * @module
 */
import type { FastifyPluginAsync } from 'fastify'
import { MillraceError } from '../../errors.ts'
import { MAX_BODY_BYTES } from '../body-reader.ts'
import type { AdminOptions } from './admin-options.ts'
import { assets } from './assets.ts'
import { readBodies } from './bodies.ts'
import { readCookies } from './cookie.ts'
import { events } from './events.ts'
import { login, logout } from './login.ts'
import { previews } from './previews.ts'
import { requireSameOrigin } from './same-origin.ts'
import { Sessions } from './sessions.ts'
import { streams } from './streams.ts'

const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  // The playlist of a key frame, and the media that hls.js makes of it, are blobs.
  "connect-src 'self' blob:",
  'media-src blob:',
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Fastify plugin for the prefix `/admin`. */
export const admin: FastifyPluginAsync<AdminOptions> = async (app, allOptions) => {
  // Without the prefix, which Fastify would add again.
  const { prefix: _, ...options } = allOptions as AdminOptions & { prefix?: string }
  const { clock, readPassword } = options
  const sessions = new Sessions(readPassword)
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({
      'cache-control': 'no-store',
      'content-security-policy': CONTENT_SECURITY_POLICY,
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    })
    if (request.method === 'POST') requireSameOrigin(request)
  })
  void app.register(assets)
  void app.register(login, { ...options, sessions })
  void app.register(async (inside) => {
    inside.addHook('onRequest', async ({ headers }) => {
      if (sessions.find(readCookies(headers), clock.wallMs()) === undefined) {
        throw new MillraceError('LOGIN_REQUIRED')
      }
    })
    readBodies(inside, MAX_BODY_BYTES)
    void inside.register(logout, { sessions, clock })
    void inside.register(events, { ...options, sessions })
    void inside.register(streams, options)
    void inside.register(previews, options)
  })
}
