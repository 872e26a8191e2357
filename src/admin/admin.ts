/**
 * The dashboard at `/admin`: its page, login, live snapshots, graphs, and calls that change streams.
 *
 * The cookie opens these routes alone: `/api` takes signed requests only.
 *
 * @module
 */
import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { MillraceError } from '../errors.ts'
import { readPage, serveFile } from '../http/static-files.ts'
import { check, type CheckPluginOptions } from './check.ts'
import { detail, type DetailOptions } from './detail.ts'
import { events, type EventsOptions } from './events.ts'
import { history, type HistoryOptions } from './history.ts'
import { login, logout } from './login.ts'
import { previews } from './previews.ts'
import { Sessions } from './sessions.ts'
import { streams, type StreamCallsOptions } from './streams.ts'

export interface AdminOptions
  extends
    HistoryOptions,
    StreamCallsOptions,
    DetailOptions,
    CheckPluginOptions,
    Omit<EventsOptions, 'sessions'> {
  /** The password now. */
  readonly readPassword: () => string
}

const LIBRARIES = {
  'hls.min.js': 'hls.js/dist/hls.min.js',
  'uplot.min.js': 'uplot/dist/uPlot.iife.min.js',
  'uplot.min.css': 'uplot/dist/uPlot.min.css',
}

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
  // The page is no secret. The redirect is relative, so that it also works below a prefix of a reverse proxy.
  app.get('', (_request, reply) => reply.redirect('admin/', 308))
  const { html, assets } = readPage('dashboard', LIBRARIES)
  serveFile(app, '/', html, 'no-cache')
  for (const file of assets) serveFile(app, `/assets/${file.name}`, file, 'no-cache')
  void app.register(login, { ...options, sessions })
  void app.register(async (inside) => {
    inside.addHook('onRequest', async ({ headers }) => {
      if (sessions.find(headers, clock.wallMs()) === undefined) {
        throw new MillraceError('LOGIN_REQUIRED')
      }
    })
    void inside.register(logout, { ...options, sessions })
    void inside.register(events, { ...options, sessions })
    void inside.register(streams, options)
    void inside.register(history, options)
    void inside.register(detail, options)
    void inside.register(check, options)
    void inside.register(previews, options)
  })
}

/**
 * Refuses requests unless a page of ours made them. Browsers send `Sec-Fetch-Site` to HTTPS and loopback, and `Origin`
 * with each POST; no page can set either.
 *
 * @throws {MillraceError} `CROSS_SITE_REQUEST`
 */
function requireSameOrigin(request: FastifyRequest): void {
  const { 'sec-fetch-site': site, origin } = request.headers
  const isOurs = site === undefined ? isHost(origin, request.host) : site === 'same-origin'
  if (!isOurs) throw new MillraceError('CROSS_SITE_REQUEST')
}

/** @param origin  `null` for a page that has none */
function isHost(origin: string | undefined, host: string): boolean {
  return origin !== undefined && URL.canParse(origin) && new URL(origin).host === host
}
