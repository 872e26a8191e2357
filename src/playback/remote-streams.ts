/**
 * Streams that other nodes of a cluster own, for the viewers of this one.
 *
 * @module
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { PlayableStream, PlaybackSource } from './playback-source.ts'
import type { IsKnown } from './routes.ts'
import type { FenceOf } from '../http/node-access.ts'

export interface RemoteStreams {
  /** Streams for viewers without a token: their owners decide which are public. */
  readonly open: PlaybackSource
  /** Streams for viewers whose token this node has verified. */
  readonly protected: PlaybackSource
  /** Files in memory; nothing is requested. */
  readonly memory: PlaybackSource
  readonly isKnown: IsKnown
  /** Counts viewers of a worker, see `hashOfViewer`. */
  countViewers(streamId: string, viewers: readonly number[]): void
  /** @returns what passes a request for the state of a stream on to its owner */
  passState(app: FastifyInstance): PassState
}

/** Sends the answer of the owner as the reply. */
export type PassState = (
  request: FastifyRequest,
  reply: FastifyReply,
  streamId: string,
) => Promise<unknown>

/**
 * Streams of this node, and beside them those of others. What this node owns is never looked for elsewhere, so that no
 * request of another node, which asks for such streams alone, leaves again.
 */
export function withRemote(
  own: PlaybackSource,
  remote: PlaybackSource,
  fenceOf: FenceOf,
): PlaybackSource {
  const others = new WeakSet<PlayableStream>()
  return {
    findStream: (streamId) => {
      const stream = own.findStream(streamId)
      if (stream !== undefined || fenceOf(streamId) !== undefined) return stream
      const other = remote.findStream(streamId)
      if (other !== undefined) others.add(other)
      return other
    },
    countViewer: (stream, viewer) => {
      const source = others.has(stream) ? remote : own
      source.countViewer?.(stream, viewer)
    },
  }
}
