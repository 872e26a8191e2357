/**
 * Pages for people who come without knowing the way: `/`, and `/admin` where there is no dashboard. Clients get
 * ROUTE_NOT_FOUND in place of `/` if they ask for JSON, and in place of `/admin` unless they ask for HTML.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { notFoundHandler } from '../http/error-handler.ts'

/** What an application offers. */
interface FrontPageOptions {
  readonly hasPlayback: boolean
  /** Whether viewers need a token. */
  readonly hasTokens: boolean
  readonly hasApi: boolean
  readonly hasDashboard: boolean
}

const STYLE =
  'body{max-width:40rem;margin:4rem auto;padding:0 1rem;font:1rem/1.5 system-ui,sans-serif}' +
  'dt{font-weight:600}dd{margin:0 0 1rem}'

const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  'img-src data:',
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Adds `/`. Links are relative, so that they also work below a prefix of a reverse proxy. */
export function addFrontPage(app: FastifyInstance, options: FrontPageOptions): void {
  const { hasPlayback, hasTokens, hasApi, hasDashboard } = options
  const token = hasTokens ? '/t/{token}' : ''
  const playback = [
    ['Watch a stream in a browser', `<code>${token}/watch/{stream_id}</code>`],
    ['Play it elsewhere', `<code>${token}/video/{stream_id}/master.m3u8</code>`],
  ]
  const dashboard = hasDashboard ? 'on the <a href="admin">dashboard</a>, or ' : ''
  const api = [
    ['Start a stream', `${dashboard}with <code>POST /api/start-stream</code>, signed`],
    ['All calls', '<a href="api/openapi.json">OpenAPI document</a>'],
  ]
  const docs = ['Documentation', 'README.md and docs/ of Millrace']
  const rows = [...(hasPlayback ? playback : []), ...(hasApi ? api : []), docs]
  const list = rows.map(([term, what]) => `<dt>${term}</dt><dd>${what}</dd>`).join('\n')
  const text = `<p>Live video in over SRT, out as HLS. The service runs.</p>\n<dl>\n${list}\n</dl>`
  app.get('/', sendPage(200, 'Millrace', text))
}

/** Adds `/admin` of an application that has no dashboard, since its password is not set. */
export function addNoDashboard(app: FastifyInstance): void {
  const text =
    '<p>The dashboard is off: <code>ADMIN_PASSWORD</code> is not set. Set it to 16 characters or more, ' +
    'beside <code>HMAC_SECRET</code>, and restart the service.</p>'
  const send = sendPage(404, 'Millrace dashboard', text)
  for (const url of ['/admin', '/admin/']) app.get(url, send)
}

function sendPage(status: number, title: string, text: string) {
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<meta name="color-scheme" content="light dark" />
<title>${title}</title>
<link rel="icon" href="data:," />
<style>${STYLE}</style>
</head>
<body>
<h1>${title}</h1>
${text}
</body>
</html>
`
  return (request: FastifyRequest, reply: FastifyReply) => {
    const { accept = '' } = request.headers
    const isWanted = accept.includes('text/html') || (status === 200 && !accept.includes('json'))
    if (!isWanted) {
      notFoundHandler(request, reply, ['Cache-Control', 'no-store', 'Vary', 'Accept'])
      return
    }
    reply.headers({
      'cache-control': 'no-store',
      'content-security-policy': CONTENT_SECURITY_POLICY,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      vary: 'Accept',
    })
    reply.code(status).type('text/html; charset=utf-8').send(html)
  }
}
