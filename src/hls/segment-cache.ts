/**
 * The only owner of segment bytes, shared by all streams, within one bound of memory.
 *
 * What a playlist lists, and what is owed after it left the playlist (RFC 8216 6.2.2), is never evicted. Since a
 * segment is owed for about as long as it was listed, all segments listed together may take only a part of the memory:
 * beyond it, the playlists with the most bytes are asked to list less.
 *
 * @module
 */
import { LRUCache } from 'lru-cache'

/** A playlist whose segments are in the cache. */
export interface SegmentOwner {
  /** Takes the oldest segment out of the playlist and retires it; false where the playlist cannot spare it. */
  shrink(nowMs: number): boolean
}

export interface SegmentCacheStats {
  readonly maxBytes: number
  readonly bytes: number
  readonly listedBytes: number
  readonly segments: number
  /** Segments for which there was no room. */
  readonly refused: number
}

interface Entry {
  readonly owner: SegmentOwner
  readonly bytes: Buffer
  /** From then on nobody is owed the segment; infinite while it is listed. */
  owedUntilMs: number
}

/** What one owner has in the cache. */
interface Holding {
  /** Oldest first: owners retire in this order, so what is owed no more stands in front. */
  readonly uris: Set<string>
  listedBytes: number
}

/**
 * A segment is owed for its own duration and that of the playlist. So of a window of three segments, the least there may
 * be, three are in the list and four are owed, and this part of the memory is enough; a longer window needs less.
 */
const LISTED_SHARE = 0.4

/** Times are milliseconds of one clock that never goes back. */
export class SegmentCache {
  readonly #entries: LRUCache<string, Entry>
  readonly #holdings = new Map<SegmentOwner, Holding>()
  #totalListedBytes = 0
  #refused = 0

  constructor({ maxBytes }: { readonly maxBytes: number }) {
    this.#entries = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: ({ bytes }) => bytes.length,
    })
  }

  get stats(): SegmentCacheStats {
    return {
      maxBytes: this.#entries.maxSize,
      bytes: this.#entries.calculatedSize,
      listedBytes: this.#totalListedBytes,
      segments: this.#entries.size,
      refused: this.#refused,
    }
  }

  /**
   * A segment that its owner's playlist lists from now on.
   *
   * @param uri  unique in the process: it names the epoch of its stream
   * @returns false where there is no room for it
   */
  put(
    owner: SegmentOwner,
    uri: string,
    { bytes, nowMs }: { bytes: Buffer; nowMs: number },
  ): boolean {
    if (this.#entries.has(uri))
      throw new Error(`${uri} is in the cache already: expected a URI of its own`)
    const holding = this.#holdings.get(owner) ?? { uris: new Set(), listedBytes: 0 }
    this.#release(holding, nowMs)
    if (!this.#hasRoom(bytes.length)) {
      for (const other of this.#holdings.values()) this.#release(other, nowMs)
    }
    // Never let lru-cache make the room: it would evict what is listed.
    if (!this.#hasRoom(bytes.length)) {
      this.#refused++
      return false
    }
    this.#entries.set(uri, { owner, bytes, owedUntilMs: Infinity })
    this.#holdings.set(owner, holding)
    holding.uris.add(uri)
    this.#addListed(holding, bytes.length)
    this.#askToShrink(nowMs)
    return true
  }

  get(owner: SegmentOwner, uri: string): Buffer | undefined {
    const entry = this.#entries.get(uri)
    return entry?.owner === owner ? entry.bytes : undefined
  }

  /** The owner's playlist does not list the segment any more; the oldest that it lists leaves first. */
  retire(owner: SegmentOwner, uri: string, owedUntilMs: number): void {
    const entry = this.#entries.peek(uri)
    const holding = this.#holdings.get(owner)
    if (holding === undefined || entry?.owner !== owner || entry.owedUntilMs !== Infinity) return
    entry.owedUntilMs = owedUntilMs
    this.#addListed(holding, -entry.bytes.length)
  }

  /** Drops all segments of an owner, owed or not. */
  discard(owner: SegmentOwner): void {
    const holding = this.#holdings.get(owner)
    if (holding === undefined) return
    for (const uri of holding.uris) this.#entries.delete(uri)
    this.#addListed(holding, -holding.listedBytes)
    this.#holdings.delete(owner)
  }

  #hasRoom(sizeBytes: number): boolean {
    return this.#entries.calculatedSize + sizeBytes <= this.#entries.maxSize
  }

  /** Drops what nobody is owed any more. */
  #release({ uris }: Holding, nowMs: number): void {
    for (const uri of uris) {
      const entry = this.#entries.peek(uri)
      if (entry !== undefined && entry.owedUntilMs > nowMs) return
      this.#entries.delete(uri)
      uris.delete(uri)
    }
  }

  #addListed(holding: Holding, bytes: number): void {
    holding.listedBytes += bytes
    this.#totalListedBytes += bytes
  }

  /** The largest window gives first, as far as it can. */
  #askToShrink(nowMs: number): void {
    const budgetBytes = this.#entries.maxSize * LISTED_SHARE
    if (this.#totalListedBytes <= budgetBytes) return
    const largestFirst = [...this.#holdings].toSorted(
      ([, a], [, b]) => b.listedBytes - a.listedBytes,
    )
    for (const [owner] of largestFirst) {
      while (this.#totalListedBytes > budgetBytes) {
        if (!owner.shrink(nowMs)) break
      }
    }
  }
}
