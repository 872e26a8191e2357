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
import { LRUCache } from 'lru-cache'
import {
  givesBefore,
  Holding,
  NO_SHORTAGE,
  NO_WINDOW,
  type CachedSegment,
  type Counters,
  type SegmentOwner,
  type ShortageCounters,
} from './holding.ts'
import { SlabPool } from '../../mpegts/mux/slab-pool.ts'
import {
  LISTED_SHARE,
  listedCapacity,
  shareMemory,
  type MemoryShares,
  type WindowSize,
} from './memory-share.ts'
import type { SegmentCacheStats } from './cache-stats.ts'
import type { StreamFile } from './stream-file.ts'

export type { SegmentCacheStats }

/** Maximum size of the unused slabs, as a share of the cached bytes: all streams may cut a segment at once. */
const FREE_SHARE = 1 / 8
const MIN_FREE_BYTES = 16 * 1024 * 1024

/** Minimum size to recommend, as a multiple of `maxBytes`. */
const MIN_ADVICE = 5 / 4

/** Times are in milliseconds of a monotonic clock. */
export class SegmentCache {
  /** Pool of the segments' memory, to which the cache releases each segment that it removes. */
  readonly slabs: SlabPool
  readonly #entries: LRUCache<string, CachedSegment>
  readonly #holdings = new Map<SegmentOwner, Holding>()
  readonly #shortage: Counters = { ...NO_SHORTAGE }
  #listedBytes = 0
  #wantedBytes = 0
  #queuedBytes = 0
  /** No retained segment expires before this time. */
  #nextExpiryMs = Infinity

  constructor({ maxBytes }: { readonly maxBytes: number }) {
    this.#entries = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: ({ sizeBytes }) => sizeBytes,
      dispose: ({ file }) => this.slabs.release(file.chunks),
    })
    const minFreeBytes = Math.min(MIN_FREE_BYTES, maxBytes * FREE_SHARE)
    this.slabs = new SlabPool(() =>
      Math.max(minFreeBytes, this.#entries.calculatedSize * FREE_SHARE),
    )
  }

  get stats(): SegmentCacheStats {
    const { maxSize: maxBytes } = this.#entries
    const neededBytes = Math.ceil(this.#wantedBytes / LISTED_SHARE) + this.#queuedBytes
    return {
      maxBytes,
      bytes: this.#entries.calculatedSize,
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
    return { ...(this.#holdings.get(owner)?.shortage ?? NO_SHORTAGE) }
  }

  /**
   * Adds a segment, which its owner's playlist lists from now on. The cache owns the chunks, even of a refused segment.
   *
   * @param uri  unique in the process: it contains the epoch of the stream
   * @returns false if there is no room for it
   */
  put(
    owner: SegmentOwner,
    uri: string,
    { file, nowMs }: { file: StreamFile; nowMs: number },
  ): boolean {
    if (this.#entries.has(uri))
      throw new Error(`${uri} is in the cache already: expected a URI of its own`)
    const sizeBytes = file.chunks.reduce((sum, { length }) => sum + length, 0)
    const holding = this.#holding(owner)
    holding.shortest = false
    holding.idle = false
    this.#resize(holding, owner.windowSize)
    this.#releaseExpired(holding, nowMs)
    // lru-cache must not make room itself: it would evict listed segments.
    if (!this.#makeRoom(holding, sizeBytes, nowMs)) {
      this.#count(holding, 'refused')
      this.slabs.release(file.chunks)
      return false
    }
    this.#entries.set(uri, { owner, file, sizeBytes })
    holding.listed.add(uri)
    holding.bytes += sizeBytes
    this.#addListed(holding, sizeBytes)
    return true
  }

  get(owner: SegmentOwner, uri: string): StreamFile | undefined {
    const entry = this.#entries.get(uri)
    return entry?.owner === owner ? entry.file : undefined
  }

  /** Retains until `untilMs` a segment that has left its playlist; if memory is short, it is released earlier. */
  retain(owner: SegmentOwner, uri: string, untilMs: number): void {
    const holding = this.#holdings.get(owner)
    if (holding?.listed.delete(uri) !== true) return
    holding.retained.set(uri, untilMs)
    this.#nextExpiryMs = Math.min(this.#nextExpiryMs, untilMs)
    this.#addListed(holding, -this.#sizeOf(uri))
  }

  /** Records the size of the owner's queues; `settle` and `put` make room for them. */
  reserve(owner: SegmentOwner, queuedBytes: number): void {
    if (queuedBytes === 0 && !this.#holdings.has(owner)) return
    const holding = this.#holding(owner)
    this.#queuedBytes += queuedBytes - holding.queuedBytes
    holding.queuedBytes = queuedBytes
  }

  /** Makes room for queues that have grown; to be called 4 times a second. */
  settle(nowMs: number): void {
    if (!this.#hasRoom(0, this.#queuedBytes)) this.#freeRoom(0, this.#shares, nowMs)
  }

  /**
   * Marks the owner as idle until its next `put`: it has no share of the memory and loses segments before all others.
   */
  rest(owner: SegmentOwner): void {
    const holding = this.#holdings.get(owner)
    if (holding === undefined) return
    holding.idle = true
    this.#resize(holding, NO_WINDOW)
  }

  /** Drops all segments of an owner, listed or retained. */
  discard(owner: SegmentOwner): void {
    const holding = this.#holdings.get(owner)
    if (holding === undefined) return
    for (const uri of [...holding.listed, ...holding.retained.keys()]) this.#entries.delete(uri)
    this.#addListed(holding, -holding.listedBytes)
    this.#queuedBytes -= holding.queuedBytes
    this.#resize(holding, NO_WINDOW)
    this.#holdings.delete(owner)
  }

  #holding(owner: SegmentOwner): Holding {
    const known = this.#holdings.get(owner)
    if (known !== undefined) return known
    const holding = new Holding(owner)
    this.#holdings.set(owner, holding)
    return holding
  }

  #resize(holding: Holding, size: WindowSize): void {
    this.#wantedBytes += size.wantedBytes - holding.windowSize.wantedBytes
    holding.windowSize = size
  }

  #addListed(holding: Holding, bytes: number): void {
    holding.listedBytes += bytes
    this.#listedBytes += bytes
  }

  #count(holding: Holding, counter: keyof Counters): void {
    holding.shortage[counter]++
    this.#shortage[counter]++
  }

  #sizeOf(uri: string): number {
    return this.#entries.peek(uri)?.sizeBytes ?? 0
  }

  #hasRoom(sizeBytes: number, queuedBytes: number): boolean {
    return this.#entries.calculatedSize + sizeBytes + queuedBytes <= this.#entries.maxSize
  }

  #shrink(holding: Holding, nowMs: number): boolean {
    const shrunk = holding.owner.shrink(nowMs)
    if (shrunk) this.#count(holding, 'unlistedEarly')
    return shrunk
  }

  get #shares(): MemoryShares {
    const { maxSize: maxBytes } = this.#entries
    const queuedBytes = this.#queuedBytes
    const allFit = this.#wantedBytes + queuedBytes <= listedCapacity(queuedBytes, maxBytes)
    if (allFit) return { windowBytes: maxBytes, maxBytes, queuedBytes }
    return shareMemory([...this.#holdings.values()], maxBytes)
  }

  /** @returns whether there is room; without it the segment becomes a gap */
  #makeRoom(requester: Holding, sizeBytes: number, nowMs: number): boolean {
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
  #findGiver({ windowBytes }: MemoryShares): Holding | undefined {
    let giver: Holding | undefined
    for (const holding of this.#holdings.values()) {
      if (holding.bytes === 0) continue
      const canShrink = !holding.shortest && holding.wantedBytes > windowBytes
      if (!holding.idle && !holding.retains && !canShrink) continue
      if (giver === undefined || givesBefore(holding, giver)) giver = holding
    }
    return giver
  }

  /** Shrinks a window above its share to its minimum. Releases a retained or, of an idle owner, a listed segment. */
  #give(holding: Holding, { windowBytes }: MemoryShares, nowMs: number): void {
    if (holding.wantedBytes > windowBytes) {
      while (this.#shrink(holding, nowMs));
      holding.shortest = true
    }
    const [oldest] = holding.retained.keys()
    if (oldest !== undefined) {
      this.#release(holding, oldest)
      this.#count(holding, holding.idle ? 'yielded' : 'releasedEarly')
    } else if (holding.idle) this.#dropListed(holding)
  }

  #dropListed(holding: Holding): void {
    const [oldest] = holding.listed
    if (oldest === undefined) return
    holding.owner.drop(oldest)
    holding.listed.delete(oldest)
    this.#addListed(holding, -this.#sizeOf(oldest))
    this.#release(holding, oldest)
    this.#count(holding, 'yielded')
  }

  /** Releases the expired segments of all streams. Skips the search when none can have expired. */
  #releaseAllExpired(nowMs: number): void {
    if (nowMs < this.#nextExpiryMs) return
    this.#nextExpiryMs = Infinity
    for (const holding of this.#holdings.values()) {
      this.#releaseExpired(holding, nowMs)
      const [untilMs = Infinity] = holding.retained.values()
      this.#nextExpiryMs = Math.min(this.#nextExpiryMs, untilMs)
    }
  }

  #releaseExpired(holding: Holding, nowMs: number): void {
    for (const [uri, untilMs] of holding.retained) {
      if (untilMs > nowMs) return
      this.#release(holding, uri)
    }
  }

  #release(holding: Holding, uri: string): void {
    holding.bytes -= this.#sizeOf(uri)
    holding.retained.delete(uri)
    this.#entries.delete(uri)
  }
}
