/**
 * Calls of the dashboard: those of the API that change streams, and graphs.
 *
 * @module
 */
import { TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox'
import type { FastifyPluginAsync } from 'fastify'
import { ENDPOINTS } from '../../contract/endpoints.ts'
import { formatBodyError } from '../../contract/schema.ts'
import type { PlaybackSource } from '../../contract/streams.ts'
import { offTheWire } from '../../contract/wire-names.ts'
import { MillraceError } from '../../errors.ts'
import { clientAddress } from '../access.ts'
import { answersOf } from '../api.ts'
import { audit } from '../audit.ts'
import { borrowFile, PREVIEW_URI } from '../file-loan.ts'
import type { AdminOptions } from './admin-options.ts'
import { Histories, HistoryRecorder, TICK_MS } from './history.ts'
import { qrCodeOf } from './qr-code.ts'

const CALLS = ['start-stream', 'stop-stream', 'kick'] as const

/**
 * Fastify plugin: `POST /streams/{call}` with the body and the answer of the API, `GET /streams/{id}/history` and
 * `GET /streams/{id}/preview.ts`, which is here too because playback may be on another port, or need a token.
 */
export const streams: FastifyPluginAsync<AdminOptions> = async (app, options) => {
  const { control, source, clock, auditLogger } = options
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
    if (!isKnown(params.stream_id)) throw new MillraceError('STREAM_NOT_FOUND')
    const data = histories.read(params.stream_id, clock.nowUs(), clock.wallMs())
    return { success: true, data }
  })

  app.get<{ Params: { stream_id: string } }>('/streams/:stream_id/preview.ts', (request, reply) => {
    reply.type('video/mp2t').send(readPreview(source, request.params.stream_id))
  })
}

/** The newest key frame of a stream: a copy, so that the reply holds no memory of the cache. */
function readPreview(source: PlaybackSource, streamId: string): Buffer {
  const stream = source.findStream(streamId)
  if (stream === undefined) throw new MillraceError('STREAM_NOT_FOUND')
  const loan = borrowFile(stream, PREVIEW_URI)
  if (loan === undefined) throw new MillraceError('FILE_NOT_FOUND')
  const bytes = Buffer.concat(loan.file.chunks)
  loan.end?.()
  return bytes
}

function withQrCode(data: unknown): object {
  const { srt_url: url } = data as { srt_url?: string }
  return { ...(data as object), ...(url !== undefined && { qr_code: qrCodeOf(url) }) }
}
