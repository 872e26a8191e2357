/**
 * Health for load balancers and orchestrators: `/health/live` answers while the process runs, `/health/ready` while it
 * is to get new streams.
 *
 * @module
 */
import type { FastifyPluginAsync } from 'fastify'

interface HealthOptions {
  /** @returns why no new streams are to be sent here, as words with hyphens; empty when ready */
  readonly listUnreadyReasons: () => readonly string[]
}

/** Fastify plugin for the prefix `/health`. */
export const health: FastifyPluginAsync<HealthOptions> = async (app, { listUnreadyReasons }) => {
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })

  app.get('/live', async () => ({ status: 'live' }))

  app.get('/ready', async (_request, reply) => {
    const reasons = listUnreadyReasons()
    const isReady = reasons.length === 0
    reply.code(isReady ? 200 : 503)
    return { status: isReady ? 'ready' : 'unready', reasons }
  })
}
