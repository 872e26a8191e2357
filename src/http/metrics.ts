/**
 * `/metrics` for Prometheus: figures of the service in the text format of version 0.0.4.
 *
 * @module
 */
import type { FastifyPluginAsync } from 'fastify'
import { hasBearer } from '../auth/same-secret.ts'
import { MillraceError } from '../errors.ts'

export interface MetricsOptions {
  readonly renderMetrics: () => Promise<string>
  /** Reads the values of `METRICS_TOKEN`, any of which a request must have; empty: requests need none. */
  readonly readTokens: () => readonly string[]
}

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Fastify plugin for the prefix `/metrics`. */
export const metrics: FastifyPluginAsync<MetricsOptions> = async (app, options) => {
  const { renderMetrics, readTokens } = options
  app.get('/', async ({ headers }, reply) => {
    const tokens = readTokens()
    if (tokens.length > 0 && !hasBearer(headers.authorization, tokens)) {
      reply.header('www-authenticate', 'Bearer')
      throw new MillraceError('METRICS_TOKEN_INVALID')
    }
    reply.header('cache-control', 'no-store').type(CONTENT_TYPE)
    return renderMetrics()
  })
}
