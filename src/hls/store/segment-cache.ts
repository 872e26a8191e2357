/**
 * Segments of all streams in memory, with one limit on their size.
 *
 * A segment that has left its playlist is retained for its own duration plus the duration of the longest playlist that
 * listed it (RFC 8216 6.2.2). A listed segment is evicted only while its stream is idle. When memory is short:
 *
 * 1. Idle streams (no media arrives) lose segments first: retained segments, then listed segments, which become gaps.
 * 2. A window within the fair share of its stream does not shrink. Other windows shrink: to that share when their
 *    stream adds a segment, to the minimum of RFC 8216 6.2.2 when there is still no room.
 * 3. Retained segments are released early, oldest first, from the stream with the most bytes.
 * 4. A new segment becomes a gap if its stream would still exceed its fair share, or no other segment may be released.
 *
 * The queues of a stream hold media that is in no segment yet. They count like listed segments.
 *
 * @module
 */
import { totalBytes } from '../../binary/total-bytes.ts'
import {
  givesBefore,
  CacheAccount,
  NO_SHORTAGE,
  NO_WINDOW,
  type CachedSegment,
  type Counters,
  type SegmentOwner,
  type ShortageCounters,
} from './cache-account.ts'
import { SlabPool } from '../../mpegts/mux/slab-pool.ts'
import {
  LISTED_SHARE,
  listedCapacity,
  shareMemory,
  type MemoryShares,
  type WindowSize,
} from './memory-share.ts'
import type { StreamFile } from './stream-file.ts'

export interface SegmentCacheStats extends ShortageCounters {
  readonly maxBytes: number
  readonly bytes: number
  readonly listedBytes: number
  /** Size of the media of all streams that is in no segment yet. */
  readonly queuedBytes: number
  /** Size that holds the configured windows of all streams, their retained segments and their queues. */
  readonly neededBytes: number
  /** Size to recommend after a shortage. Always above `maxBytes`: `neededBytes` falls when bitrates fall. */
  readonly advisedBytes: number
  readonly segments: number
}

/** Maximum size of the unused slabs, as a share of the cached bytes: all streams may cut a segment at once. */
const FREE_SHARE = 1 / 8
const MIN_FREE_BYTES = 16 * 1024 * 1024

/** Minimum size to recommend, as a multiple of `maxBytes`. */
const MIN_ADVICE = 5 / 4

/** A segment that is put into the cache. */
export interface NewSegment {
  readonly file: StreamFile
  /** Memory of the objects of its parts; default 0. */
  readonly partsBytes?: number
  /** Time of the monotonic clock of the cache. */
  readonly nowMs: number
}

/** Times are in milliseconds of a monotonic clock. */
export class SegmentCache {
  /** Pool of the segments' memory, to which the cache releases each segment that it removes. */
  readonly slabs: SlabPool
  readonly #maxBytes: number
  readonly #entries = new Map<string, CachedSegment>()
  #bytes = 0
  readonly #accounts = new Map<SegmentOwner, CacheAccount>()
  readonly #shortage: Counters = { ...NO_SHORTAGE }
  #listedBytes = 0
  #wantedBytes = 0
  #queuedBytes = 0
  /** No retained segment expires before this time. */
  #nextExpiryMs = Infinity

  constructor({ maxBytes }: { readonly maxBytes: number }) {
    this.#maxBytes = maxBytes
    const minFreeBytes = Math.min(MIN_FREE_BYTES, maxBytes * FREE_SHARE)
    this.slabs = new SlabPool(() => Math.max(minFreeBytes, this.#bytes * FREE_SHARE))
  }

  /** Sizes and counters of the cache. */
  get stats(): SegmentCacheStats {
    const maxBytes = this.#maxBytes
    const neededBytes = Math.ceil(this.#wantedBytes / LISTED_SHARE) + this.#queuedBytes
    return {
      maxBytes,
      bytes: this.#bytes,
      listedBytes: this.#listedBytes,
      queuedBytes: this.#queuedBytes,
      neededBytes,
      advisedBytes: Math.max(neededBytes, Math.ceil(maxBytes * MIN_ADVICE)),
      segments: this.#entries.size,
      ...this.#shortage,
    }
  }

  /** Counters since the owner's first segment. */
  shortageOf(owner: SegmentOwner): ShortageCounters {
    return { ...(this.#accounts.get(owner)?.shortage ?? NO_SHORTAGE) }
  }

  /**
   * Adds a segment, which its owner's playlist lists from now on. The cache owns the chunks, even of a refused segment.
   *
   * @param uri  unique in the process: it contains the epoch of the stream
   * @returns false if there is no room for it
   */
  put(owner: SegmentOwner, uri: string, { file, partsBytes = 0, nowMs }: NewSegment): boolean {
    if (this.#entries.has(uri))
      throw new Error(`${uri} is in the cache already: expected a URI of its own`)
    const sizeBytes = totalBytes(file.chunks) + partsBytes
    const account = this.#account(owner)
    account.shortest = false
    account.idle = false
    this.#resize(account, owner.windowSize)
    this.#releaseExpired(account, nowMs)
    if (!this.#makeRoom(account, sizeBytes, nowMs)) {
      this.#count(account, 'refused')
      this.slabs.release(file.chunks)
      return false
    }
    this.#entries.set(uri, { owner, file, sizeBytes })
    this.#bytes += sizeBytes
    account.listed.add(uri)
    account.bytes += sizeBytes
    this.#addListed(account, sizeBytes)
    return true
  }

  /** A file that the owner has put, undefined once it was released. */
  get(owner: SegmentOwner, uri: string): StreamFile | undefined {
    const entry = this.#entries.get(uri)
    return entry?.owner === owner ? entry.file : undefined
  }

  /** Retains until `untilMs` a segment that has left its playlist; if memory is short, it is released earlier. */
  retain(owner: SegmentOwner, uri: string, untilMs: number): void {
    const account = this.#accounts.get(owner)
    if (account?.listed.delete(uri) !== true) return
    account.retained.set(uri, untilMs)
    this.#nextExpiryMs = Math.min(this.#nextExpiryMs, untilMs)
    this.#addListed(account, -this.#sizeOf(uri))
  }

  /** Records the size of the owner's queues; `settle` and `put` make room for them. */
  reserve(owner: SegmentOwner, queuedBytes: number): void {
    if (queuedBytes === 0 && !this.#accounts.has(owner)) return
    const account = this.#account(owner)
    this.#queuedBytes += queuedBytes - account.queuedBytes
    account.queuedBytes = queuedBytes
  }

  /** Makes room for queues that have grown; to be called 4 times a second. */
  settle(nowMs: number): void {
    if (!this.#hasRoom(0, this.#queuedBytes)) this.#freeRoom(0, this.#shares, nowMs)
  }

  /**
   * Marks the owner as idle until its next `put`: it has no share of the memory and loses segments before all others.
   */
  markIdle(owner: SegmentOwner): void {
    const account = this.#accounts.get(owner)
    if (account === undefined) return
    account.idle = true
    this.#resize(account, NO_WINDOW)
  }

  /** Drops all segments of an owner, listed or retained. */
  discard(owner: SegmentOwner): void {
    const account = this.#accounts.get(owner)
    if (account === undefined) return
    for (const uri of [...account.listed, ...account.retained.keys()]) this.#remove(uri)
    this.#addListed(account, -account.listedBytes)
    this.#queuedBytes -= account.queuedBytes
    this.#resize(account, NO_WINDOW)
    this.#accounts.delete(owner)
  }

  #account(owner: SegmentOwner): CacheAccount {
    const known = this.#accounts.get(owner)
    if (known !== undefined) return known
    const account = new CacheAccount(owner)
    this.#accounts.set(owner, account)
    return account
  }

  #resize(account: CacheAccount, size: WindowSize): void {
    this.#wantedBytes += size.wantedBytes - account.windowSize.wantedBytes
    account.windowSize = size
  }

  #addListed(account: CacheAccount, bytes: number): void {
    account.listedBytes += bytes
    this.#listedBytes += bytes
  }

  #count(account: CacheAccount, counter: keyof Counters): void {
    account.shortage[counter]++
    this.#shortage[counter]++
  }

  #sizeOf(uri: string): number {
    return this.#entries.get(uri)?.sizeBytes ?? 0
  }

  #hasRoom(sizeBytes: number, queuedBytes: number): boolean {
    return this.#bytes + sizeBytes + queuedBytes <= this.#maxBytes
  }

  #shrink(account: CacheAccount, nowMs: number): boolean {
    const shrunk = account.owner.shrink(nowMs)
    if (shrunk) this.#count(account, 'unlistedEarly')
    return shrunk
  }

  get #shares(): MemoryShares {
    const maxBytes = this.#maxBytes
    const queuedBytes = this.#queuedBytes
    const allFit = this.#wantedBytes + queuedBytes <= listedCapacity(queuedBytes, maxBytes)
    if (allFit) return { windowBytes: maxBytes, maxBytes, queuedBytes }
    return shareMemory([...this.#accounts.values()], maxBytes)
  }

  /** @returns whether there is room; without it the segment becomes a gap */
  #makeRoom(requester: CacheAccount, sizeBytes: number, nowMs: number): boolean {
    const shares = this.#shares
    const { windowBytes, maxBytes } = shares
    if (sizeBytes > maxBytes) return false
    const ownBytes = requester.queuedBytes + sizeBytes
    const exceeds = (bytes: number) => requester.listedBytes + ownBytes > bytes
    while (exceeds(Math.min(windowBytes, maxBytes)) && this.#shrink(requester, nowMs));
    if (exceeds(maxBytes)) return false
    return this.#freeRoom(sizeBytes, shares, nowMs)
  }

  /** Releases segments, of idle and large streams first. @returns whether there is room */
  #freeRoom(sizeBytes: number, shares: MemoryShares, nowMs: number): boolean {
    if (this.#hasRoom(sizeBytes, shares.queuedBytes)) return true
    this.#releaseAllExpired(nowMs)
    while (!this.#hasRoom(sizeBytes, shares.queuedBytes)) {
      const giver = this.#findGiver(shares)
      if (giver === undefined) return false
      this.#give(giver, shares, nowMs)
    }
    return true
  }

  /** Finds the owner that loses a segment: the largest idle one, else the largest that can shrink or retains any. */
  #findGiver({ windowBytes }: MemoryShares): CacheAccount | undefined {
    let giver: CacheAccount | undefined
    for (const account of this.#accounts.values()) {
      if (account.bytes === 0) continue
      const canShrink = !account.shortest && account.wantedBytes > windowBytes
      if (!account.idle && !account.retains && !canShrink) continue
      if (giver === undefined || givesBefore(account, giver)) giver = account
    }
    return giver
  }

  /** Shrinks a window above its share to its minimum. Releases a retained or, of an idle owner, a listed segment. */
  #give(account: CacheAccount, { windowBytes }: MemoryShares, nowMs: number): void {
    if (account.wantedBytes > windowBytes) {
      while (this.#shrink(account, nowMs));
      account.shortest = true
    }
    const [oldest] = account.retained.keys()
    if (oldest !== undefined) {
      this.#release(account, oldest)
      this.#count(account, account.idle ? 'yielded' : 'releasedEarly')
    } else if (account.idle) this.#dropListed(account)
  }

  #dropListed(account: CacheAccount): void {
    const [oldest] = account.listed
    if (oldest === undefined) return
    account.owner.drop(oldest)
    account.listed.delete(oldest)
    this.#addListed(account, -this.#sizeOf(oldest))
    this.#release(account, oldest)
    this.#count(account, 'yielded')
  }

  /** Releases the expired segments of all streams. Skips the search when none can have expired. */
  #releaseAllExpired(nowMs: number): void {
    if (nowMs < this.#nextExpiryMs) return
    this.#nextExpiryMs = Infinity
    for (const account of this.#accounts.values()) {
      this.#releaseExpired(account, nowMs)
      const [untilMs = Infinity] = account.retained.values()
      this.#nextExpiryMs = Math.min(this.#nextExpiryMs, untilMs)
    }
  }

  #releaseExpired(account: CacheAccount, nowMs: number): void {
    for (const [uri, untilMs] of account.retained) {
      if (untilMs > nowMs) return
      this.#release(account, uri)
    }
  }

  #release(account: CacheAccount, uri: string): void {
    account.bytes -= this.#sizeOf(uri)
    account.retained.delete(uri)
    this.#remove(uri)
  }

  #remove(uri: string): void {
    const entry = this.#entries.get(uri)
    if (entry === undefined) return
    this.#entries.delete(uri)
    this.#bytes -= entry.sizeBytes
    this.slabs.release(entry.file.chunks)
  }
}
