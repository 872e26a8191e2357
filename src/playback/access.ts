/**
 * Access to playback: which requests need a playback token, whether theirs is valid, and what caches may keep.
 *
 * @module
 */
import type { FastifyRequest } from 'fastify'
import type { VerifiedCall } from '../auth/node-calls.ts'
import type { PlaybackTokenLimits, PlaybackTokens } from '../auth/playback-token.ts'
import { machineClock } from '../timing/clock.ts'
import type { PlayableStream, StreamFile } from './playback-source.ts'
import type { ErrorCode } from '../errors.ts'
import { addressOf, requireAddress } from '../http/client-address.ts'
import { nodeCallOf } from '../http/node-access.ts'

/** Parameters of a route; `token` where the prefix has it. */
export interface AccessParams {
  readonly token?: string
  readonly stream_id: string
}

/** Who asks for a stream, or for a file of it. */
export interface Viewer {
  readonly streamId: string
  /** Playback token in the URL; undefined: it has none. */
  readonly token: string | undefined
  /** Another node, which has signed the request. */
  readonly call: VerifiedCall | undefined
  /** @returns undefined for a client that is gone */
  readonly readAddress: () => string | undefined
}

export function viewerOf(request: FastifyRequest<{ Params: AccessParams }>): Viewer {
  const { stream_id: streamId, token } = request.params
  const readAddress = () => addressOf(request)
  return { streamId, token, call: nodeCallOf(request.raw), readAddress }
}

/** Access of a viewer to a stream: what Cache-Control may say, or the code of the refusal. */
type Access = ErrorCode | { readonly token: PlaybackTokenLimits | undefined }

/** In place of a playback token, in calls of other nodes for viewers whose token they have verified. */
export const NODE_TOKEN = '-'

const PUBLIC: Access = { token: undefined }

/** @param tokens  undefined: playback needs no token */
export function accessOf(
  { streamId, token, call, readAddress }: Viewer,
  stream: PlayableStream | undefined,
  tokens: PlaybackTokens | undefined,
): Access {
  if (tokens === undefined) return PUBLIC
  if (token === undefined) {
    // An unknown stream is refused as well: clients without a token do not learn which ids exist.
    return stream?.policy?.playbackToken === false ? PUBLIC : 'PLAYBACK_TOKEN_MISSING'
  }
  // A node that asks for itself has verified the token of its viewer, unlike one that passes on what a viewer asks.
  if (token === NODE_TOKEN && call !== undefined && call.client === undefined) return PUBLIC
  const limits = tokens.verify(token, {
    streamId,
    nowMs: machineClock.wallMs(),
    readAddress: () => requireAddress(readAddress()),
  })
  return typeof limits === 'string' ? limits : { token: limits }
}

/** Lifetime of a file in caches (RFC 9111 section 5.2.2), in seconds. */
interface CacheLifetime {
  /** max-age */
  readonly ownSec: number
  /** s-maxage; undefined: the same. */
  readonly sharedSec?: number | undefined
}

type CachedFile = Pick<StreamFile, 'maxAgeSec' | 'blocking' | 'immutable'>

/**
 * Cache-Control of a file. A cache that has tokens in its key answers without asking whether they still give access, so
 * it may store no response to a token for one address, and none for longer than the token is valid.
 *
 * @param isBlocking  whether the URL names media that the file has: the response never becomes wrong, but browsers must
 *   not keep it, since video.js asks with the same URL again until the next segment has a part
 * @param token  undefined for a request without one
 */
export function cacheControl(
  file: CachedFile,
  isBlocking: boolean,
  token?: PlaybackTokenLimits,
): string {
  const { ownSec, sharedSec } = limitLifetime(lifetimeOf(file, isBlocking), token)
  const scope = token?.isBound === true ? 'private' : 'public'
  const shared = sharedSec === undefined ? '' : `, s-maxage=${sharedSec}`
  return `${scope}, max-age=${ownSec}${shared}${file.immutable ? ', immutable' : ''}`
}

function lifetimeOf({ maxAgeSec, blocking }: CachedFile, isBlocking: boolean): CacheLifetime {
  if (!isBlocking || blocking === undefined) return { ownSec: maxAgeSec }
  return { ownSec: 0, sharedSec: blocking.maxAgeSec }
}

function limitLifetime(
  { ownSec, sharedSec }: CacheLifetime,
  token: PlaybackTokenLimits | undefined,
): CacheLifetime {
  if (token === undefined) return { ownSec, sharedSec }
  const leftSec = Math.max(0, Math.floor(token.expiresSec - machineClock.wallMs() / 1000))
  return {
    ownSec: Math.min(ownSec, leftSec),
    sharedSec: sharedSec && Math.min(sharedSec, leftSec),
  }
}
