/**
 * A media playlist over its versions, with what was loaded of its media.
 *
 * @module
 */
import { Availability } from './availability.ts'
import type { Exchange, Reply } from './exchange.ts'
import { inspectMedia } from './media/inspect.ts'
import type { InspectedMedia } from './media/inspected-media.ts'
import { mergeDelta } from './playlist/delta-update.ts'
import { withoutDirectives } from './playlist/directives.ts'
import { formatPlace, formatRange } from './playlist/byte-range.ts'
import { findMedia } from './playlist/find-media.ts'
import {
  isComplete,
  liveEdge,
  MAX_MAPS,
  nextMedia,
  parseMediaPlaylist,
  type ListedSegment,
  type MediaPlaylist,
} from './playlist/media-playlist.ts'
import type { MultivariantPlaylist } from './playlist/multivariant-playlist.ts'
import { findTag } from './playlist/tag-reader.ts'
import type { Quiet, SubjectName, Subjects, Version } from './rules/rule.ts'
import { SegmentRates } from './segment-rates.ts'
import type { DatedMedia, RenditionSummary } from './summary.ts'

/** Segments whose inspected parts are kept, for the comparison with the whole segment. */
const MAX_OPEN_SEGMENTS = 3

/** Segments whose starts are kept, for the comparison with other playlists: renditions of low latency are as far. */
const MAX_STARTS = 3

/** Timelines whose newest media is kept, for the comparison with other renditions. */
const MAX_MARKS = 3

export type Occurrence = { [S in SubjectName]: readonly [S, Subjects[S]] }[SubjectName]

/** Versions whose text is kept, to know an older one again. */
const MAX_TEXTS = 8

/** Longest way of a reply that was held until there was something new. */
const MAX_LATENCY_MS = 500

export class FollowedPlaylist {
  readonly #url: string
  readonly #rates = new SegmentRates()
  readonly #availability = new Availability()
  /** By URL and byte range. */
  readonly #inits = new Map<string, Buffer>()
  /** Inspected parts by media sequence number. */
  readonly #parts = new Map<number, InspectedMedia[]>()
  readonly #marks = new Map<number, DatedMedia>()
  /** By media sequence number. */
  readonly #starts = new Map<number, InspectedMedia>()
  /** Texts of the last versions, newest last. */
  #texts: string[] = []
  #version: Version | undefined
  readonly #segmentClock = new QuietClock()
  readonly #partClock = new QuietClock()
  #latestSegment: InspectedMedia | undefined
  #latestPart: InspectedMedia | undefined

  /** @param url  without directives */
  constructor(url: string) {
    this.#url = url
  }

  get newest(): MediaPlaylist | undefined {
    return this.#version?.playlist
  }

  get version(): Version | undefined {
    return this.#version
  }

  /** Whether the request asks for media that still has to be available when its reply begins. */
  isDue({ url }: Exchange, { headersAtMs }: Reply): boolean {
    return this.#availability.isDue(url, headersAtMs)
  }

  *addVersion(exchange: Exchange, reply: Reply): Iterable<Occurrence> {
    const before = this.#version
    const text = reply.body.toString()
    const isSame = before?.playlist.text === text
    const playlist = isSame ? before.playlist : this.#parse(text, reply)
    if (playlist === undefined) return
    if (before !== undefined && !isSame) {
      const isKnown = this.#texts.includes(text)
      if (isOlder(playlist, before.playlist, isKnown)) {
        // A reply that was overtaken by another says nothing of the server.
        if (exchange.sentAtMs < before.atMs) return
        yield ['older', { newest: before.playlist, older: playlist }]
        return
      }
      if (exchange.role === 'playlist' && this.#isDeltaBefore(playlist)) {
        yield ['delta', { merged: before.playlist, full: playlist }]
      }
    }
    const times = { sentAtMs: exchange.sentAtMs, atMs: reply.endedAtMs }
    this.#version = { playlist, ...times, ...(before && { before: withoutBefore(before) }) }
    this.#availability.add(playlist, exchange.sentAtMs)
    if (!isSame) {
      this.#texts = [...this.#texts, text].slice(-MAX_TEXTS)
      yield ['text', { playlist }]
      yield ['playlist', { playlist }]
    }
    if (before !== undefined && !isSame) {
      const times = { beforeAtMs: before.atMs, afterAtMs: reply.endedAtMs }
      yield ['update', { before: before.playlist, after: playlist, ...times }]
    }
    const next = nextMedia(playlist)
    const withoutSegmentMs = this.#segmentClock.add(next.sequence, exchange, reply)
    const withoutPartMs = this.#partClock.add(`${next.sequence}.${next.part}`, exchange, reply)
    const quiet = { withoutSegmentMs, withoutPartMs }
    yield ['reload', { exchange, reply, playlist, before: before?.playlist, ...quiet }]
  }

  /** @returns the full playlist; undefined for a delta update that skips what is not known */
  #parse(text: string, { url }: Reply): MediaPlaylist | undefined {
    const read = parseMediaPlaylist(text, withoutDirectives(url), this.#url)
    if (read.skipped === 0) return read
    return this.newest === undefined ? undefined : mergeDelta(this.newest, read)
  }

  /** Keeps an init segment, which the media that names it is inspected with. */
  addInit({ url, headers }: Exchange, { body }: Reply): void {
    this.#inits.set(formatPlace(url, headers['range']), body)
    const [oldest] = this.#inits.keys()
    if (this.#inits.size > MAX_MAPS) this.#inits.delete(oldest!)
  }

  *addMedia(exchange: Exchange, reply: Reply): Iterable<Occurrence> {
    const playlist = this.newest
    const found = playlist && findMedia(playlist, exchange)
    if (playlist === undefined || found === undefined) return
    const { segment, part } = found
    const { map, encryption } = segment
    const range = map?.byteRange && formatRange(map.byteRange)
    const init = map && this.#inits.get(formatPlace(map.url, range))
    const facts = inspectMedia(reply.body, { encryption, init })
    const media: InspectedMedia = { playlist, segment, part, exchange, reply, facts }
    this.#mark(media)
    yield ['media', media]
    yield* part === undefined ? this.#addSegment(media) : this.#addPart(media)
  }

  /** @returns whether the media is the first with the start of its segment that came; only in low latency */
  addStart(media: InspectedMedia): boolean {
    const { segment, playlist } = media
    const isKnown = this.#starts.has(segment.sequence)
    if (playlist.partTargetSec === undefined || isKnown || !isStart(media)) return false
    this.#starts.set(segment.sequence, media)
    const [oldest] = this.#starts.keys()
    if (this.#starts.size > MAX_STARTS) this.#starts.delete(oldest!)
    return true
  }

  startOf(sequence: number): InspectedMedia | undefined {
    return this.#starts.get(sequence)
  }

  summarize(multivariant: MultivariantPlaylist | undefined): RenditionSummary | undefined {
    if (this.#version === undefined) return undefined
    return {
      playlist: this.#version.playlist,
      variants: multivariant?.variants.filter(({ url }) => url === this.#url) ?? [],
      alternatives: multivariant?.renditions.filter(({ url }) => url === this.#url) ?? [],
      marks: this.#marks,
      tracks: (this.#latestSegment ?? this.#latestPart)?.facts.tracks ?? [],
      ...this.#rates.summary,
    }
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
    const [oldest] = this.#marks.keys()
    if (this.#marks.size > MAX_MARKS) this.#marks.delete(oldest!)
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
    // A hinted part may arrive after those behind it.
    for (const other of [...this.#parts.values()].flat()) {
      if (follows(other, media)) yield ['sequence', { before: other, after: media }]
      else if (follows(media, other)) yield ['sequence', { before: media, after: other }]
    }
    const parts = this.#parts.get(segment.sequence) ?? []
    this.#parts.set(segment.sequence, [...parts, media])
    const [oldest] = this.#parts.keys()
    if (this.#parts.size > MAX_OPEN_SEGMENTS) this.#parts.delete(oldest!)
  }

  /** Counts a segment of which all parts were loaded. */
  #addRateOfParts(sequence: number, { segments, targetSec }: MediaPlaylist): void {
    const segment = segments.find((it) => it.sequence === sequence && isComplete(it))
    const parts = this.#parts.get(sequence) ?? []
    if (segment === undefined || parts.length !== segment.parts.length) return
    const sizeBytes = parts.reduce((sum, { facts }) => sum + facts.sizeBytes, 0)
    this.#rates.add(segment, sizeBytes, targetSec)
  }

  /** Whether the newest version was merged from a delta update and has the edge of the full playlist. */
  #isDeltaBefore(full: MediaPlaylist): boolean {
    const { newest } = this
    if (newest === undefined || findTag(newest, 'EXT-X-SKIP') === undefined) return false
    const [a, b] = [liveEdge(newest), liveEdge(full)]
    return a.sequence === b.sequence && a.part === b.part
  }
}

/** The version without the one before, which would keep all of them in memory. */
function withoutBefore({ playlist, sentAtMs, atMs }: Version): Omit<Version, 'before'> {
  return { playlist, sentAtMs, atMs }
}

/** Measures how long something has been the newest. */
class QuietClock {
  #newest: string | number | undefined
  #arrivedMs = 0
  #quietMs = 0

  /** @returns time for which the newest known before this reply stayed the newest */
  add(newest: string | number, { role, sentAtMs }: Exchange, reply: Reply): Quiet {
    const before = this.#quietMs
    const isNew = newest !== this.#newest
    const wasHeld = role === 'blocking' && reply.headersAtMs - sentAtMs > MAX_LATENCY_MS
    // A reply with something new proves that there was nothing before only if it was held for it.
    const heldUntilMs = wasHeld ? reply.headersAtMs - MAX_LATENCY_MS : this.#arrivedMs + before
    const provedMs = isNew ? heldUntilMs : sentAtMs
    const now = this.#newest === undefined ? 0 : Math.max(before, provedMs - this.#arrivedMs)
    this.#quietMs = isNew ? 0 : now
    if (isNew) this.#arrivedMs = reply.endedAtMs
    this.#newest = newest
    return [before, now]
  }
}

/** Whether a playlist is a version from before the newest one, not one of a server that began anew. */
function isOlder(playlist: MediaPlaylist, newest: MediaPlaylist, isKnown: boolean): boolean {
  const [next, newestNext] = [nextMedia(playlist), nextMedia(newest)]
  const ahead = newestNext.sequence - next.sequence || newestNext.part - next.part
  if (ahead < 0) return false
  if (ahead === 0 || isKnown) return isKnown
  const first = newest.segments[0]?.sequence ?? 0
  return playlist.segments.some(({ sequence, url, duration, parts: [part] }) => {
    const known = newest.segments[sequence - first]
    const isSameSegment = url !== undefined && known?.url === url && known.duration === duration
    return isSameSegment || (part !== undefined && known?.parts[0]?.url === part.url)
  })
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
function dateOf({ segments }: MediaPlaylist, { sequence }: ListedSegment): number | undefined {
  let dateTimeMs: number | undefined
  for (const segment of segments) {
    if (segment.discontinuity) dateTimeMs = undefined
    dateTimeMs = segment.dateTimeMs ?? dateTimeMs
    if (segment.sequence === sequence) return dateTimeMs
    if (dateTimeMs !== undefined) dateTimeMs += segment.durationSec * 1000
  }
  return undefined
}
