/**
 * The signed API: start, stop, kick and status of a stream, and the lists of streams and of nodes.
 *
 * @module
 */
import {
  TypeBoxValidatorCompiler,
  type FastifyPluginAsyncTypebox,
} from '@fastify/type-provider-typebox'
import type { Clock } from '../clock.ts'
import type { Logger } from '../logger.ts'
import { clientAddress } from './access.ts'
import { audit } from './audit.ts'
import { checkRequestAge } from './request-age.ts'
import {
  ENDPOINTS,
  type AnswerData,
  type EndpointName,
  type RequestBody,
} from '../contract/endpoints.ts'
import { formatBodyError } from '../contract/schema.ts'
import { requireSignature } from './signature-hook.ts'
import type { StreamControl, StreamRecord } from '../contract/streams.ts'
import { offTheWire, onTheWire, type OffTheWire } from '../contract/wire-names.ts'

export interface ApiOptions {
  readonly control: StreamControl
  readonly readHmacSecrets: () => readonly string[]
  /** Maximum age of requests in seconds; 0: any age. */
  readonly maxAgeSec: number
  readonly clock: Clock
  /** Receives the audit log; undefined: there is none. */
  readonly auditLogger?: Logger | undefined
}

/** Fastify plugin for the prefix `/api`. */
export const api: FastifyPluginAsyncTypebox<ApiOptions> = async (app, options) => {
  const { control, readHmacSecrets, maxAgeSec, clock, auditLogger } = options
  const keyIds = requireSignature(app, readHmacSecrets)
  app.setValidatorCompiler(TypeBoxValidatorCompiler)
  app.setSchemaErrorFormatter(formatBodyError)
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })

  app.addHook<{ Body: { issued_at?: number } }>('preHandler', async ({ body }) => {
    checkRequestAge(body.issued_at, { maxAgeSec, nowMs: clock.wallMs() })
  })

  for (const [name, answer] of Object.entries(answersOf(control))) {
    const { methods, body: schema } = ENDPOINTS[name as EndpointName]
    const names = Object.keys(schema.properties).filter((field) => field !== 'issued_at')
    app.route<{ Body: Record<string, unknown> }>({
      method: [...methods],
      url: `/${name}`,
      schema: { body: schema },
      exposeHeadRoute: false,
      handler: async (request) => {
        const { body } = request
        const client = clientAddress(request)
        const call = { name: name as EndpointName, body, key: keyIds.get(request)!, client }
        const data = await audit(auditLogger, call, () => answer(offTheWire(body, names) as never))
        return { success: true, data }
      },
    })
  }
}

type Answers = {
  readonly [Name in EndpointName]: (
    request: OffTheWire<Omit<RequestBody<Name>, 'issued_at'>>,
  ) => Promise<AnswerData<Name>>
}

/** Calls of the API on `control`, with fields named as on the wire in their answers. */
export function answersOf(control: StreamControl): Answers {
  return {
    'start-stream': async (request) => onTheWire(await control.startStream(request)),
    'stop-stream': async ({ streamId, revoke = false }) =>
      record(await control.stopStream(streamId, { revoke })),
    kick: async ({ streamId, banSec = 0 }) => record(await control.kick(streamId, { banSec })),
    status: async ({ streamId }) => record(await control.status(streamId)),
    streams: async (request) => {
      const { streams, next = null, ...page } = await control.list(request)
      return { streams: streams.map(record), next, ...onTheWire(page) }
    },
    nodes: async () => ({ nodes: [...((await control.nodes?.()) ?? [])] }),
  }
}

/** Record as it is sent: `live_since` and `publisher` are null instead of absent. */
function record(report: StreamRecord): AnswerData<'status'> {
  return onTheWire({
    ...report,
    liveSince: report.liveSince ?? null,
    publisher: report.publisher ?? null,
  })
}
