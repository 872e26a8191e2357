/**
 * The signed API: start, stop, revoke, kick, switch, clip and status of a stream, and the lists of streams and of nodes.
 *
 * @module
 */
import {
  TypeBoxValidatorCompiler,
  type FastifyPluginAsyncTypebox,
} from '@fastify/type-provider-typebox'
import type { Clock } from '../../timing/clock.ts'
import type { Logger } from '../../logger.ts'
import { clientAddress } from '../../http/client-address.ts'
import { audit } from './audit.ts'
import { bodyOf } from './bodies.ts'
import { checkRequestAge } from './request-age.ts'
import { ENDPOINTS, type EndpointName, type ResponseData } from '../endpoints.ts'
import { requireSignature } from './signature-hook.ts'
import { unknownFieldWarnings } from './unknown-fields.ts'
import type { StreamControl } from '../control.ts'
import type { StreamRecord } from '../records.ts'
import { offTheWire, onTheWire, type Declared } from '../wire-names.ts'

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
  app.setValidatorCompiler(TypeBoxValidatorCompiler)
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })
  const keyIds = requireSignature(app, readHmacSecrets)
  app.addHook<{ Body: { issued_at?: number } }>('preHandler', async ({ body }) => {
    checkRequestAge(body.issued_at, { maxAgeSec, nowMs: clock.wallMs() })
  })

  const call = callsOf(control)
  for (const name of Object.keys(ENDPOINTS) as EndpointName[]) {
    app.route<{ Body: Record<string, unknown> }>({
      method: [...ENDPOINTS[name].methods],
      url: `/${name}`,
      ...bodyOf(name),
      exposeHeadRoute: false,
      handler: async (request) => {
        const { body } = request
        const audited = { name, body, key: keyIds.get(request)!, client: clientAddress(request) }
        const data = await audit(auditLogger, audited, () => call(name, body))
        const warnings = unknownFieldWarnings(name, body)
        return { success: true, data, ...(warnings.length > 0 && { warnings }) }
      },
    })
  }
}

type Responses = {
  readonly [Name in EndpointName]: (
    request: Omit<Declared<(typeof ENDPOINTS)[Name]['body']>, 'issuedAt'>,
  ) => Promise<ResponseData<Name>>
}

/** @returns a function that makes a call with a body that its schema allows, and returns the data of its response */
export function callsOf(
  control: StreamControl,
): (name: EndpointName, body: Readonly<Record<string, unknown>>) => Promise<unknown> {
  const responses: Responses = {
    'start-stream': async (request) => onTheWire(await control.startStream(request)),
    'stop-stream': async ({ streamId, revoke = false }) =>
      record(await control.stopStream(streamId, { revoke })),
    'revoke-key': async ({ streamId, keyId }) => record(await control.revokeKey(streamId, keyId)),
    kick: async ({ streamId, banSec = 0 }) => record(await control.kick(streamId, { banSec })),
    'switch-source': async ({ streamId, source }) =>
      record(await control.switchSource(streamId, source)),
    clip: async ({ streamId, from, to, run }) =>
      onTheWire(await control.clip(streamId, { from: new Date(from), to: new Date(to), run })),
    status: async ({ streamId }) => record(await control.status(streamId)),
    streams: async (request) => {
      const { streams, next = null, ...page } = await control.list(request)
      return { streams: streams.map(record), next, ...onTheWire(page) }
    },
    nodes: async () => ({ nodes: [...((await control.nodes?.()) ?? [])] }),
  }
  return (name, body) => {
    const { issuedAt: _, ...request } = offTheWire(body, ENDPOINTS[name].body)
    return responses[name](request as never)
  }
}

/** Record as it is sent: `live_since`, `publisher` and `on_air` are null instead of absent. */
function record(report: StreamRecord): ResponseData<'status'> {
  return onTheWire({
    ...report,
    liveSince: report.liveSince ?? null,
    publisher: report.publisher ?? null,
    onAir: report.onAir ?? null,
  })
}
