/**
 * A Fastify application whose users watch the streams that they may watch.
 */
import process from 'node:process'
import Fastify from 'fastify'
import { jwtVerify, SignJWT } from 'jose'
import { createServer } from 'millrace'
import { playback } from 'millrace/fastify'

const SESSION_SEC = 8 * 3600

/** Users and their streams, in place of the application's database. */
const USERS = new Map([['ada', { password: process.env['ADA_PASSWORD'], streams: ['studio'] }]])

/** @param {string} name */
function setting(name) {
  const value = process.env[name]
  if (value === undefined || value === '') throw new Error(`${name} is not set`)
  return value
}

const sessionKey = new TextEncoder().encode(setting('SESSION_SECRET'))

const server = await createServer({
  hmacSecret: setting('HMAC_SECRET'),
  jwtSecret: setting('JWT_SECRET'),
  logLevel: 'error',
  srt: { port: Number(process.env['SRT_PORT'] ?? 10080) },
  // Playback without a session would be public there.
  http: { host: '127.0.0.1', port: Number(process.env['HTTP_PORT'] ?? 8080) },
})

const app = Fastify({ routerOptions: { maxParamLength: 512 } })

app.post('/login', async (request, reply) => {
  const { user: name, password } = /** @type {Record<string, unknown>} */ (request.body ?? {})
  const user = typeof name === 'string' ? USERS.get(name) : undefined
  if (user?.password === undefined || user.password !== password) {
    return reply.code(403).send({ error: 'wrong user or password' })
  }
  const token = await new SignJWT({ streams: user.streams })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(String(name))
    .setExpirationTime(`${SESSION_SEC} s`)
    .sign(sessionKey)
  const cookie = `session=${token}; Max-Age=${SESSION_SEC}; Path=/; HttpOnly; SameSite=Lax`
  return reply.header('set-cookie', cookie).send({ token })
})

await app.register(async (viewers) => {
  viewers.addHook('onRequest', async (request, reply) => {
    // A preflight has neither cookies nor Authorization (Fetch standard, CORS-preflight fetch).
    if (request.method === 'OPTIONS') return
    const streams = await readSession(request.headers)
    const { stream_id: streamId } = /** @type {{ stream_id: string }} */ (request.params)
    reply.header('cache-control', 'no-store')
    if (streams === undefined) await reply.code(401).send({ error: 'log in first' })
    else if (!streams.includes(streamId)) await reply.code(403).send({ error: 'not your stream' })
  })
  await viewers.register(playback, { prefix: '/live', source: server })
})

/**
 * @param {import('node:http').IncomingHttpHeaders} headers
 * @returns {Promise<unknown[] | undefined>} the streams of the user; undefined without a valid session
 */
async function readSession({ authorization = '', cookie = '' }) {
  const token =
    /^Bearer (\S+)$/i.exec(authorization)?.[1] ?? /\bsession=([^;\s]+)/.exec(cookie)?.[1]
  if (token === undefined) return undefined
  try {
    const { payload } = await jwtVerify(token, sessionKey, { algorithms: ['HS256'] })
    return Array.isArray(payload['streams']) ? payload['streams'] : []
  } catch {
    return undefined
  }
}

console.log(`listening on ${await app.listen({ port: Number(process.env['APP_PORT'] ?? 3000) })}`)
// Webhooks to this application would be refused before it listens.
const { srtUrl } = await server.startStream({ streamId: 'studio' })
console.log(`publish to ${srtUrl}`)

process.once('SIGTERM', () => void close())
process.once('SIGINT', () => void close())

async function close() {
  // Viewers load the end of the playlist from the application, which may receive the last webhooks as well.
  await server.close({ drainMs: 2500 })
  await app.close()
}
