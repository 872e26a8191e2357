/**
 * Newest key frames of streams, for the dashboard: `/video` may be on another port, or need a token.
 *
 * @module
 */
import type { FastifyPluginAsync } from 'fastify'
import { isStreamId } from '../auth/stream-id.ts'
import {
  borrowFile,
  type PlayableStream,
  type PlaybackSource,
} from '../playback/playback-source.ts'
import { MillraceError } from '../errors.ts'
import { PREVIEW_URI } from '../hls/file-names.ts'
import { exchangeOf, WaitingRequests } from '../playback/waiting-requests.ts'

/** Longest wait for the node that owns the stream: the page gives up after 5 s, with decoding. */
const MAX_WAIT_MS = 4000

/** Fastify plugin: `GET /streams/{id}/preview.ts`. It counts no viewer. */
export const previews: FastifyPluginAsync<{ readonly allStreams: PlaybackSource }> = async (
  app,
  { allStreams },
) => {
  const waiting = new WaitingRequests()
  app.addHook('preClose', async () => waiting.close())
  app.get<{ Params: { stream_id: string } }>(
    '/streams/:stream_id/preview.ts',
    ({ params }, reply) => {
      const stream = findStream(allStreams, params.stream_id)
      const { files } = stream
      const send = () => void reply.type('video/mp2t').send(readPreview(stream))
      if (files.availability?.(PREVIEW_URI) !== 'future') {
        send()
        return
      }
      waiting.wait(
        exchangeOf(reply.raw, (error) => void reply.send(error)),
        {
          maxMs: MAX_WAIT_MS,
          begin: (onOver) => files.wait?.(PREVIEW_URI, {}, onOver),
          answer: (end) => {
            if (end !== 'over') throw new MillraceError(REFUSALS[end])
            send()
          },
        },
      )
    },
  )
}

/** @throws {MillraceError} `STREAM_NOT_FOUND` */
export function findStream(source: PlaybackSource, id: string): PlayableStream {
  // A source that asks other nodes takes any text for an id.
  const stream = isStreamId(id) ? source.findStream(id) : undefined
  if (stream === undefined) throw new MillraceError('STREAM_NOT_FOUND')
  return stream
}

const REFUSALS = {
  late: 'ORIGIN_UNREACHABLE',
  refused: 'TOO_MANY_WAITING',
  closing: 'SHUTTING_DOWN',
} as const

/** A copy, so that the response holds no memory of the cache. */
function readPreview(stream: PlayableStream): Buffer {
  const loan = borrowFile(stream, PREVIEW_URI)
  if (loan === undefined) {
    throw stream.files.refusal?.(PREVIEW_URI) ?? new MillraceError('FILE_NOT_FOUND')
  }
  const bytes = Buffer.concat(loan.file.chunks)
  loan.end?.()
  return bytes
}
