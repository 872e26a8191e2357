/**
 * Access to playback: which requests need a playback token, and whether theirs is valid.
 *
 * @module
 */
import type { FastifyRequest } from 'fastify'
import type { PlaybackTokenLimits, PlaybackTokens } from '../auth/playback-token.ts'
import { machineClock } from '../clock.ts'
import type { PlayableStream } from '../contract/streams.ts'
import type { ErrorCode } from '../errors.ts'
import { clientAddress } from './access.ts'
import { formatLifetime, type CacheLifetime } from './cache-lifetime.ts'
import { nodeCallOf } from './node-access.ts'

/** Parameters of a route; `token` where the prefix has it. */
export interface AccessParams {
  readonly token?: string
  readonly stream_id: string
}

/** Access of a viewer to a stream: what Cache-Control may say, or the code of the refusal. */
export type Access = ErrorCode | { readonly token: PlaybackTokenLimits | undefined }

/** In place of a playback token, in calls of other nodes for viewers whose token they have verified. */
export const NODE_TOKEN = '-'

const PUBLIC: Access = { token: undefined }

/** @param tokens  undefined: playback needs no token */
export function accessOf(
  request: FastifyRequest<{ Params: AccessParams }>,
  stream: PlayableStream | undefined,
  tokens: PlaybackTokens | undefined,
): Access {
  if (tokens === undefined) return PUBLIC
  const { token, stream_id: streamId } = request.params
  if (token === undefined) {
    // An unknown stream is refused as well: clients without a token do not learn which ids exist.
    return isPublic(stream, tokens) ? PUBLIC : 'PLAYBACK_TOKEN_MISSING'
  }
  if (token === NODE_TOKEN && isOwnCall(request)) return PUBLIC
  const limits = tokens.verify(token, {
    streamId,
    nowMs: machineClock.wallMs(),
    readAddress: () => clientAddress(request),
  })
  return typeof limits === 'string' ? limits : { token: limits }
}

/** Whether a node asks for itself, which has verified the token of its viewer, and does not pass on what a viewer asks. */
function isOwnCall(request: FastifyRequest): boolean {
  const call = nodeCallOf(request)
  return call !== undefined && call.client === undefined
}

/** Whether viewers of the stream need no token. */
export function isPublic(
  stream: PlayableStream | undefined,
  tokens: PlaybackTokens | undefined,
): boolean {
  return tokens === undefined || stream?.terms?.playbackToken === false
}

/**
 * Cache-Control of a file. A cache that has tokens in its key answers without asking whether they still give access, so
 * it may store no reply to a token for one address, and none for longer than the token is valid.
 *
 * @param token  undefined for a request without one
 * @param lifetime  in caches without a token
 */
export function cacheControl(
  token: PlaybackTokenLimits | undefined,
  lifetime: CacheLifetime,
): string {
  if (token === undefined) return `public, ${formatLifetime(lifetime)}`
  const leftSec = Math.max(0, Math.floor(token.expiresSec - machineClock.wallMs() / 1000))
  const sharedSec = lifetime.sharedSec && Math.min(lifetime.sharedSec, leftSec)
  const limited = { ownSec: Math.min(lifetime.ownSec, leftSec), sharedSec }
  return `${token.isBound ? 'private' : 'public'}, ${formatLifetime(limited)}`
}
