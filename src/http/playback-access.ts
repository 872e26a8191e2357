/**
 * Access to playback: which requests need a playback token, and whether theirs is valid.
 *
 * @module
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { playbackTokenLimits, type PlaybackTokens } from '../auth/playback-token.ts'
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

/**
 * Cache-Control of a file. A cache that has tokens in its key answers without asking whether they still give access, so
 * it may store no reply to a token for one address, and none for longer than the token is valid.
 *
 * @param token  verified; undefined for a request without one
 * @param maxAgeSec  lifetime in caches without a token
 */
export function cacheControl(token: string | undefined, maxAgeSec: number): string {
  if (token === undefined) return `public, max-age=${maxAgeSec}`
  const { expiresSec, isBound } = playbackTokenLimits(token)
  const leftSec = Math.max(0, Math.floor(expiresSec - machineClock.wallMs() / 1000))
  return `${isBound ? 'private' : 'public'}, max-age=${Math.min(maxAgeSec, leftSec)}`
}

/** Refuses access. No cache may store it, since caches may share replies between tokens. */
export function refuseAccess(reply: FastifyReply, code: ErrorCode): void {
  reply.header('cache-control', 'no-store')
  refuse(reply, new MillraceError(code))
}
