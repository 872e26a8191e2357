/**
 * Backup of closed segments in Redis, for the node that continues a stream. It has connections of its own, since media
 * must not delay the registry. A segment is written once, or dropped: later it would be of no use.
 *
 * A stream is on one server: without it some streams have no backup, rather than all streams gaps.
 *
 * @module
 */
import { totalBytes } from '../../../binary/total-bytes.ts'
import { createHash } from 'node:crypto'
import type { Clock } from '../../../timing/clock.ts'
import { withTimeout } from '../../../timing/time-limit.ts'
import { Redis, type Argument } from '../../registry/redis.ts'

interface SegmentBackupOptions {
  /** See `parseRedisUrl`. All nodes have the same in the same order. */
  readonly urls: readonly string[]
  /** Max size of the segments that wait to be written, and of those that are being read. */
  readonly maxBytes: number
  /** Called when a server cannot be reached, or no longer. */
  readonly onLost: (reason: string) => void
  /** Has the origin of `machineClock`, which dates `Redis.awaySinceUs`. */
  readonly clock: Pick<Clock, 'nowUs'>
}

interface BackedUpFile {
  readonly uri: string
  readonly chunks: readonly Buffer[]
}

/** Segment that is to be written. */
interface ClosedSegment extends BackedUpFile {
  /** Its init segment, written again with each segment: it is there for as long as the latest of them. */
  readonly init?: BackedUpFile | undefined
  readonly ttlMs: number
  /** Called when the chunks may be reused; never after a failed write, since the connection may still read them. */
  readonly onDone: () => void
}

/** Segment or init segment that is to be read, as its playlist has it. */
export interface ListedMedia {
  readonly uri: string
  /** Undefined for an init segment. */
  readonly sizeBytes?: number
}

export interface BackupReport {
  /** Size of the segments that are waiting or being written. */
  readonly waitingBytes: number
  readonly writtenBytes: number
  /** Size of the segments that were dropped: too many waited, or the server was away. */
  readonly droppedBytes: number
  readonly readBytes: number
}

/** Time limit of a write, in milliseconds. */
const WRITE_MS = 2000

/** Memory that is reserved to read an init segment; usually it has 1 KB. */
const INIT_BYTES = 64 * 1024

/** Max number of writes to one server at a time: it receives while it stores the one before. */
const MAX_WRITES = 4

interface Server {
  readonly redis: Redis
  writes: number
  /** Begin the writes that wait, in order. */
  readonly waiting: (() => void)[]
}

/** Calling order: `connect`; then `write`, `expire` and `read` at any time; `flush` and `close`. */
export class SegmentBackup {
  readonly #servers: readonly Server[]
  readonly #maxBytes: number
  readonly #clock: Pick<Clock, 'nowUs'>
  readonly #pending = new Set<Promise<void>>()
  #waitingBytes = 0
  #writtenBytes = 0
  #droppedBytes = 0
  #readingBytes = 0
  #readBytes = 0

  /** @throws {MillraceError} `CONFIG_INVALID` for a URL of another shape */
  constructor({ urls, maxBytes, onLost, clock }: SegmentBackupOptions) {
    this.#maxBytes = maxBytes
    this.#clock = clock
    this.#servers = urls.map((url) => {
      const redis = new Redis({ url, timeoutMs: WRITE_MS })
      redis.on('lost', onLost)
      return { redis, writes: 0, waiting: [] }
    })
  }

  get report(): BackupReport {
    return {
      waitingBytes: this.#waitingBytes,
      writtenBytes: this.#writtenBytes,
      droppedBytes: this.#droppedBytes,
      readBytes: this.#readBytes,
    }
  }

  connect(): void {
    for (const { redis } of this.#servers) redis.connect()
  }

  /** Writes a segment, or drops it; media does not wait for it. */
  write(streamId: string, segment: ClosedSegment): void {
    const sizeBytes = totalBytes(chunksOf(segment))
    const server = this.#serverOf(streamId)
    if (!server.redis.isReady || this.#waitingBytes + sizeBytes > this.#maxBytes) {
      this.#droppedBytes += sizeBytes
      segment.onDone()
      return
    }
    this.#waitingBytes += sizeBytes
    const pending = this.#store(server, streamId, segment).finally(() => {
      this.#waitingBytes -= sizeBytes
      this.#pending.delete(pending)
    })
    this.#pending.add(pending)
  }

  /** Keeps a segment for so long from now on. */
  expire(streamId: string, uri: string, ttlMs: number): void {
    const { redis } = this.#serverOf(streamId)
    // Otherwise it stays until the time that its write has set.
    redis.command(expiry(keyOf(streamId, uri), ttlMs)).catch(() => undefined)
  }

  /**
   * Reads segments, and keeps them for so long from now on.
   *
   * @param segments  in order of importance
   * @returns by URI, those that were found whole within the time limit
   */
  async read(
    streamId: string,
    segments: readonly ListedMedia[],
    { timeoutMs, ttlMs }: { readonly timeoutMs: number; readonly ttlMs: number },
  ): Promise<ReadonlyMap<string, readonly Buffer[]>> {
    const found = new Map<string, readonly Buffer[]>()
    const { redis } = this.#serverOf(streamId)
    // A server that is away delays one stream, not each of many.
    const untilUs = (redis.awaySinceUs ?? this.#clock.nowUs()) + timeoutMs * 1000
    const leftMs = () => Math.ceil((untilUs - this.#clock.nowUs()) / 1000)
    if (leftMs() > 0) await redis.ready(leftMs()).catch(() => undefined)
    if (!redis.isReady) return found
    const limits = { timeoutMs: leftMs(), binary: true }
    const reads = segments.map(async ({ uri, sizeBytes }) => {
      const reservedBytes = sizeBytes ?? INIT_BYTES
      if (this.#readingBytes + reservedBytes > this.#maxBytes) return
      this.#readingBytes += reservedBytes
      const key = keyOf(streamId, uri)
      try {
        const kept = redis.command(expiry(key, ttlMs), limits)
        const [, chunks] = await Promise.all([
          kept,
          redis.command(['LRANGE', key, '0', '-1'], limits),
        ])
        if (!isMedia(chunks) || chunks.length === 0) return
        const foundBytes = totalBytes(chunks)
        if (foundBytes !== (sizeBytes ?? foundBytes)) return
        this.#readBytes += foundBytes
        found.set(uri, chunks)
      } catch {
        // It is a gap.
      } finally {
        this.#readingBytes -= reservedBytes
      }
    })
    await Promise.all(reads)
    return found
  }

  /** Waits for the writes under way. */
  async flush(timeoutMs: number): Promise<void> {
    await withTimeout(Promise.all(this.#pending), timeoutMs).catch(() => undefined)
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map(({ redis }) => redis.close()))
  }

  async #store(server: Server, streamId: string, segment: ClosedSegment): Promise<void> {
    const { init, ttlMs, onDone } = segment
    const sizeBytes = totalBytes(chunksOf(segment))
    if (server.writes >= MAX_WRITES) {
      await new Promise<void>((resolve) => server.waiting.push(resolve))
    } else server.writes++
    try {
      // One element for each chunk, which are not joined here. One transaction: without its expiry a key would stay, and
      // without its init segment a segment would be of no use.
      const files = init === undefined ? [segment] : [init, segment]
      const writes = files.flatMap(({ uri, chunks }): Argument[][] => {
        const key = keyOf(streamId, uri)
        return [['DEL', key], ['RPUSH', key, ...chunks], expiry(key, ttlMs)]
      })
      const commands: Argument[][] = [['MULTI'], ...writes, ['EXEC']]
      await Promise.all(commands.map((args) => server.redis.command(args)))
      this.#writtenBytes += sizeBytes
      onDone()
    } catch {
      this.#droppedBytes += sizeBytes
    } finally {
      const next = server.waiting.shift()
      if (next === undefined) server.writes--
      else next()
    }
  }

  #serverOf(streamId: string): Server {
    const hash = createHash('sha1').update(streamId).digest().readUInt32BE()
    return this.#servers[hash % this.#servers.length]!
  }
}

function chunksOf({ init, chunks }: ClosedSegment): readonly Buffer[] {
  return init === undefined ? chunks : [...init.chunks, ...chunks]
}

function keyOf(streamId: string, uri: string): string {
  return `mr:{${streamId}}:media:${uri}`
}

function expiry(key: string, ttlMs: number): Argument[] {
  return ['PEXPIRE', key, String(Math.ceil(ttlMs))]
}

function isMedia(reply: unknown): reply is Buffer[] {
  return Array.isArray(reply) && reply.every((chunk) => Buffer.isBuffer(chunk))
}
