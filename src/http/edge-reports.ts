/**
 * Reports of workers, on the Unix socket that they share with the ingest process.
 *
 * @module
 */
import type { FastifyPluginAsync } from 'fastify'
import type { EdgeReport } from '../contract/edge-report.ts'
import { MillraceError } from '../errors.ts'
import { BodyReader } from './body-reader.ts'

export interface EdgeReportsOptions {
  readonly onReport: (report: EdgeReport) => void
}

/** Maximum size of a report: each viewer takes some 20 bytes. */
const MAX_BYTES = 8 * 1024 * 1024

/** Path of the route. */
export const EDGE_REPORTS = '/edge-reports'

/** Fastify plugin: `POST /edge-reports` with an `EdgeReport`. Never register it on a port: reports are believed. */
export const edgeReports: FastifyPluginAsync<EdgeReportsOptions> = async (app, { onReport }) => {
  const bodies = new BodyReader(MAX_BYTES)
  app.addHook('onRequest', async ({ headers }) => {
    // A worker names the client of every request that it passes on.
    if ('x-forwarded-for' in headers) throw new MillraceError('ROUTE_NOT_FOUND')
  })
  app.addHook('preParsing', async (request, _reply, payload) => {
    const bytes = await bodies.read(payload, request.headers['content-length'])
    request.body = JSON.parse(bytes.toString())
    return payload
  })
  app.post(EDGE_REPORTS, async ({ body }, reply) => {
    onReport(body as EdgeReport)
    return reply.code(204).send()
  })
}
