/**
 * Media of one playlist as it was loaded: segments and parts are inspected, and compared with their neighbors.
 *
 * @module
 */
import type { Exchange, Reply } from '../exchange.ts'
import { inspectMedia } from '../media/inspect.ts'
import {
  findMedia,
  formatPlace,
  isComplete,
  MAX_MAPS,
  placeOf,
  totalSec,
  type ParsedSegment,
  type ParsedPlaylist,
} from '../playlist/media-playlist.ts'
import type { DatedMedia, InspectedMedia, Occurrence, RenditionFigures } from '../rules/subjects.ts'

/** Segments whose inspected parts are kept, for the comparison with the whole segment. */
const MAX_OPEN_SEGMENTS = 3

/** Segments whose starts are kept: low-latency renditions that are compared are at most that far apart. */
const MAX_STARTS = 3

/** Timelines whose newest media is kept, for the comparison with other renditions. */
const MAX_MARKS = 3

/** Limits of the sum of durations that a peak is measured over, in target durations. */
const MIN_SPAN = 0.5
const MAX_SPAN = 1.5

/** Inputs: `addInit` and `add` each response with media. */
export class LoadedMedia {
  readonly #rates = new SegmentRates()
  /** By URL and byte range. */
  readonly #inits = new Map<string, Buffer>()
  /** Inspected parts by media sequence number. */
  readonly #parts = new Map<number, InspectedMedia[]>()
  /** By discontinuity sequence number. */
  readonly #marks = new Map<number, DatedMedia>()
  /** By media sequence number. */
  readonly #starts = new Map<number, InspectedMedia>()
  #latestSegment: InspectedMedia | undefined
  #latestPart: InspectedMedia | undefined

  get summary(): Pick<
    RenditionFigures,
    'tracks' | 'marks' | 'peakBps' | 'averageBps' | 'mediaSec'
  > {
    return {
      tracks: (this.#latestSegment ?? this.#latestPart)?.facts.tracks ?? [],
      marks: this.#marks,
      ...this.#rates.summary,
    }
  }

  /** Keeps an init segment, which the media that names it is inspected with. */
  addInit({ url, headers }: Exchange, { body }: Reply): void {
    this.#inits.set(formatPlace(url, headers['range']), body)
    keepNewest(this.#inits, MAX_MAPS)
  }

  /** @param playlist  newest version */
  *add(playlist: ParsedPlaylist, exchange: Exchange, reply: Reply): Iterable<Occurrence> {
    const found = findMedia(playlist, exchange)
    if (found === undefined) return
    const { segment, part } = found
    const { map, encryption } = segment
    const init = map && this.#inits.get(placeOf(map))
    const facts = inspectMedia(reply.body, { encryption, init })
    const media: InspectedMedia = { playlist, segment, part, exchange, reply, facts }
    this.#mark(media)
    yield ['media', media]
    yield* part === undefined ? this.#addSegment(media) : this.#addPart(media)
  }

  /** @returns whether the media is the first loaded one with the start of its segment; only in low latency */
  addStart(media: InspectedMedia): boolean {
    const { segment, playlist } = media
    const isKnown = this.#starts.has(segment.sequence)
    if (playlist.partTargetSec === undefined || isKnown || !isStart(media)) return false
    this.#starts.set(segment.sequence, media)
    keepNewest(this.#starts, MAX_STARTS)
    return true
  }

  /** Media with the start of a segment, if `addStart` kept it. */
  startOf(sequence: number): InspectedMedia | undefined {
    return this.#starts.get(sequence)
  }

  /** Keeps the date of a segment that was loaded, or of its first part. */
  #mark(media: InspectedMedia): void {
    const { segment, playlist } = media
    if (!isStart(media)) return
    const dateTimeMs = dateOf(playlist, segment)
    // A date of a hostile playlist, or one advanced by its EXTINF, may be none.
    if (dateTimeMs === undefined || Number.isNaN(new Date(dateTimeMs).getTime())) return
    this.#marks.delete(segment.discontinuitySequence)
    this.#marks.set(segment.discontinuitySequence, { media, dateTimeMs })
    keepNewest(this.#marks, MAX_MARKS)
  }

  *#addSegment(media: InspectedMedia): Iterable<Occurrence> {
    const { segment, playlist, facts } = media
    const before = this.#latestSegment
    this.#latestSegment = media
    if (segment.parts.length === 0) this.#rates.add(segment, facts.sizeBytes, playlist.targetSec)
    if (before?.segment.sequence === segment.sequence - 1) {
      yield ['sequence', { before, after: media }]
    }
    const parts = (this.#parts.get(segment.sequence) ?? []).toSorted(
      (a, b) => indexOf(a) - indexOf(b),
    )
    if (segment.parts.length > 0 && parts.length === segment.parts.length) {
      yield ['parent', { segment: media, parts }]
    }
  }

  *#addPart(media: InspectedMedia): Iterable<Occurrence> {
    const before = this.#latestPart
    this.#latestPart = media
    const { segment, playlist } = media
    if (before !== undefined && before.segment.sequence < segment.sequence) {
      this.#addRateOfParts(before.segment.sequence, playlist)
    }
    // A hinted part may arrive after those that follow it.
    for (const other of [...this.#parts.values()].flat()) {
      if (follows(other, media)) yield ['sequence', { before: other, after: media }]
      else if (follows(media, other)) yield ['sequence', { before: media, after: other }]
    }
    const parts = this.#parts.get(segment.sequence) ?? []
    this.#parts.set(segment.sequence, [...parts, media])
    keepNewest(this.#parts, MAX_OPEN_SEGMENTS)
  }

  /** Counts a segment of which all parts were loaded. */
  #addRateOfParts(sequence: number, { segments, targetSec }: ParsedPlaylist): void {
    const segment = segments.find((it) => it.sequence === sequence && isComplete(it))
    const parts = this.#parts.get(sequence) ?? []
    if (segment === undefined || parts.length !== segment.parts.length) return
    const sizeBytes = parts.reduce((sum, { facts }) => sum + facts.sizeBytes, 0)
    this.#rates.add(segment, sizeBytes, targetSec)
  }
}

/** Drops the oldest entries over the maximum. */
function keepNewest(entries: Map<unknown, unknown>, max: number): void {
  for (const oldest of entries.keys()) {
    if (entries.size <= max) return
    entries.delete(oldest)
  }
}

/** Whether media is a segment or the first part of one. */
function isStart({ segment, part }: InspectedMedia): boolean {
  return part === undefined || part === segment.parts[0]
}

/** Index of a part in its segment. */
function indexOf({ segment, part }: InspectedMedia): number {
  return part === undefined ? -1 : segment.parts.indexOf(part)
}

/** Whether two parts are neighbors. */
function follows(before: InspectedMedia, after: InspectedMedia): boolean {
  if (before.segment.sequence === after.segment.sequence)
    return indexOf(before) + 1 === indexOf(after)
  const known = after.playlist.segments.find((it) => it.sequence === before.segment.sequence)
  const isLast = known?.uri !== undefined && known.parts.at(-1)?.uri === before.part?.uri
  return before.segment.sequence + 1 === after.segment.sequence && indexOf(after) === 0 && isLast
}

/** Date of a segment: its own, or the date of an earlier one of its timeline, advanced by EXTINF. */
function dateOf({ segments }: ParsedPlaylist, { sequence }: ParsedSegment): number | undefined {
  let dateTimeMs: number | undefined
  for (const segment of segments) {
    if (segment.discontinuity) dateTimeMs = undefined
    dateTimeMs = segment.dateTimeMs ?? dateTimeMs
    if (segment.sequence === sequence) return dateTimeMs
    if (dateTimeMs !== undefined) dateTimeMs += segment.durationSec * 1000
  }
  return undefined
}

type SegmentTimes = Pick<ParsedSegment, 'sequence' | 'durationSec'>

interface SegmentSize extends SegmentTimes {
  readonly sizeBytes: number
}

/**
 * Bit rates over the segments of a rendition (RFC 8216bis 4.1, peak segment bit rate). Input: `add` segments in order;
 * a missing one interrupts the sums of a peak.
 */
class SegmentRates {
  #recent: SegmentSize[] = []
  #peakBps = 0
  #bytes = 0
  #mediaSec = 0

  get summary(): { peakBps: number; averageBps: number; mediaSec: number } {
    const averageBps = this.#mediaSec > 0 ? (this.#bytes * 8) / this.#mediaSec : 0
    return { peakBps: this.#peakBps, averageBps, mediaSec: this.#mediaSec }
  }

  add({ sequence, durationSec }: SegmentTimes, sizeBytes: number, targetSec: number): void {
    if (!(durationSec > 0)) return
    if (this.#recent.at(-1)?.sequence !== sequence - 1) this.#recent = []
    this.#bytes += sizeBytes
    this.#mediaSec += durationSec
    this.#recent.push({ sequence, durationSec, sizeBytes })
    let bytes = 0
    let sec = 0
    for (const segment of this.#recent.toReversed()) {
      bytes += segment.sizeBytes
      sec += segment.durationSec
      if (sec > MAX_SPAN * targetSec) break
      if (sec >= MIN_SPAN * targetSec) this.#peakBps = Math.max(this.#peakBps, (bytes * 8) / sec)
    }
    while (this.#recent.length > 1 && totalSec(this.#recent.slice(1)) > MAX_SPAN * targetSec) {
      this.#recent.shift()
    }
  }
}
