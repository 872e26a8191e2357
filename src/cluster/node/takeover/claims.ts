/**
 * Claims of this node: on streams whose encoders call, and on those of nodes that are gone. The registry grants them to one
 * node (`registry/scripts/claim.lua`). Whether it knows all numbers that the owner has used depends on how the owner went:
 *
 *     owner                                           claimed                         playlists go on
 *     none yet                                        at once                         -
 *     has yielded: its encoder was silent for 1 s     at once                         with their window
 *     lease ended, and had held since its last write  at once                         with their window
 *     lease lapsed: it may live, cut off from Redis   by a node with a lease for 4 s  1,000 numbers higher
 *     this node, which has lost the stream            at once                         1,000 numbers higher
 *     any, and Redis was restarted or replaced since  as above                        1,000 numbers higher still
 *     any, of a stopped stream that lingers           as above                        with their window, ENDLIST
 *
 * Where numbers are skipped the window is deleted: nothing is a gap, and nothing is read from the backup.
 *
 * Known limit: an owner that Redis does not hear, and that dies before its lease lapses, has used the number of its open segment.
 * It has listed a segment of it only if that is shorter than a lease, but may have listed parts. The next owner uses the number
 * again, under another URI.
 *
 * @module
 */
import { Type, type Static } from 'typebox'
import { Check } from 'typebox/value'
import { StreamId } from '../../../api/requests.ts'
import { floorsOf } from '../registered/registered-keys.ts'
import type { StreamKeyClaims } from '../../../auth/stream-key.ts'
import { isRefused, type CallNode } from '../call-node.ts'
import { unavailable } from '../../registry/unavailable.ts'
import type { Handover, RegisteredStream } from '../../registry/registered.ts'
import type { Registry } from '../../registry/registry.ts'
import { MillraceError, NO_STREAM } from '../../../errors.ts'
import type { MediaSource } from '../../../hls/playlist/earlier-segments.ts'
import type { LiveStream } from '../../../stream/live-stream.ts'
import type { Timers } from '../../../timing/clock.ts'
import { withTimeout, TimeoutError } from '../../../timing/time-limit.ts'
import { endLease } from './gone-nodes.ts'
import type { OwnedStreams } from '../owned/owned-streams.ts'

/** Time limit for the admission of an encoder, in milliseconds: libsrt waits 3 s. */
const DECISION_MS = 2300

/** Time limit of a call that asks an owner to yield: it waits for 1 s of silence. */
const YIELD_MS = 1500

/** Numbers that an owner may have used of which neither the registry nor this process knows. */
const UNKNOWN_NUMBERS = 1000

/** Claims of one stream in a row: others may claim it at the same time. */
const MAX_TRIES = 3

const UNDECIDED =
  'the registry of the cluster, or the node that has the stream, does not answer: call again, or see that all nodes reach each other'

interface ClaimsOptions {
  readonly node: string
  /** Creates an id for a claim. */
  readonly createEpoch: () => string
  readonly registry: Pick<Registry, 'get' | 'claim' | 'advance' | 'listLiveNodes' | 'leaveNode'>
  readonly call: CallNode
  /** Whether a caller can go to the owner instead, see `NodeLinks.sharesPort`. */
  readonly sharesPort: boolean
  readonly owned: Pick<OwnedStreams, 'has' | 'own'>
  /** Reads the media of a stream; undefined: its segments are gaps. */
  readonly readMedia: ((handover: Handover) => Promise<MediaSource>) | undefined
  /** Number of streams that may run here besides those that do. */
  readonly readRoom: () => number
  readonly continueStream: (handover: Handover, mediaOf: MediaSource | undefined) => LiveStream
  /** Brings a stream of this node in line with the registry. */
  readonly refresh: (streamId: string) => Promise<void>
  readonly timers: Pick<Timers, 'sleep'>
}

export class Claims {
  readonly #options: ClaimsOptions
  /** Claims under way, by stream id. */
  readonly #pending = new Map<string, Promise<void>>()
  /** Streams of encoders without a stream key that are being checked. */
  readonly #checking = new Set<string>()
  /** Number of streams that are claimed for the room that is left. */
  #claiming = 0

  constructor(options: ClaimsOptions) {
    this.#options = options
  }

  /**
   * Claims the stream of a verified key, unless this node owns it.
   *
   * @throws {MillraceError} `REGISTRY_UNAVAILABLE`, `STREAM_BUSY`, `STREAM_NOT_FOUND`, `STREAM_KEY_REVOKED`,
   *   `TOO_MANY_STREAMS`
   */
  async admit(key: StreamKeyClaims): Promise<void> {
    if (!this.#options.owned.has(key.streamId)) await this.#inTime(this.#admit(key))
  }

  /**
   * Claims the stream of an encoder that needs no stream key, unless this node owns it.
   *
   * @param check  whether the stream takes the encoder, about which nothing is known so far: one is checked at a time
   * @throws {MillraceError} `STREAM_BUSY` meanwhile, what `check` throws, and as `admit` does
   */
  async admitUnkeyed(streamId: string, check: () => Promise<void>): Promise<void> {
    if (this.#options.owned.has(streamId)) return
    if (this.#checking.has(streamId)) {
      const message = 'another caller of this port is being checked: call again'
      throw new MillraceError('STREAM_BUSY', { message })
    }
    this.#checking.add(streamId)
    try {
      await check()
    } finally {
      this.#checking.delete(streamId)
    }
    await this.#inTime(this.#claimOnce(streamId))
  }

  /**
   * Claims a stream without an encoder: its owner is gone, also while it lingers, or it has none. The caller tries again
   * after failures.
   */
  async claim(streamId: string): Promise<void> {
    if (this.#pending.has(streamId) || this.#options.owned.has(streamId)) return
    await this.#once(streamId, async () => {
      const { registry } = this.#options
      const registered = await registry.get(streamId)
      if (registered === undefined) return
      const stream = await this.#claimRegistered(registered, { lingering: true })
      // Receivers that were told that the stream is live are told that it is not.
      if (registered.status === 'STREAMING') stream?.reportInterruption()
    })
  }

  #once(streamId: string, claim: () => Promise<void>): Promise<void> {
    const known = this.#pending.get(streamId)
    if (known !== undefined) return known
    const pending = claim().finally(() => this.#pending.delete(streamId))
    this.#pending.set(streamId, pending)
    // The caller has a time limit, and may be gone.
    pending.catch(() => undefined)
    return pending
  }

  async #admit(key: StreamKeyClaims): Promise<void> {
    const { streamId } = key
    const { registry } = this.#options
    // Each encoder is judged by its own key, though one claim serves all who call at the same time.
    const registered = await registry.get(streamId)
    if (registered !== undefined && floorsOf(registered).isRevoked(key))
      throw new MillraceError('STREAM_KEY_REVOKED')
    await this.#claimOnce(streamId)
  }

  async #claimOnce(streamId: string): Promise<void> {
    await this.#pending.get(streamId)?.catch(() => undefined)
    if (this.#options.owned.has(streamId)) return
    await this.#once(streamId, () => this.#claimForEncoder(streamId))
  }

  async #claimForEncoder(streamId: string): Promise<void> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const registered = await this.#options.registry.get(streamId)
      if (registered === undefined || registered.status === 'STOPPED')
        throw new MillraceError('STREAM_NOT_FOUND', { message: NO_STREAM.start })
      await this.#askToYield(registered)
      if ((await this.#claimRegistered(registered)) !== undefined) return
    }
    throw unavailable(undefined, UNDECIDED)
  }

  /**
   * Without room, a node that has some is to claim it.
   *
   * @returns undefined if another node owns the stream, or has claimed it just now
   */
  async #claimRegistered(
    registered: RegisteredStream,
    { lingering = false } = {},
  ): Promise<LiveStream | undefined> {
    if (this.#claiming >= this.#options.readRoom()) throw new MillraceError('TOO_MANY_STREAMS')
    this.#claiming++
    try {
      return await this.#claimInRoom(registered, lingering)
    } finally {
      this.#claiming--
    }
  }

  async #claimInRoom(
    registered: RegisteredStream,
    lingering: boolean,
  ): Promise<LiveStream | undefined> {
    const { registry, node, owned, createEpoch, readMedia, continueStream, refresh } = this.#options
    const { id, fence: seenFence, owner, isYielded } = registered
    // It may be lost writes that have made this node the owner again.
    const skip = owner === node && !isYielded ? UNKNOWN_NUMBERS : 0
    const epoch = createEpoch()
    const claimed = await registry.claim(id, { node, epoch, seenFence, skip, lingering })
    if (claimed.outcome !== 'granted') return undefined
    try {
      // Before viewers see the playlist: what it lists as gaps stays gaps.
      const mediaOf = await readMedia?.(claimed)
      const stream = continueStream(claimed, mediaOf)
      owned.own(stream, claimed)
      // Meanwhile other nodes may have told this one of changes, when it had no stream yet.
      if (mediaOf !== undefined) await refresh(id).catch(() => undefined)
      return stream
    } catch (error) {
      // The next round tries again, or an encoder does at another node.
      const { stream, free } = claimed
      const { fence } = stream
      const nothing = { serial: 1, entries: [], first: 0, free, isYielded: true }
      await registry.advance(id, { node, fence }, nothing).catch(() => undefined)
      throw error
    }
  }

  /**
   * Asks the owner for the stream, if another node owns it.
   *
   * @throws {MillraceError} `STREAM_BUSY` if an encoder publishes there
   */
  async #askToYield({ id, fence, owner, ownerUrl, isYielded }: RegisteredStream): Promise<void> {
    const { node, registry, call, timers, sharesPort } = this.#options
    if (owner === undefined || owner === node || isYielded || ownerUrl === undefined) return
    try {
      const body: YieldRequest = { stream_id: id, fence }
      const request = { url: ownerUrl, call: 'yield', body, timeoutMs: YIELD_MS }
      const response = (await call(request)) as { readonly yielded?: unknown }
      if (response.yielded !== true) {
        const message = `an encoder publishes at ${ownerUrl}: a backup encoder must call that node`
        throw new MillraceError('STREAM_BUSY', { message, ...(sharesPort && { takenBy: owner }) })
      }
    } catch (error) {
      if (error instanceof MillraceError && error.code === 'STREAM_BUSY') throw error
      // Without a process behind its URL the lease ends now; otherwise it may lapse soon.
      if (!isRefused(error)) return
      const live = (await registry.listLiveNodes()).find((each) => each.node === owner)
      if (live !== undefined) await endLease(registry, live, timers)
    }
  }

  /** @throws {MillraceError} `REGISTRY_UNAVAILABLE` for what is not decided in time */
  async #inTime(admission: Promise<void>): Promise<void> {
    const { timers } = this.#options
    await withTimeout(admission, DECISION_MS, timers).catch((error: unknown) => {
      throw error instanceof TimeoutError ? unavailable(error, UNDECIDED) : error
    })
  }
}

/** Body of the call that asks the owner of a stream to yield it to the node that calls. */
const YieldRequest = Type.Object({
  stream_id: StreamId,
  /** Claim to give up: a call that somebody repeats names an earlier one. */
  fence: Type.Number(),
})

export type YieldRequest = Static<typeof YieldRequest>

/** @throws {MillraceError} `BODY_INVALID` */
export function parseYieldRequest(body: unknown): YieldRequest {
  if (!Check(YieldRequest, body)) throw new MillraceError('BODY_INVALID')
  return body
}
