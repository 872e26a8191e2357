/**
 * Checks of streams, with the checker: one at a time, in a process of its own with low priority, so that no packet waits for
 * it. It plays the stream from this server as a viewer would, on the loopback.
 *
 * @module
 */
import { fork } from 'node:child_process'
import { extname } from 'node:path'
import type { FastifyPluginAsync } from 'fastify'
import type { CheckOrder, CheckSummary } from '../check/child.ts'
import { MillraceError } from '../errors.ts'
import { parseJson, readBodies } from '../http/body-reader.ts'
import type { PlaybackSource } from '../playback/playback-source.ts'
import type { CheckReport } from '../web/dashboard/wire.ts'
import { findStream } from './previews.ts'

const CHECK_SEC = 15

/** Time after which the process is killed: that of the check, its start with low priority, and requests that still wait. */
const MAX_MS = 45_000

/** Media that a check may load, and memory of its process without it. */
const MAX_BYTES = 512 * 1024 * 1024
const MAX_HEAP_MIB = 256

/** Program of the process: its suffix is the same in `src` and in `dist`. */
const PROGRAM = new URL(`../check/child${extname(import.meta.url)}`, import.meta.url)

export interface CheckPluginOptions {
  /** Streams of all nodes. */
  readonly allStreams: PlaybackSource
  /** URL of a stream's multivariant playlist on the loopback, with a token where viewers need one. */
  readonly loopbackUrl: (streamId: string) => string
}

/** Fastify plugin: `POST /streams/{id}/check`. A client that leaves ends its check. */
export const check: FastifyPluginAsync<CheckPluginOptions> = async (app, options) => {
  const { allStreams, loopbackUrl } = options
  let running: AbortController | undefined
  readBodies(app, parseJson)
  app.addHook('preClose', async () => running?.abort())

  app.post<{ Params: { stream_id: string } }>(
    '/streams/:stream_id/check',
    async ({ params }, reply) => {
      findStream(allStreams, params.stream_id)
      if (running !== undefined) throw new MillraceError('CHECK_RUNNING')
      const own = (running = new AbortController())
      reply.raw.once('close', () => own.abort())
      try {
        const url = loopbackUrl(params.stream_id)
        const order = { url, seconds: CHECK_SEC, maxBytes: MAX_BYTES }
        const data: CheckReport = await runCheck(order, own.signal)
        return { success: true, data }
      } finally {
        running = undefined
      }
    },
  )
}

/** @throws {MillraceError} `CHECK_FAILED` if the process ends without a summary, also because `signal` aborts */
function runCheck(order: CheckOrder, signal: AbortSignal): Promise<CheckSummary> {
  return new Promise((resolve, reject) => {
    const child = fork(PROGRAM, {
      execArgv: [...process.execArgv, `--max-old-space-size=${MAX_HEAP_MIB}`],
      // Secrets of the service stay here.
      env: {},
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      killSignal: 'SIGKILL',
      timeout: MAX_MS,
      signal,
    })
    child.on('message', ({ summary }: { readonly summary?: CheckSummary }) => {
      if (summary !== undefined) resolve(summary)
    })
    // Also for a process that cannot be created, and for one that is aborted.
    child.once('error', (cause) => reject(new MillraceError('CHECK_FAILED', { cause })))
    child.once('exit', () => reject(new MillraceError('CHECK_FAILED')))
    child.send(order, () => undefined)
  })
}
