/**
 * Origin of one stream: the node that owns it now. The owner is looked up once, and again when it fails; what an older
 * owner says is not served after a reply of a newer one.
 *
 * @module
 */
import type { Clock } from '../clock.ts'
import { NODE_FENCE } from '../contract/node-headers.ts'
import { MillraceError } from '../errors.ts'
import { inTime } from '../time-limit.ts'
import type { FileReply, FileRequest, NodeClient } from './node-client.ts'
import { refusalOf } from './origin-file.ts'
import { isSameOwner, type Owner, type OwnerLookup } from './owner-lookup.ts'
import type { ServedFences } from './served-fences.ts'

/** Minimum time between two lookups, and for an owner that has failed for some seconds. */
const LOOKUP_US = 250_000
const SLOW_LOOKUP_US = 2 * 1_000_000
const SLOW_AFTER_US = 5 * 1_000_000

/** Time after which the registry counts as one that cannot say. */
const LOOKUP_TIMEOUT_MS = 2000

/**
 * Interval at which the owner is looked up while its replies have not begun, once for all: a silent node may have been
 * replaced.
 */
const SILENT_MS = 2000

/** Time for which an owner is kept without an answer: longer than nodes hold a request. */
const KEPT_US = 15 * 1_000_000

/** Time after the last reply for which a stream without an owner may get one again. */
const ORPHANED_US = 60 * 1_000_000

export interface StreamOriginOptions {
  readonly streamId: string
  readonly client: NodeClient
  readonly owners: OwnerLookup
  /** Shared by all streams. */
  readonly fences: ServedFences
  readonly clock: Pick<Clock, 'nowUs'>
}

/** Reply of an owner. */
export interface OwnedReply extends FileReply {
  readonly fence: number
}

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
  /** Time of the latest lookup, or reply, that named the owner. */
  #confirmedUs = -Infinity
  /** Time of the latest reply that was served. */
  #servedUs = -Infinity
  #lookup: Lookup | undefined
  /** Whether the latest lookup has failed. */
  #isUncertain = false

  constructor(options: StreamOriginOptions) {
    this.#options = options
  }

  /**
   * @returns any reply of the owner, refusals included
   * @throws {MillraceError} `STREAM_NOT_FOUND` if the stream has no owner, `ORIGIN_UNREACHABLE` if it had one of late
   * @throws {Error} if the owner does not answer
   */
  async get(request: FileRequest): Promise<OwnedReply> {
    const owner = await this.#current()
    try {
      return await this.#ask(owner, request)
    } catch (error) {
      if (request.signal?.aborted === true) throw error
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
      const owner = await inTime(owners.find(streamId, { fresh }), LOOKUP_TIMEOUT_MS)
      this.#isUncertain = false
      if (isSameOwner(owner, this.#owner) && this.#hasFailed) return
      this.#owner = owner
      this.#failedUs = undefined
      this.#confirmedUs = owner === undefined ? -Infinity : this.#nowUs
    } catch {
      this.#isUncertain = true
    }
  }

  async #ask(owner: Owner, request: FileRequest): Promise<OwnedReply> {
    try {
      const reply = await this.#getInTime(owner, request)
      const fence = fenceOf(reply) ?? owner.fence
      const nowUs = this.#nowUs
      const error = errorOf(reply)
      if (error !== undefined) throw error
      if (!this.#options.fences.admit(this.#options.streamId, fence, nowUs)) throw REPLACED
      this.#servedUs = nowUs
      if (isSameOwner(owner, this.#owner)) {
        // An overloaded node, or one that shuts down, may lose the stream.
        if (reply.status >= 500) this.#fail()
        else this.#failedUs = undefined
        this.#confirmedUs = nowUs
      }
      return { ...reply, fence }
    } catch (error) {
      const isOver = request.signal?.aborted === true
      if (!isOver && isSameOwner(owner, this.#owner)) this.#fail()
      throw error
    }
  }

  /** Gives up when another owner is found before the reply begins. */
  async #getInTime(owner: Owner, request: FileRequest): Promise<FileReply> {
    const { signal } = request
    const giveUp = new AbortController()
    const onAbort = () => giveUp.abort()
    const check = async () => {
      await this.#find(true, SILENT_MS * 1000)
      if (!isSameOwner(this.#owner, owner)) giveUp.abort()
    }
    const silent = setInterval(() => void check(), SILENT_MS)
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

/** Why a reply is not served: another node owns the stream, or this edge has not the same `CLUSTER_SECRET`. */
function errorOf(reply: FileReply): MillraceError | undefined {
  const { status } = reply
  const code = status === 421 || status === 403 ? refusalOf(reply).code : undefined
  if (code !== 'NOT_OWNER' && code !== 'NODE_CALL_INVALID') return undefined
  const { message } = new MillraceError(code)
  return new MillraceError('ORIGIN_UNREACHABLE', { message })
}

function fenceOf({ headers }: FileReply): number | undefined {
  const text = headers[NODE_FENCE] ?? ''
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}
