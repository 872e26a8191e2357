/**
 * Backup of the streams of this node: what their owner writes, and what the next one reads.
 *
 * @module
 */
import type { Clock } from '../../../timing/clock.ts'
import type { Handover } from '../../registry/registered.ts'
import { SegmentBackup, type BackupReport, type ListedMedia } from './segment-backup.ts'
import type { Config } from '../../../config/schema.ts'
import { parseRedisUrls } from '../../../config/setting-types.ts'
import type {
  CheckpointChange,
  CheckpointHead,
  CheckpointRow,
} from '../../../hls/playlist/checkpoint.ts'
import type { MediaSource } from '../../../hls/playlist/earlier-segments.ts'
import type { Logger } from '../../../logger.ts'
import type { LiveStream } from '../../../stream/live-stream.ts'
import { checkpointOf } from '../registered/registered-checkpoint.ts'
import { streamSettings } from '../../../service/stream-defaults.ts'

/** Time limit in milliseconds of reading a window: an encoder may wait for its admission, see `DECISION_MS` of claims. */
const READ_MS = 500

/** Share of the memory for segments that may wait to be written: most of it is in playlists, too. */
const WAITING_SHARE = 1 / 8

/** Min length of a window before a removal, in target durations: three remain (RFC 8216 6.2.2). */
const MIN_TARGETS = 4

/** Target duration until it is fixed, in seconds. */
const FIRST_TARGET_SEC = 10

const NOTHING: ReadonlyMap<string, readonly Buffer[]> = new Map()

type KeptMedia = ReturnType<typeof mediaIn>[number]

type Followed = Pick<LiveStream, 'id' | 'files' | 'checkpoint' | 'on'>

/** Calling order: `connect`; then `follow` the streams of this node, and `read` those of others; `flush` and `close`. */
export class MediaBackup {
  readonly #segments: SegmentBackup
  readonly #config: Config
  readonly #clock: Pick<Clock, 'nowUs'>

  /** @param clock  see `SegmentBackup` */
  constructor(config: Config, logger: Logger, clock: Pick<Clock, 'nowUs'>) {
    const { redisUrl, redisBackupUrls, cache } = config
    this.#config = config
    this.#clock = clock
    this.#segments = new SegmentBackup({
      urls: parseRedisUrls(redisBackupUrls || redisUrl),
      clock,
      maxBytes: cache.maxMib * 1024 * 1024 * WAITING_SHARE,
      onLost: (reason) => logger.warn({ reason }, 'the backup of segments does not answer'),
    })
  }

  get report(): BackupReport {
    return this.#segments.report
  }

  connect(): void {
    this.#segments.connect()
  }

  /** Writes the segments of a stream when they are complete, with their init segments, as long as the stream has listeners. */
  follow(stream: Followed): void {
    /** Numbers of the segments that were written, or read, by URI, until they leave the playlist. */
    const kept = new Map<string, number>()
    for (const { uri, mediaSequence } of mediaIn(stream.checkpoint.rows))
      kept.set(uri, mediaSequence)
    stream.on('checkpoint', (change) => this.#keep(stream, kept, change))
  }

  /** Reads the media that a claimed stream lists or retains, as much as there is within the time limit. */
  async read(handover: Handover): Promise<MediaSource> {
    const checkpoint = checkpointOf(handover, streamSettings(this.#config))
    const ttlMs = this.#lifetimes(checkpoint).listedMs
    const untilUs = this.#clock.nowUs() + READ_MS * 1000
    // Players are near the end of the playlist.
    const newestFirst = mediaIn(checkpoint.rows).toReversed()
    const isListed = ({ mediaSequence }: KeptMedia) => mediaSequence >= checkpoint.listedFrom
    const read = async (segments: readonly KeptMedia[]) => {
      const timeoutMs = Math.ceil((untilUs - this.#clock.nowUs()) / 1000)
      if (timeoutMs <= 0) return NOTHING
      const files = [...initsOf(segments), ...segments]
      return this.#segments.read(handover.stream.id, files, { timeoutMs, ttlMs })
    }
    const listed = await read(newestFirst.filter(isListed))
    // Few have yet to read it: it must not take time and memory from what other streams list.
    const retained = await read(newestFirst.filter((media) => !isListed(media)))
    return (uri) => listed.get(uri) ?? retained.get(uri)
  }

  /** Waits for the writes under way. */
  flush(timeoutMs: number): Promise<void> {
    return this.#segments.flush(timeoutMs)
  }

  close(): Promise<void> {
    return this.#segments.close()
  }

  #keep(
    { id, files }: Followed,
    kept: Map<string, number>,
    { head, rows }: CheckpointChange,
  ): void {
    const { listedMs: ttlMs, retainedMs } = this.#lifetimes(head)
    for (const { uri, map, mediaSequence } of mediaIn(rows)) {
      if (kept.has(uri)) continue
      kept.set(uri, mediaSequence)
      const segment = files.lend(uri)
      if (segment === undefined) continue
      const init = map === undefined ? undefined : files.lend(map)
      const onDone = () => [segment, init].forEach((loan) => loan?.end?.())
      this.#segments.write(id, {
        uri,
        chunks: segment.file.chunks,
        ...(map !== undefined && init && { init: { uri: map, chunks: init.file.chunks } }),
        ttlMs,
        onDone,
      })
    }
    for (const [uri, mediaSequence] of kept) {
      if (mediaSequence >= head.listedFrom) break
      kept.delete(uri)
      // Without a reply of the registry, the next owner reads a window that is older than this one.
      this.#segments.expire(id, uri, retainedMs)
    }
  }

  /**
   * - `listedMs`: longest time for which a segment is listed, the absence of the encoder included, and then retained.
   * - `retainedMs`: time for which a segment is available after it has left the window (RFC 8216 6.2.2).
   */
  #lifetimes({ media, targets }: Pick<CheckpointHead, 'media' | 'targets'>) {
    const targetMs = (targets?.targetSec ?? FIRST_TARGET_SEC) * 1000
    const windowMs = Math.max(media.playlistSegments, MIN_TARGETS) * targetMs
    const retainedMs = windowMs + targetMs
    return { listedMs: windowMs + this.#config.reconnectGraceSec * 1000 + retainedMs, retainedMs }
  }
}

function mediaIn(rows: readonly CheckpointRow[]) {
  return rows.flatMap(({ mediaSequence, segments }) =>
    segments
      .filter(({ gap }) => !gap)
      .map(({ uri, map, sizeBytes }) => ({ uri, map, sizeBytes, mediaSequence })),
  )
}

/** Init segments, each once. */
function initsOf(segments: readonly KeptMedia[]): ListedMedia[] {
  return [...new Set(segments.flatMap(({ map }) => map ?? []))].map((uri) => ({ uri }))
}
