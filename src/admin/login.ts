/**
 * Login and logout of the dashboard.
 *
 * @module
 */
import type { FastifyPluginAsync } from 'fastify'
import { MillraceError } from '../errors.ts'
import { clientAddress, limitRate } from '../http/client-address.ts'
import { parseJson, readBodies } from '../http/body-reader.ts'
import type { Logger } from '../logger.ts'
import type { Clock } from '../timing/clock.ts'
import { TokenBucket } from '../timing/token-bucket.ts'
import type { SessionState } from '../web/dashboard/wire.ts'
import { formatCookie, type Sessions } from './sessions.ts'

/** Attempts of one address: 5 at once, then one in 10 s. */
const ADDRESS_LIMIT = { perSec: 0.1, atOnce: 5 }

/** Attempts of all addresses: above those of any operator, so low that many addresses do not guess a password. */
const ALL_PER_SEC = 5
const ALL_AT_ONCE = 50

/** Maximum size of a login, whose body is read before the password is known. */
const MAX_LOGIN_BYTES = 1024

interface LoginOptions {
  readonly sessions: Sessions
  readonly clock: Clock
  /** Receives the audit log; undefined: there is none. */
  readonly auditLogger?: Logger | undefined
}

/** Fastify plugin: `POST /login` with `{"password"}`, and `GET /session`, the `SessionState`. */
export const login: FastifyPluginAsync<LoginOptions> = async (app, options) => {
  const { sessions, clock, auditLogger } = options

  void app.register(async (limited) => {
    const all = new TokenBucket(ALL_PER_SEC, clock.nowUs(), ALL_AT_ONCE)
    limitRate(limited, { ...ADDRESS_LIMIT, clock, refusal: 'TOO_MANY_LOGINS' })
    limited.addHook('onRequest', async (_request, reply) => {
      if (all.take(clock.nowUs())) return
      reply.header('retry-after', '1')
      throw new MillraceError('TOO_MANY_LOGINS')
    })
    readBodies(limited, parseJson, MAX_LOGIN_BYTES)
    limited.post('/login', async (request, reply) => {
      const { password } = (request.body ?? {}) as { password?: unknown }
      const isRight = typeof password === 'string' && sessions.isPassword(password)
      const result = isRight ? 'ok' : 'PASSWORD_WRONG'
      auditLogger?.info({ audit: 'login', client: clientAddress(request), result }, 'dashboard')
      if (!isRight) throw new MillraceError('PASSWORD_WRONG')
      reply.header('set-cookie', formatCookie(sessions.open(clock.wallMs()), request))
      return { success: true, data: {} }
    })
  })

  app.get('/session', async ({ headers }) => {
    const nowMs = clock.wallMs()
    const open = sessions.find(headers, nowMs) !== undefined
    const data: SessionState = { open, lost: !open && sessions.hasLost(headers, nowMs) }
    return { success: true, data }
  })
}

/** Fastify plugin: `POST /logout` of a session that is open. */
export const logout: FastifyPluginAsync<LoginOptions> = async (app, { sessions, clock }) => {
  readBodies(app, parseJson)
  app.post('/logout', async (request, reply) => {
    const session = sessions.find(request.headers, clock.wallMs())
    if (session !== undefined) sessions.close(session)
    reply.header('set-cookie', formatCookie('', request))
    return { success: true, data: {} }
  })
}
