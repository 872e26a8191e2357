/**
 * Calls of the dashboard: those of the API that change streams, and graphs.
 *
 * @module
 */
import { TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox'
import type { FastifyPluginAsync } from 'fastify'
import { ENDPOINTS } from '../../contract/endpoints.ts'
import { formatBodyError } from '../../contract/schema.ts'
import { offTheWire } from '../../contract/wire-names.ts'
import { clientAddress } from '../access.ts'
import { answersOf } from '../api.ts'
import { audit } from '../audit.ts'
import type { AdminOptions } from './admin-options.ts'
import { Histories, HistoryRecorder, TICK_MS } from './history.ts'
import { findStream } from './previews.ts'
import { qrCodeOf } from './qr-code.ts'

const CALLS = ['start-stream', 'stop-stream', 'kick'] as const

/** Fastify plugin: `POST /streams/{call}` with the body and the answer of the API, and `GET /streams/{id}/history`. */
export const streams: FastifyPluginAsync<AdminOptions> = async (app, options) => {
  const { control, source, allStreams, clock, auditLogger } = options
  const answers = answersOf(control)
  app.setValidatorCompiler(TypeBoxValidatorCompiler)
  app.setSchemaErrorFormatter(formatBodyError)
  for (const name of CALLS) {
    const { body: schema } = ENDPOINTS[name]
    const names = Object.keys(schema.properties).filter((field) => field !== 'issued_at')
    app.post<{ Body: Record<string, unknown> }>(
      `/streams/${name}`,
      { schema: { body: schema } },
      async (request) => {
        const { body } = request
        const call = { name, body, key: 'admin', client: clientAddress(request) }
        const data = await audit(auditLogger, call, () =>
          answers[name](offTheWire(body, names) as never),
        )
        return { success: true, data: withQrCode(data) }
      },
    )
  }

  const histories = new Histories()
  const isKnown = (id: string) => source.findStream(id) !== undefined
  const recorder = new HistoryRecorder(histories, options.listPublished, isKnown)
  const timer = setInterval(() => recorder.tick(clock.nowUs()), TICK_MS).unref()
  app.addHook('onClose', async () => clearInterval(timer))

  app.get<{ Params: { stream_id: string } }>('/streams/:stream_id/history', async ({ params }) => {
    // The history is empty for a stream of another node.
    findStream(allStreams, params.stream_id)
    const data = histories.read(params.stream_id, clock.nowUs(), clock.wallMs())
    return { success: true, data }
  })
}

function withQrCode(data: unknown): object {
  const { srt_url: url } = data as { srt_url?: string }
  return { ...(data as object), ...(url !== undefined && { qr_code: qrCodeOf(url) }) }
}
