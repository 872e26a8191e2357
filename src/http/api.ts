/**
 * The signed API: start, stop, kick and status of a stream, and the list of streams.
 *
 * @module
 */
import {
  TypeBoxValidatorCompiler,
  type FastifyPluginAsyncTypebox,
} from '@fastify/type-provider-typebox'
import type { Clock } from '../clock.ts'
import { checkRequestAge } from './request-age.ts'
import {
  formatBodyError,
  KickBody,
  StartStreamBody,
  StopStreamBody,
  StreamBody,
  StreamsBody,
} from '../contract/schema.ts'
import { requireSignature } from './signature-hook.ts'
import type { StreamControl, StreamRecord } from '../contract/streams.ts'
import { onTheWire } from '../contract/wire-names.ts'

export interface ApiOptions {
  readonly control: StreamControl
  readonly hmacSecrets: readonly string[]
  /** Maximum age of requests in seconds; 0: any age. */
  readonly maxAgeSec: number
  readonly clock: Pick<Clock, 'wallMs'>
}

/** Fastify plugin for the prefix `/api`. */
export const api: FastifyPluginAsyncTypebox<ApiOptions> = async (app, options) => {
  const { control, hmacSecrets, maxAgeSec, clock } = options
  requireSignature(app, hmacSecrets)
  app.setValidatorCompiler(TypeBoxValidatorCompiler)
  app.setSchemaErrorFormatter(formatBodyError)
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })

  app.addHook<{ Body: { issued_at?: number } }>('preHandler', async ({ body }) => {
    checkRequestAge(body.issued_at, { maxAgeSec, nowMs: clock.wallMs() })
  })

  app.post('/start-stream', { schema: { body: StartStreamBody } }, async ({ body }) => {
    const { stream_id: streamId, webhook_urls: webhookUrls, encryption } = body
    const request = {
      streamId,
      ...(webhookUrls !== undefined && { webhookUrls }),
      ...(encryption !== undefined && { encryption }),
    }
    return success(await control.startStream(request))
  })

  app.post('/stop-stream', { schema: { body: StopStreamBody } }, async ({ body }) => {
    const { stream_id: streamId, revoke = false } = body
    return success(record(await control.stopStream(streamId, { revoke })))
  })

  app.post('/kick', { schema: { body: KickBody } }, async ({ body }) => {
    const { stream_id: streamId, ban_sec: banSec = 0 } = body
    return success(record(control.kick(streamId, { banSec })))
  })

  app.route({
    // POST too, since `fetch` cannot send a body with GET.
    method: ['GET', 'POST'],
    url: '/status',
    schema: { body: StreamBody },
    exposeHeadRoute: false,
    handler: async ({ body }) => success(record(control.status(body.stream_id))),
  })

  app.post('/streams', { schema: { body: StreamsBody } }, async ({ body }) => {
    const { issued_at: _, ...request } = body
    const { streams, next, ...page } = control.list(request)
    return success({ streams: streams.map(record), next: next ?? null, ...page })
  })
}

/** Record as it is sent: `liveSince` and `publisher` are null instead of absent. */
function record(report: Omit<StreamRecord, 'service'>): object {
  return { ...report, liveSince: report.liveSince ?? null, publisher: report.publisher ?? null }
}

function success(data: object): object {
  return { success: true, data: onTheWire(data) }
}
