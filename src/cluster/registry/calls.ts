/**
 * What nodes ask of the registry, and what it answers.
 *
 * @module
 */
import type { StopReason, StreamState } from '../../contract/state.ts'
import type { SequenceNumbers } from '../../hls/cut/segment-plan.ts'
import type { TargetDurations } from '../../hls/target-durations.ts'
import type {
  Continuation,
  NodeRecord,
  RegisteredStream,
  StreamSettings,
  WindowEntry,
} from './records.ts'

export interface ClaimOptions {
  readonly node: string
  /** Identifies this claim and the URIs under it: a claim that is sent again is granted once. */
  readonly epoch: string
  /** Fence of the stream as the node has read it. */
  readonly seenFence: number
  /**
   * Numbers to skip because they may have been used: 1,000 by a node that does not know of the stream that it owns. The
   * registry itself skips those of another owner that it has lost sight of.
   */
  readonly skip?: number
  /** Whether to claim a stopped stream, too, as long as it lingers. Default: false. */
  readonly lingering?: boolean
}

export type Claimed =
  | ({ readonly outcome: 'granted' } & Continuation)
  /** `owned`: by a node whose lease holds, or has lapsed just now; `changed`: the fence is another one by now. */
  | { readonly outcome: 'owned' | 'changed' | 'stopped'; readonly stream: RegisteredStream }
  | { readonly outcome: 'unknown' }

/** Right of an owner to write. */
export interface Ownership {
  readonly node: string
  readonly fence: number
}

/**
 * What the owner has done since its last acknowledged call, with all that was not acknowledged. The owner reserves the
 * number after the one that it opens, so that it goes on without Redis, with reserved numbers, for as long as its lease
 * holds.
 */
export interface Advance {
  /** Grows with each call under a fence, from 1. A call that Redis has seen already, or a later one, has no effect. */
  readonly serial: number
  /** Segments that have opened, as the gaps that they are if they never close, and segments that have closed. */
  readonly entries: readonly WindowEntry[]
  /** Number of the first segment of the window. */
  readonly first: number
  /** Lowest numbers that no segment has, opened ones included. */
  readonly free: SequenceNumbers
  readonly targets?: TargetDurations
  readonly renditions?: unknown
  readonly status?: Exclude<StreamState, 'STOPPED'>
  /**
   * Whether another node may claim the stream although this one lives. Once this is accepted, this one opens segments
   * only under a new claim.
   */
  readonly isYielded?: boolean
  /** Since when the node's lease had held, as the last `renewNode` before this call has answered. */
  readonly leaseSinceMs?: number
}

export type Advanced =
  /** `free` is higher than the owner's if viewers of another owner have seen higher numbers: it skips them. */
  | { readonly outcome: 'accepted'; readonly free: SequenceNumbers }
  /** Another node owns the stream, or it has been stopped: this one closes its encoder. */
  | { readonly outcome: 'stale' | 'stopped'; readonly stream: RegisteredStream }
  /** Redis has lost the claim: the owner calls `restore`, which answers this if the stream may have been stopped. */
  | { readonly outcome: 'lost' }

/** A whole stream, from its owner. */
export interface Restoration extends Advance {
  readonly status: Exclude<StreamState, 'STOPPED'>
  readonly epoch: string
  readonly run: number
  readonly startedAtMs: number
  readonly keyExpiresAtMs: number
  readonly settings: StreamSettings
  /** Time since the registry was last known to have the stream, in milliseconds. */
  readonly awayMs: number
}

export interface StartOptions {
  readonly settings: StreamSettings
  /** Settings that keep the value that they were given first, until the stream stops. */
  readonly kept?: StreamSettings
  readonly keyExpiresAtMs: number
}

export interface StopOptions {
  readonly reason: StopReason
  /** Run to stop; default: whichever runs. */
  readonly run?: number
  /** The owner, if it is the one that stops the stream; default: somebody else does. */
  readonly by?: Ownership
  /** Stops the stream only if nobody has claimed it and its last key has expired. */
  readonly ifExpired?: boolean
  /** Lifetime of stream keys: those issued so far are revoked, even of an unknown stream. Default: they stay valid. */
  readonly revokeMs?: number
  readonly lingerMs: number
}

export type Stopped =
  | { readonly outcome: 'stopped'; readonly isFirst: boolean; readonly stream: RegisteredStream }
  | { readonly outcome: 'changed' | 'stale'; readonly stream: RegisteredStream }
  | { readonly outcome: 'unknown' }

export interface OwnedOptions {
  /** Id before the first one. Default: from the start. */
  readonly after?: string
  readonly limit: number
  /** Whether to list stopped streams that linger, in place of running ones. Default: false. */
  readonly lingering?: boolean
}

export interface Orphan {
  readonly id: string
  readonly fence: number
  readonly owner: NodeRecord
  /**
   * Whether the registry has all numbers that the owner has used, since it was known to be gone when its lease had never
   * lapsed. Otherwise it may live, cut off from Redis, and go on: a claim skips the numbers that it may use.
   */
  readonly isGone: boolean
}
