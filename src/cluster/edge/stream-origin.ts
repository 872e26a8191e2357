/**
 * Origin of one stream: the node that owns it now. The owner is looked up once, and again when it fails; what an older
 * owner says is not served after a response of a newer one.
 *
 * @module
 */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../timing/clock.ts'
import { NODE_FENCE } from '../../auth/node-calls.ts'
import { MillraceError } from '../../errors.ts'
import { withTimeout } from '../../timing/time-limit.ts'
import {
  isOwnLimit,
  type NodeClient,
  type NodeFileRequest,
  type NodeFileResponse,
} from './node-client.ts'
import { refusalOf } from './origin-file.ts'

/** Minimum time between two lookups, and for an owner that has failed for some seconds. */
const LOOKUP_US = 250_000
const SLOW_LOOKUP_US = 2 * 1_000_000
const SLOW_AFTER_US = 5 * 1_000_000

/** Time after which the registry counts as one that cannot say. */
const LOOKUP_TIMEOUT_MS = 2000

/**
 * Interval at which the owner is looked up while its responses have not begun, once for all: a silent node may have been
 * replaced.
 */
const SILENT_MS = 2000

/** Time for which an owner is kept without a response: longer than nodes hold a request. */
const KEPT_US = 15 * 1_000_000

/** Time after the last response for which a stream without an owner may get one again. */
const ORPHANED_US = 60 * 1_000_000

/** Tells which node owns a stream: in a cluster the registry knows. */
export interface OwnerLookup {
  /**
   * @param options.fresh  whether the result may not come from a cache, since the owner known so far does not answer
   * @returns undefined when no node owns the stream; rejects when the registry cannot say
   */
  find(streamId: string, options?: { readonly fresh?: boolean }): Promise<Owner | undefined>
}

export interface Owner {
  readonly url: string
  /** Grows with each change of owner. */
  readonly fence: number
}

interface StreamOriginOptions {
  readonly streamId: string
  readonly client: NodeClient
  readonly owners: OwnerLookup
  /** Shared by all streams. */
  readonly fences: ServedFences
  readonly clock: Pick<Clock, 'nowUs'>
  /** Replaces `SILENT_MS`. */
  readonly silentMs?: number | undefined
}

/** Response of an owner. */
export interface OwnerResponse extends NodeFileResponse {
  readonly fence: number
}

/**
 * Asks the owner of a stream for one of its files, by its name and query.
 *
 * @throws {MillraceError|Error} see `StreamOrigin.get`
 */
export type AskOwner = (
  file: string,
  options: Pick<NodeFileRequest, 'etag' | 'signal'>,
) => Promise<OwnerResponse>

interface Lookup {
  readonly isFresh: boolean
  /** Settles when the owner has been set; never rejects. */
  readonly done: Promise<void>
  /** Time of its end. */
  doneUs: number | undefined
}

/** One instance for all who read the stream. */
export class StreamOrigin {
  readonly #options: StreamOriginOptions
  /** Owner known last. */
  #owner: Owner | undefined
  /** Time since which the owner has failed; undefined: it has not. */
  #failedUs: number | undefined
  /** Time of the latest lookup, or response, that named the owner. */
  #confirmedUs = -Infinity
  /** Time of the latest response that was served. */
  #servedUs = -Infinity
  #lookup: Lookup | undefined
  /** Whether the latest lookup has failed. */
  #isUncertain = false

  constructor(options: StreamOriginOptions) {
    this.#options = options
  }

  /**
   * @returns any response of the owner, refusals included
   * @throws {MillraceError} `STREAM_NOT_FOUND` if the stream has no owner, `ORIGIN_UNREACHABLE` if it had one of late
   * @throws {Error} if the owner does not answer
   */
  async get(request: NodeFileRequest): Promise<OwnerResponse> {
    const owner = await this.#current()
    try {
      return await this.#ask(owner, request)
    } catch (error) {
      if (request.signal?.aborted === true || isOwnLimit(error)) throw error
      // Another request may have found the next owner already.
      if (isSameOwner(this.#owner, owner)) await this.#find(true)
      const next = this.#owner
      if (next === undefined || isSameOwner(next, owner)) throw error
      return this.#ask(next, request)
    }
  }

  /**
   * @returns URL of the owner
   * @throws {MillraceError} see `get`; `ORIGIN_UNREACHABLE` also if the owner fails
   */
  async findUrl(): Promise<string> {
    const { url } = await this.#current()
    if (this.#hasFailed) throw new MillraceError('ORIGIN_UNREACHABLE')
    return url
  }

  async #current(): Promise<Owner> {
    const isKept = !this.#hasFailed && this.#nowUs - this.#confirmedUs < KEPT_US
    if (!isKept) await this.#find(this.#hasFailed)
    if (this.#owner !== undefined) return this.#owner
    const isOrphan = this.#isUncertain || this.#nowUs - this.#servedUs < ORPHANED_US
    throw new MillraceError(isOrphan ? 'ORIGIN_UNREACHABLE' : 'STREAM_NOT_FOUND')
  }

  /**
   * Looks the owner up, once for all who ask.
   *
   * @param fresh  see `OwnerLookup`
   * @param maxAgeUs  age of a lookup that will do
   */
  async #find(fresh: boolean, maxAgeUs = this.#lookupUs): Promise<void> {
    const latest = this.#lookup
    const isUsable = latest !== undefined && (latest.isFresh || !fresh)
    if (isUsable && this.#nowUs - (latest.doneUs ?? Infinity) < maxAgeUs) return latest.done
    const lookup: Lookup = { isFresh: fresh, done: this.#lookUp(fresh), doneUs: undefined }
    this.#lookup = lookup
    await lookup.done
    lookup.doneUs = this.#nowUs
  }

  /** The owner stays while the registry cannot say. */
  async #lookUp(fresh: boolean): Promise<void> {
    const { owners, streamId } = this.#options
    try {
      const owner = await withTimeout(owners.find(streamId, { fresh }), LOOKUP_TIMEOUT_MS)
      this.#isUncertain = false
      if (isSameOwner(owner, this.#owner) && this.#hasFailed) return
      this.#owner = owner
      this.#failedUs = undefined
      this.#confirmedUs = owner === undefined ? -Infinity : this.#nowUs
    } catch {
      this.#isUncertain = true
    }
  }

  async #ask(owner: Owner, request: NodeFileRequest): Promise<OwnerResponse> {
    try {
      const response = await this.#getInTime(owner, request)
      const fence = fenceOf(response) ?? owner.fence
      const nowUs = this.#nowUs
      const error = errorOf(response)
      if (error !== undefined) throw error
      if (!this.#options.fences.admit(this.#options.streamId, fence, nowUs)) throw REPLACED
      this.#servedUs = nowUs
      if (isSameOwner(owner, this.#owner)) {
        // An overloaded node, or one that shuts down, may lose the stream; an archive that is away may not.
        const isFailing =
          response.status >= 500 && refusalOf(response).code !== 'ARCHIVE_UNAVAILABLE'
        if (isFailing) this.#fail()
        else this.#failedUs = undefined
        this.#confirmedUs = nowUs
      }
      return { ...response, fence }
    } catch (error) {
      const isOver = request.signal?.aborted === true || isOwnLimit(error)
      if (!isOver && isSameOwner(owner, this.#owner)) this.#fail()
      throw error
    }
  }

  /** Gives up when another owner is found before the response begins. */
  async #getInTime(owner: Owner, request: NodeFileRequest): Promise<NodeFileResponse> {
    const { signal } = request
    const { silentMs = SILENT_MS } = this.#options
    const giveUp = new AbortController()
    const onAbort = () => giveUp.abort()
    const check = async () => {
      await this.#find(true, silentMs * 1000)
      if (!isSameOwner(this.#owner, owner)) giveUp.abort()
    }
    const silent = setInterval(() => void check(), silentMs)
    // Not `AbortSignal.any`, which in Node 20 keeps what it returns as long as the signal of the follower lives.
    signal?.addEventListener('abort', onAbort, { once: true })
    if (signal?.aborted === true) onAbort()
    try {
      const own = { ...request, signal: giveUp.signal }
      return await this.#options.client.get(owner.url, own, () => clearInterval(silent))
    } finally {
      clearInterval(silent)
      signal?.removeEventListener('abort', onAbort)
    }
  }

  #fail(): void {
    this.#failedUs ??= this.#nowUs
  }

  get #hasFailed(): boolean {
    return this.#failedUs !== undefined
  }

  /** Minimum time between two lookups. */
  get #lookupUs(): number {
    const isSlow = this.#nowUs - (this.#failedUs ?? Infinity) > SLOW_AFTER_US
    return isSlow ? SLOW_LOOKUP_US : LOOKUP_US
  }

  get #nowUs(): number {
    return this.#options.clock.nowUs()
  }
}

const REPLACED = new MillraceError('ORIGIN_UNREACHABLE', {
  message: 'another node owns the stream now',
})

/** Why a response is not served: another node owns the stream, or this edge has not the same `CLUSTER_SECRET`. */
function errorOf(response: NodeFileResponse): MillraceError | undefined {
  const { status } = response
  const code = status === 421 || status === 403 ? refusalOf(response).code : undefined
  if (code !== 'NOT_OWNER' && code !== 'NODE_CALL_INVALID') return undefined
  const { message } = new MillraceError(code)
  return new MillraceError('ORIGIN_UNREACHABLE', { message })
}

function fenceOf({ headers }: NodeFileResponse): number | undefined {
  const text = headers[NODE_FENCE] ?? ''
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

/** Lookup of an edge with one origin. */
export function fixedOwner(url: string): OwnerLookup {
  const owner = { url, fence: 0 }
  return { find: async () => owner }
}

function isSameOwner(one: Owner | undefined, other: Owner | undefined): boolean {
  return one?.url === other?.url && one?.fence === other?.fence
}

/** Time after the latest response for which its fence counts. */
const FENCE_KEPT_US = 120 * 1_000_000

/** Maximum number of streams, the one that was not served for longest is forgotten. Ids without an owner take no room. */
const MAX_STREAMS = 100_000

/**
 * Highest fence under which an edge has served each stream. What an earlier owner says is not served after a response of a
 * later one: players would see the playlist go back.
 *
 * A fence is at least the time of Redis, in milliseconds. So one that is lower than another before can only come from an
 * owner that was replaced and has not noticed, or from a registry that has lost its last writes: both are over within
 * seconds, or when the clock of Redis has caught up with that of the master before it. The memory holds for longer than
 * clocks may differ, and ends, since a lower fence after that is all there is.
 */
export class ServedFences {
  readonly #latest = new LRUCache<string, { readonly fence: number; readonly atUs: number }>({
    max: MAX_STREAMS,
  })

  /**
   * @param fence  that of a response; 0 where fences are not used
   * @returns false for a response that must not be served; any other one is remembered
   */
  admit(streamId: string, fence: number, nowUs: number): boolean {
    const latest = this.#latest.get(streamId)
    const isLower = latest !== undefined && fence < latest.fence
    if (isLower && nowUs - latest.atUs < FENCE_KEPT_US) return false
    if (fence > 0) this.#latest.set(streamId, { fence, atUs: nowUs })
    return true
  }
}
