/**
 * Live snapshots of the dashboard as server-sent events.
 *
 * @module
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FastifyPluginAsync } from 'fastify'
import { isStreamId, STREAM_STATES } from '../../contract/schema.ts'
import { MillraceError } from '../../errors.ts'
import type { AdminOptions } from './admin-options.ts'
import { readCookies } from './cookie.ts'
import { openEventStream } from './event-stream.ts'
import type { Sessions } from './sessions.ts'
import { Snapshots, type Listener, type Turn, type View } from './snapshots.ts'

const SNAPSHOT_MS = 1000

export interface EventsOptions extends AdminOptions {
  readonly sessions: Sessions
}

/** Fastify plugin: `GET /events?status=&after=`, both optional. */
export const events: FastifyPluginAsync<EventsOptions> = async (app, options) => {
  const { control, clock, sessions } = options
  const snapshots = new Snapshots(control)
  let timer: NodeJS.Timeout | undefined
  let isClosing = false
  let isSending = false

  const sendSnapshots = async () => {
    if (isSending) return
    isSending = true
    await inTurns(snapshots.tick(clock.wallMs()))
    isSending = false
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
      const session = sessions.find(readCookies(request.headers), clock.wallMs()) ?? ''
      const body = openEventStream(reply)
      if (body === undefined) return
      const listener: Listener = {
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
      void inTurns(snapshots.add(listener, viewOf(request.query), clock.wallMs()))
      timer ??= setInterval(() => void sendSnapshots(), SNAPSHOT_MS)
    },
  })
}

async function inTurns(steps: Generator<Turn>): Promise<void> {
  for (const step of steps) await (step ?? nextTurn())
}

/** Ignores what no page sends. */
function viewOf({ status, after }: Readonly<Record<string, unknown>>): View {
  const state = STREAM_STATES.find((each) => each === status)
  return {
    ...(state !== undefined && { status: state }),
    ...(isStreamId(after) && { after }),
  }
}
