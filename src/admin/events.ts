/**
 * Live snapshots of the dashboard as server-sent events.
 *
 * @module
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Writable } from 'node:stream'
import type { FastifyPluginAsync, FastifyReply } from 'fastify'
import { isStreamId } from '../auth/stream-id.ts'
import type { StreamControl } from '../api/control.ts'
import { MillraceError } from '../errors.ts'
import { openBody } from '../http/response.ts'
import type { Clock } from '../timing/clock.ts'
import type { Sessions } from './sessions.ts'
import { LIST_FILTERS, SORT_VALUES, type ListView, type Turn } from './roster.ts'
import {
  Snapshots,
  type SnapshotListener,
  type ListenerView,
  type ProcessReading,
} from './snapshots.ts'

const SNAPSHOT_MS = 1000

/** Maximum length of a search, that of an id. */
const MAX_SEARCH = 128

const SORTS = Object.keys(SORT_VALUES) as NonNullable<ListView['sort']>[]

/** Time after which a browser connects again. */
const RETRY_MS = 2000

export interface EventsOptions {
  readonly control: StreamControl
  readonly readProcess: () => ProcessReading
  readonly clock: Clock
  readonly sessions: Sessions
}

/** Fastify plugin: `GET /events?filter=&search=&sort=&order=&page=&stream=`, all optional. */
export const events: FastifyPluginAsync<EventsOptions> = async (app, options) => {
  const { control, clock, sessions, readProcess } = options
  const snapshots = new Snapshots(control, readProcess)
  let timer: NodeJS.Timeout | undefined
  let isClosing = false
  let isSending = false
  let sending: Promise<void> = Promise.resolve()

  /** Sends one after another, since all read on where the last one has stopped. */
  const send = (steps: Generator<Turn>) => {
    const run = () => inTurns(steps)
    return (sending = sending.then(run, run))
  }

  const sendSnapshots = async () => {
    if (isSending) return
    isSending = true
    try {
      await send(snapshots.tick(clock.wallMs()))
    } finally {
      isSending = false
    }
  }

  app.addHook('preClose', async () => {
    isClosing = true
    clearInterval(timer)
    snapshots.close()
  })

  app.route<{ Querystring: Record<string, unknown> }>({
    method: 'GET',
    url: '/events',
    exposeHeadRoute: false,
    handler: (request, reply) => {
      if (isClosing) throw new MillraceError('SHUTTING_DOWN')
      if (snapshots.isFull) throw new MillraceError('TOO_MANY_DASHBOARDS')
      const session = sessions.find(request.headers, clock.wallMs()) ?? ''
      const body = openEventStream(reply)
      if (body === undefined) return
      const listener: SnapshotListener = {
        get isBusy() {
          return body.writableLength > 0
        },
        isAllowed: () => !body.destroyed && sessions.isOpen(session, clock.wallMs()),
        send: (text) => body.write(text),
        end: () => void (body.writableLength > 0 ? body.destroy() : body.end()),
      }
      body.once('close', () => {
        snapshots.remove(listener)
        if (!snapshots.isEmpty) return
        clearInterval(timer)
        timer = undefined
      })
      void send(snapshots.add(listener, viewOf(request.query), clock.wallMs()))
      timer ??= setInterval(() => void sendSnapshots(), SNAPSHOT_MS)
    },
  })
}

/**
 * Sends the head of a response that stays open, over HTTP/1.1 and HTTP/2.
 *
 * @returns undefined if the client has left
 */
function openEventStream(reply: FastifyReply): Writable | undefined {
  const body = openBody(reply.hijack().raw, 200, {
    ...(reply.getHeaders() as Record<string, string>),
    'content-type': 'text/event-stream; charset=utf-8',
    // Keeps nginx from buffering events.
    'x-accel-buffering': 'no',
  })
  body?.write(`retry: ${RETRY_MS}\n\n`)
  return body
}

async function inTurns(steps: Generator<Turn>): Promise<void> {
  for (const step of steps) await (step ?? nextTurn())
}

/** Ignores what no page sends. */
function viewOf(query: Readonly<Record<string, unknown>>): ListenerView {
  const { search, order, page, stream } = query
  const filter = LIST_FILTERS.find((each) => each === query['filter'])
  const sort = SORTS.find((each) => each === query['sort'])
  return {
    ...(filter !== undefined && { filter }),
    ...(typeof search === 'string' && { search: search.slice(0, MAX_SEARCH).toLowerCase() }),
    ...(sort !== undefined && { sort }),
    ...(order === 'descending' && { isDescending: true as const }),
    ...(typeof page === 'string' && /^\d{1,4}$/.test(page) && { page: Number(page) }),
    ...(isStreamId(stream) && { stream }),
  }
}
