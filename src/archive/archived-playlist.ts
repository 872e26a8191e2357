/**
 * Media playlist of a whole programme (RFC 8216bis 4.4.3.5): EVENT while it runs, VOD at its end. It only grows; a window of
 * it moves.
 *
 * @module
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { isCmafRendition, type RenditionName } from '../hls/file-names.ts'
import { decodeDateRange } from '../hls/playlist/checkpoint-rows.ts'
import type {
  CheckpointDateRange,
  CheckpointRow,
  CheckpointSegment,
} from '../hls/playlist/checkpoint.ts'
import {
  formatDateRange,
  formatHead,
  formatSegment,
  formatTail,
} from '../hls/playlist/playlist-format.ts'
import type { PlaylistSegment } from '../hls/playlist/playlist.ts'

/** Lines of a segment: its tags, date, duration and URI. */
const SEGMENT =
  /^(?:#EXT-X-(?:DISCONTINUITY|GAP|MAP:.*)\n)*#EXT-X-PROGRAM-DATE-TIME:(.*)\n#EXTINF:([\d.]+),\n([^#\n].*)\n/gm

/** Tags that the first segment of a clip does not need. */
const BEFORE_FIRST = /^#EXT-X-(?:DISCONTINUITY|MAP:.*)\n/gm

const DISCONTINUITY = /^#EXT-X-DISCONTINUITY$/m

const ENDLIST = formatTail({ ended: true })

/**
 * Segments in a chunk of text: with 92 bytes each, it has the 16 KiB from which on gzip blocks of it are made once for all
 * versions.
 */
const CHUNK_SEGMENTS = 192

/** Segment of the live playlist, with its init segment. */
export interface ArchivedSegment extends PlaylistSegment {
  /** Number in the live playlist. */
  readonly mediaSequence: number
  /** Number of discontinuities before the segment, without its own. */
  readonly discontinuitySequence: number
  readonly independent: boolean
}

/** @param segment  undefined for a gap */
export function archivedSegment(
  row: CheckpointRow,
  name: RenditionName,
  segment: CheckpointSegment | undefined,
): ArchivedSegment {
  const { mediaSequence, discontinuity, discontinuitySequence, durationSec = 0 } = row
  return {
    mediaSequence,
    discontinuity,
    discontinuitySequence: discontinuitySequence - (discontinuity ? 1 : 0),
    uri: segment?.uri ?? missingUri(name, mediaSequence),
    map: segment?.map,
    durationSec: segment?.durationSec ?? durationSec,
    programDateTimeMs: segment?.programDateTimeMs ?? row.programDateTimeMs,
    independent: segment?.independent ?? true,
    gap: segment?.gap ?? true,
  }
}

/** @returns the name of a segment that was never there */
export function missingUri(name: RenditionName, mediaSequence: number): string {
  return `missing-${mediaSequence}.${isCmafRendition(name) ? 'm4s' : 'ts'}`
}

/** Part of a programme; its times are those of whole segments, in milliseconds since 1970. */
export interface PlaylistClip {
  readonly chunks: readonly Buffer[]
  readonly startMs: number
  readonly endMs: number
  readonly gapSec: number
}

/** First segment of a chunk. */
interface ChunkStart {
  readonly mediaSequence: number
  readonly discontinuitySequence: number
  /** Its date, in milliseconds since 1970. */
  readonly startMs: number
  /** Init segment of the segment before, if the first one has the same. */
  readonly map: string | undefined
}

interface Chunk extends ChunkStart {
  readonly text: Buffer
  /** Sum of its gaps. */
  readonly gapSec: number
}

interface PlaylistHead {
  readonly targetSec: number
  readonly dateRanges: readonly CheckpointDateRange[]
  readonly ended: boolean
}

interface WindowHead extends PlaylistHead {
  /** Number of the first chunk. */
  readonly from: number
  /** CAN-SKIP-UNTIL */
  readonly skipUntilSec: number
  /** Time before which a delta update skips segments; undefined for a whole playlist. */
  readonly skipBeforeMs: number | undefined
}

export class ArchivedPlaylist {
  readonly #rendition: RenditionName
  readonly #chunks: Chunk[] = []
  /** Start of `#tail`. */
  #start: ChunkStart | undefined
  /** Lines that are in no chunk so far. */
  #tail = ''
  #tailGapSec = 0
  #sizeBytes = 0
  #isIndependent = true
  readonly #maps = new Set<string>()
  #map: string | undefined
  #lastSequence = -1

  constructor(rendition: RenditionName) {
    this.#rendition = rendition
  }

  /** Number in the live playlist of the newest segment; -1 without one. */
  get lastSequence(): number {
    return this.#lastSequence
  }

  /** Size of the segments' lines. */
  get sizeBytes(): number {
    return this.#sizeBytes
  }

  append(segment: ArchivedSegment): void {
    const { programDateTimeMs: startMs, map, gap, durationSec } = segment
    this.#isIndependent &&= isDecodable(segment)
    const gapSec = gap ? durationSec : 0
    this.#add(listAfter(this.#map, segment), { ...segment, startMs, map, gapSec })
  }

  /** Number of the newest chunk that begins at or before a time; 0 without one. */
  chunkAt(ms: number): number {
    const isBefore = ({ startMs }: ChunkStart) => startMs <= ms
    if (this.#start !== undefined && isBefore(this.#start)) return numberOf(this.#start)
    const chunk = this.#chunks.findLast(isBefore)
    return chunk === undefined ? 0 : numberOf(chunk)
  }

  /** Whether it names a segment or an init segment. */
  names(uri: string): boolean {
    if (this.#maps.has(uri)) return true
    const number = sequenceOf(uri) ?? Infinity
    if (number > this.#lastSequence) return false
    const line = `\n${uri}\n`
    if (this.#start !== undefined && number >= this.#start.mediaSequence)
      return this.#tail.includes(line)
    return (
      this.#chunks.findLast(({ mediaSequence }) => mediaSequence <= number)?.text.includes(line) ===
      true
    )
  }

  /** @returns undefined without segments */
  render({ targetSec, dateRanges, ended }: PlaylistHead): readonly Buffer[] | undefined {
    const first = this.#chunks[0] ?? this.#start
    if (first === undefined) return undefined
    const head = formatHead({
      ...first,
      type: ended ? 'VOD' : 'EVENT',
      targetDurationSec: targetSec,
      independentSegments: this.#isIndependent,
      ended,
      hasMaps: isCmafRendition(this.#rendition),
    })
    const tail = `${this.#tail}${formatTail({ ended })}`
    const text = `${head}${formatDateRanges(dateRanges)}`
    return [Buffer.from(text), ...this.#chunks.map((it) => it.text), Buffer.from(tail)]
  }

  /**
   * Playlist of a window.
   *
   * @param newest  segments behind those of the playlist
   * @returns undefined without segments
   */
  renderWindow(
    { targetSec, dateRanges, ended, from, skipUntilSec, skipBeforeMs }: WindowHead,
    newest: readonly ArchivedSegment[],
  ): readonly Buffer[] | undefined {
    const whole = this.#pieces.filter((it) => numberOf(it) >= from)
    const kept = skipBeforeMs === undefined ? whole : skip(whole, skipBeforeMs)
    const [next] = newest
    const first = whole[0] ?? (next && { ...next, startMs: next.programDateTimeMs })
    if (first === undefined) return undefined
    const head = formatHead({
      targetDurationSec: targetSec,
      skipUntilSec,
      mediaSequence: first.mediaSequence,
      discontinuitySequence: first.discontinuitySequence,
      independentSegments: this.#isIndependent && newest.every(isDecodable),
      ended,
      hasMaps: isCmafRendition(this.#rendition),
      skippedSegments: (kept[0] ?? first).mediaSequence - first.mediaSequence,
      map: kept[0]?.map,
    })
    const ranges = dateRanges.filter(
      ({ startMs, plannedDurationSec = 0, durationSec = plannedDurationSec }) =>
        startMs + durationSec * 1000 >= first.startMs,
    )
    let map = kept.length > 0 ? this.#map : undefined
    const lines = newest.map((segment) => {
      const text = listAfter(map, segment)
      map = segment.map ?? map
      return text
    })
    return [
      Buffer.from(`${head}${formatDateRanges(ranges)}`),
      ...kept.slice(0, -1).map(({ text }) => text),
      Buffer.from(`${kept.at(-1)?.text.toString() ?? ''}${lines.join('')}${formatTail({ ended })}`),
    ]
  }

  /**
   * @param untilMs  end of the clip, like `fromMs` in milliseconds since 1970
   * @returns playlist of the segments that have media in the clip; undefined without any
   */
  clip(fromMs: number, untilMs: number, targetSec: number): PlaylistClip | undefined {
    const all = this.#pieces
    const from = Math.max(
      0,
      all.findLastIndex(({ startMs }) => startMs <= fromMs),
    )
    const pieces = all.slice(from).filter(({ startMs }) => startMs < untilMs)
    const [first] = pieces
    if (first === undefined) return undefined
    let { map, mediaSequence, discontinuitySequence } = first
    let [startMs, endMs, gapSec] = [-1, 0, 0]
    const texts: Buffer[] = []
    for (const piece of pieces) {
      if (startMs >= 0 && piece !== pieces.at(-1)) {
        texts.push(piece.text)
        gapSec += piece.gapSec
        continue
      }
      for (const [lines, date, duration, uri] of piece.text.toString().matchAll(SEGMENT)) {
        const [dateMs, durationMs] = [Date.parse(date!), Number(duration) * 1000]
        if (dateMs >= untilMs) break
        const isFirst = startMs < 0
        if (isFirst) {
          if (DISCONTINUITY.test(lines)) discontinuitySequence++
          map = mapIn(lines) ?? map
          if (dateMs + durationMs <= fromMs) continue
          startMs = dateMs
          mediaSequence = sequenceOf(uri!) ?? mediaSequence
        }
        texts.push(Buffer.from(isFirst ? lines.replace(BEFORE_FIRST, '') : lines))
        endMs = dateMs + durationMs
        gapSec += gapSecOf(lines, duration!)
      }
    }
    if (startMs < 0) return undefined
    const head = formatHead({
      type: 'VOD',
      targetDurationSec: targetSec,
      mediaSequence,
      discontinuitySequence,
      independentSegments: this.#isIndependent,
      ended: true,
      hasMaps: isCmafRendition(this.#rendition),
      ...(map !== undefined && { map }),
    })
    const chunks = [Buffer.from(head), ...texts, Buffer.from(ENDLIST)]
    return { chunks, startMs, endMs, gapSec }
  }

  /**
   * Goes on with what `render` has returned in another process, in turns of the event loop: 10,000 segments take some 50 ms.
   *
   * @returns false if it is something else
   */
  async restore(playlist: string): Promise<boolean> {
    const number = (tag: string) =>
      Number(new RegExp(`^#EXT-X-${tag}:(\\d+)$`, 'm').exec(playlist)?.[1] ?? NaN)
    const first = number('MEDIA-SEQUENCE')
    let discontinuitySequence = number('DISCONTINUITY-SEQUENCE')
    if (Number.isNaN(first + discontinuitySequence)) return false
    const endAt = playlist.length - (playlist.endsWith(ENDLIST) ? ENDLIST.length : 0)
    let at: number | undefined
    for (const { 0: lines, 1: date, 2: duration, 3: uri, index } of playlist.matchAll(SEGMENT)) {
      if (at === undefined)
        this.#isIndependent = playlist.slice(0, index).includes('#EXT-X-INDEPENDENT-SEGMENTS\n')
      const mediaSequence = sequenceOf(uri!)
      if ((at ?? index) !== index || mediaSequence === undefined) return false
      const [startMs, map] = [Date.parse(date!), mapIn(lines)]
      const gapSec = gapSecOf(lines, duration!)
      const chunks = this.#chunks.length
      this.#add(lines, { mediaSequence, discontinuitySequence, startMs, map, gapSec })
      if (DISCONTINUITY.test(lines)) discontinuitySequence++
      at = index + lines.length
      if (this.#chunks.length > chunks) await nextTurn()
    }
    return at === endAt
  }

  /** Chunks, and what is in none so far. */
  get #pieces(): readonly Chunk[] {
    if (this.#start === undefined) return this.#chunks
    return [...this.#chunks, this.#lastChunk(this.#start)]
  }

  #lastChunk(start: ChunkStart): Chunk {
    return { ...start, text: Buffer.from(this.#tail), gapSec: this.#tailGapSec }
  }

  /** @param segment  `map`: its init segment, undefined for that of the segment before */
  #add(lines: string, segment: Omit<Chunk, 'text'>): void {
    const { mediaSequence, discontinuitySequence, startMs, gapSec, map = this.#map } = segment
    if (this.#start !== undefined && numberOf(segment) !== numberOf(this.#start)) {
      this.#chunks.push(this.#lastChunk(this.#start))
      this.#start = undefined
      this.#tail = ''
      this.#tailGapSec = 0
    }
    this.#start ??= {
      mediaSequence,
      discontinuitySequence,
      startMs,
      map: map === this.#map ? map : undefined,
    }
    this.#tail += lines
    this.#tailGapSec += gapSec
    this.#sizeBytes += lines.length
    if (map !== undefined) this.#maps.add(map)
    this.#map = map
    this.#lastSequence = mediaSequence
  }
}

/** Skips the segments that end before a time, which lies in no segment that is kept but the first. */
function skip(chunks: readonly Chunk[], beforeMs: number): readonly Chunk[] {
  const index = chunks.findLastIndex(({ startMs }) => startMs <= beforeMs)
  const chunk = chunks[index]
  if (chunk === undefined) return chunks
  const segments = [...chunk.text.toString().matchAll(SEGMENT)]
  const from = segments.findLastIndex(([, date = '']) => Date.parse(date) <= beforeMs)
  const [lines = '', , , uri = ''] = segments[from] ?? []
  const map = segments
    .slice(0, Math.max(0, from))
    .reduce((before: string | undefined, [each]) => mapIn(each) ?? before, chunk.map)
  const rest = {
    ...chunk,
    mediaSequence: sequenceOf(uri) ?? chunk.mediaSequence,
    map: mapIn(lines) === undefined ? map : undefined,
    text: chunk.text.subarray(segments[from]?.index ?? 0),
  }
  return [rest, ...chunks.slice(index + 1)]
}

function mapIn(lines: string): string | undefined {
  return /^#EXT-X-MAP:URI="([^"\n]*)"$/m.exec(lines)?.[1]
}

function gapSecOf(lines: string, duration: string): number {
  return lines.includes('#EXT-X-GAP\n') ? Number(duration) : 0
}

/** Number of a chunk: the same in all renditions. */
function numberOf({ mediaSequence }: Pick<ChunkStart, 'mediaSequence'>): number {
  return Math.floor(mediaSequence / CHUNK_SEGMENTS)
}

function formatDateRanges(dateRanges: readonly CheckpointDateRange[]): string {
  return dateRanges.map((each) => formatDateRange(decodeDateRange(each))).join('')
}

/** Whether nobody needs another segment to decode it. */
function isDecodable({ independent, gap }: ArchivedSegment): boolean {
  return independent || gap
}

/** @param mapBefore  init segment of the segment before */
function listAfter(mapBefore: string | undefined, { map, ...segment }: ArchivedSegment): string {
  return formatSegment({ ...segment, ...(map !== mapBefore && map && { map }) })
}

/** @returns the number that the name of a segment ends with, see `segmentUri` */
function sequenceOf(uri: string): number | undefined {
  const digits = /(\d+)\.[a-z0-9]+$/.exec(uri)?.[1]
  return digits === undefined ? undefined : Number(digits)
}
