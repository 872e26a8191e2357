/**
 * A media playlist over its versions, with what was loaded of its media.
 *
 * @module
 */
import type { Exchange, Reply } from './exchange.ts'
import { inspectMedia } from './media/inspect.ts'
import type { InspectedMedia } from './media/inspected-media.ts'
import { mergeDelta } from './playlist/delta-update.ts'
import { withoutDirectives } from './playlist/directives.ts'
import { liveEdge, parseMediaPlaylist, type MediaPlaylist } from './playlist/media-playlist.ts'
import type { MultivariantPlaylist } from './playlist/multivariant-playlist.ts'
import type { SubjectName, Subjects } from './rules/rule.ts'
import { SegmentRates } from './segment-rates.ts'
import type { RenditionSummary } from './summary.ts'

/** Segments whose inspected parts are kept, for the comparison with the whole segment. */
const MAX_OPEN_SEGMENTS = 3

/** Init segments that are kept. */
const MAX_INITS = 4

export type Occurrence = { [S in SubjectName]: readonly [S, Subjects[S]] }[SubjectName]

interface Version {
  readonly playlist: MediaPlaylist
  /** Arrival of the reply, milliseconds since 1970. */
  readonly atMs: number
}

export class FollowedPlaylist {
  readonly #url: string
  readonly #rates = new SegmentRates()
  readonly #inits = new Map<string, Buffer>()
  /** Inspected parts by media sequence number. */
  readonly #parts = new Map<number, InspectedMedia[]>()
  #version: Version | undefined
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

  *addVersion(exchange: Exchange, reply: Reply): Iterable<Occurrence> {
    const before = this.#version
    const read = parseMediaPlaylist(reply.body.toString(), withoutDirectives(reply.url))
    const isDelta = read.skipped > 0
    const playlist = isDelta && before !== undefined ? mergeDelta(before.playlist, read) : read
    if (playlist === undefined || (isDelta && before === undefined)) return
    const after = { playlist, atMs: reply.endedAtMs }
    if (before !== undefined && exchange.role === 'playlist' && this.#isDeltaBefore(playlist)) {
      yield ['delta', { merged: before.playlist, full: playlist, delta: before.playlist }]
    }
    this.#version = after
    if (before?.playlist.text === playlist.text) return
    yield ['playlist', { playlist }]
    if (before === undefined) return
    const times = { beforeAtMs: before.atMs, afterAtMs: after.atMs }
    yield ['update', { before: before.playlist, after: playlist, ...times }]
  }

  /** Keeps an init segment, which the media that names it is inspected with. */
  addInit(url: string, body: Buffer): void {
    this.#inits.set(url, body)
    const [oldest] = this.#inits.keys()
    if (this.#inits.size > MAX_INITS) this.#inits.delete(oldest!)
  }

  *addMedia(exchange: Exchange, reply: Reply): Iterable<Occurrence> {
    const listed = this.#find(exchange)
    if (listed === undefined) return
    const { playlist, segment, part } = listed
    const init = segment.map === undefined ? undefined : this.#inits.get(segment.map.url)
    const facts = inspectMedia(reply.body, { encryption: segment.encryption, init })
    const media: InspectedMedia = { playlist, segment, part, exchange, reply, facts }
    yield ['media', media]
    yield* part === undefined ? this.#addSegment(media) : this.#addPart(media)
  }

  summarize(multivariant: MultivariantPlaylist | undefined): RenditionSummary | undefined {
    if (this.#version === undefined) return undefined
    return {
      playlist: this.#version.playlist,
      variants: multivariant?.variants.filter(({ url }) => url === this.#url) ?? [],
      tracks: (this.#latestSegment ?? this.#latestPart)?.facts.tracks ?? [],
      ...this.#rates.summary,
    }
  }

  *#addSegment(media: InspectedMedia): Iterable<Occurrence> {
    const { segment, playlist, facts } = media
    const before = this.#latestSegment
    this.#latestSegment = media
    this.#rates.add(segment.durationSec, facts.sizeBytes, playlist.targetSec)
    if (before?.segment.sequence === segment.sequence - 1) {
      yield ['sequence', { before, after: media }]
    }
    const parts = this.#parts.get(segment.sequence) ?? []
    if (segment.parts.length > 0 && parts.length === segment.parts.length) {
      yield ['parent', { segment: media, parts }]
    }
  }

  *#addPart(media: InspectedMedia): Iterable<Occurrence> {
    const before = this.#latestPart
    this.#latestPart = media
    const { sequence } = media.segment
    const parts = this.#parts.get(sequence) ?? []
    this.#parts.set(sequence, [...parts, media])
    const [oldest] = this.#parts.keys()
    if (this.#parts.size > MAX_OPEN_SEGMENTS) this.#parts.delete(oldest!)
    if (before !== undefined && follows(before, media)) yield ['sequence', { before, after: media }]
  }

  /** Listing of the media of an exchange in the newest version. */
  #find({ url }: Exchange) {
    const playlist = this.newest
    for (const segment of playlist?.segments.toReversed() ?? []) {
      if (segment.url === url) return { playlist: playlist!, segment, part: undefined }
      const part = segment.parts.find((part) => part.url === url)
      if (part !== undefined) return { playlist: playlist!, segment, part }
    }
    return undefined
  }

  /** Whether the newest version was merged from a delta update and has the edge of the full playlist. */
  #isDeltaBefore(full: MediaPlaylist): boolean {
    const { newest } = this
    if (newest === undefined || !newest.tags.some(({ name }) => name === 'EXT-X-SKIP')) return false
    const [a, b] = [liveEdge(newest), liveEdge(full)]
    return a.sequence === b.sequence && a.part === b.part
  }
}

/** Index of a part in its segment. */
function indexOf({ segment, part }: InspectedMedia): number {
  return segment.parts.findIndex(({ uri }) => uri === part?.uri)
}

/** Whether two parts are neighbors. */
function follows(before: InspectedMedia, after: InspectedMedia): boolean {
  if (before.segment.sequence === after.segment.sequence)
    return indexOf(before) + 1 === indexOf(after)
  const known = after.playlist.segments.find((it) => it.sequence === before.segment.sequence)
  const isLast = known?.uri !== undefined && known.parts.at(-1)?.uri === before.part?.uri
  return before.segment.sequence + 1 === after.segment.sequence && indexOf(after) === 0 && isLast
}
