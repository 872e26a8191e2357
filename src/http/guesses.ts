/**
 * Requests for names that may not exist, each of which costs a request at another node.
 *
 * @module
 */
import type { FastifyInstance } from 'fastify'
import { machineClock, type Clock } from '../clock.ts'
import { limitRate } from './access.ts'
import type { AccessParams } from './playback-access.ts'

/**
 * Requests of one client, per second and at once: a page may show previews of many streams. An edge has room for those of
 * six clients.
 */
const PER_SEC = 100
const AT_ONCE = 500

/** Whether the file can be had without a request for a name that may not exist. */
export type IsKnown = (streamId: string, name: string) => boolean

/** Limits the requests of each client on all playback routes of `app`, so that one who guesses names hurts no other. */
export function limitGuesses(
  app: FastifyInstance,
  isKnown: IsKnown,
  clock: Pick<Clock, 'nowUs'> = machineClock,
): void {
  limitRate(app, {
    perSec: PER_SEC,
    atOnce: AT_ONCE,
    clock,
    refusal: 'TOO_MANY_WAITING',
    counts: ({ params }) => {
      const { stream_id: streamId, file } = params as AccessParams & { readonly file?: string }
      return file !== undefined && !isKnown(streamId, file)
    },
  })
}
