/**
 * Access to playback: which requests need a playback token, and whether theirs is valid.
 *
 * @module
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { PlaybackTokens } from '../auth/playback-token.ts'
import { machineClock } from '../clock.ts'
import type { PlayableStream } from '../contract/streams.ts'
import { MillraceError, type ErrorCode } from '../errors.ts'
import { clientAddress } from './access.ts'
import { refuse } from './file-reply.ts'

/** Parameters of a route; `token` where the prefix has it. */
export interface AccessParams {
  readonly token?: string
  readonly stream_id: string
}

/**
 * @param tokens  undefined: playback needs no token
 * @returns why the client may not read the stream; undefined if it may
 */
export function accessRefusal(
  request: FastifyRequest<{ Params: AccessParams }>,
  stream: PlayableStream | undefined,
  tokens: PlaybackTokens | undefined,
): ErrorCode | undefined {
  if (tokens === undefined) return undefined
  const { token, stream_id: streamId } = request.params
  if (token === undefined) {
    // An unknown stream is refused as well: clients without a token do not learn which ids exist.
    return stream?.terms?.playbackToken === false ? undefined : 'PLAYBACK_TOKEN_MISSING'
  }
  return tokens.refusalOf(token, {
    streamId,
    nowMs: machineClock.wallMs(),
    readAddress: () => clientAddress(request),
  })
}

/** Refuses access. No cache may store it, since caches may share replies between tokens. */
export function refuseAccess(reply: FastifyReply, code: ErrorCode): void {
  reply.header('cache-control', 'no-store')
  refuse(reply, new MillraceError(code))
}
