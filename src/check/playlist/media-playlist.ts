/**
 * Media playlist as a client sees it (RFC 8216bis 4.4.3 to 4.4.5), each fact with its line. Accepts every text: what is
 * absent or malformed is undefined, and the rules judge it by the tags.
 *
 * @module
 */
import type { Exchange } from '../exchange.ts'
import {
  decimal,
  findTag,
  findTags,
  isTag,
  parseDecimal,
  readLines,
  unquoted,
  type Tag,
} from './tag-reader.ts'

/** Byte range of a resource: EXT-X-BYTERANGE, or BYTERANGE of a part or init segment (4.4.4.2). */
interface ParsedRange {
  readonly first: number
  /** Exclusive. */
  readonly end: number
}

/** A resource, or a byte range of it. */
export interface Located {
  readonly url: string | undefined
  readonly byteRange: ParsedRange | undefined
}

export interface ParsedPart {
  readonly line: number
  readonly uri: string
  /** Absolute URL; equals `uri` if that is not a valid reference. */
  readonly url: string
  /** DURATION as written, and in seconds; NaN if it is not a number. */
  readonly duration: string
  readonly durationSec: number
  readonly independent: boolean
  readonly gap: boolean
  readonly byteRange: ParsedRange | undefined
}

/** Media segment; the last one may be incomplete, with parts alone. */
export interface ParsedSegment {
  /** Line of the URI; of the first part if the segment is incomplete. */
  readonly line: number
  /** Undefined for the segment that is not complete. */
  readonly uri: string | undefined
  readonly url: string | undefined
  readonly sequence: number
  readonly discontinuitySequence: number
  /** EXTINF as written, and in seconds; empty and the sum of the parts if the segment is incomplete. */
  readonly duration: string
  readonly durationSec: number
  readonly discontinuity: boolean
  readonly gap: boolean
  /** EXT-X-PROGRAM-DATE-TIME as written, and in milliseconds since 1970; NaN if it is not a date. */
  readonly dateTime: string | undefined
  readonly dateTimeMs: number | undefined
  readonly byteRange: ParsedRange | undefined
  /** EXT-X-MAP that applies. */
  readonly map: (Located & { readonly url: string }) | undefined
  /** METHOD of EXT-X-KEY that applies; undefined without encryption. */
  readonly encryption: string | undefined
  readonly parts: readonly ParsedPart[]
  /** Tags between the previous segment and this one's URI, in order. */
  readonly tags: readonly Tag[]
}

/** Maximum number of init segments that a client keeps; it loads an older one again. */
export const MAX_MAPS = 4

interface ServerControl {
  readonly line: number
  readonly text: string
  readonly canBlockReload: boolean
  readonly canSkipUntilSec: number | undefined
  readonly holdBackSec: number | undefined
  readonly partHoldBackSec: number | undefined
}

export interface ParsedPlaylist {
  /** Without delivery directives. */
  readonly url: string
  /** URL before redirects. */
  readonly requestedUrl: string
  readonly text: string
  readonly tags: readonly Tag[]
  readonly version: number
  /** EXT-X-TARGETDURATION; NaN if absent or malformed. */
  readonly targetSec: number
  /** EXT-X-MEDIA-SEQUENCE, EXT-X-DISCONTINUITY-SEQUENCE; 0 if absent, as players assume. */
  readonly mediaSequence: number
  readonly discontinuitySequence: number
  /** EXT-X-PART-INF: PART-TARGET; undefined without parts. */
  readonly partTargetSec: number | undefined
  readonly serverControl: ServerControl | undefined
  readonly independentSegments: boolean
  readonly ended: boolean
  /** EXT-X-SKIP: SKIPPED-SEGMENTS of a delta update; 0 in a full playlist. */
  readonly skipped: number
  readonly segments: readonly ParsedSegment[]
  /** URLs of EXT-X-PRELOAD-HINT with TYPE=PART. */
  readonly hints: readonly { readonly line: number; readonly uri: string; readonly url: string }[]
}

/** Media sequence number of a segment, and index of a part in it. */
export interface Position {
  readonly sequence: number
  readonly part: number
}

/** @returns a negative number if `a` is before `b`, 0 if they are equal */
export function comparePositions(a: Position, b: Position): number {
  return a.sequence - b.sequence || a.part - b.part
}

/** Newest segment and part; part -1 without parts. */
export function liveEdge({ segments, mediaSequence }: ParsedPlaylist): Position {
  const last = segments.at(-1)
  if (last === undefined) return { sequence: mediaSequence - 1, part: -1 }
  return { sequence: last.sequence, part: last.parts.length - 1 }
}

/** @returns `segment 1042, part 3` */
export function describeEdge(playlist: ParsedPlaylist): string {
  const { sequence, part } = liveEdge(playlist)
  return `segment ${sequence}${part < 0 ? '' : `, part ${part}`}`
}

/** Position of the media that comes next. */
export function nextMedia({ segments, mediaSequence }: ParsedPlaylist): Position {
  const last = segments.at(-1)
  if (last === undefined) return { sequence: mediaSequence, part: 0 }
  return isComplete(last)
    ? { sequence: last.sequence + 1, part: 0 }
    : { sequence: last.sequence, part: last.parts.length }
}

/** Sum of durations, in seconds. */
export function totalSec(items: readonly Pick<ParsedSegment, 'durationSec'>[]): number {
  return items.reduce((sum, { durationSec }) => sum + durationSec, 0)
}

/** Whether two segments have the same init segment; true where one has none. */
export function isSameMap(a: ParsedSegment['map'], b: ParsedSegment['map']): boolean {
  return a === undefined || b === undefined || a === b || placeOf(a) === placeOf(b)
}

export function isComplete({ uri }: ParsedSegment): boolean {
  return uri !== undefined
}

/** Whether any segment has EXT-X-PROGRAM-DATE-TIME. */
export function hasDates({ segments }: ParsedPlaylist): boolean {
  return segments.some(({ dateTime }) => dateTime !== undefined)
}

/** @returns name of a resource, or of a byte range of it: `https://example.com/a.mp4 bytes=0-187` */
export function placeOf({ url = '', byteRange }: Located): string {
  return formatPlace(url, byteRange && formatRange(byteRange))
}

/** @param range  value of a Range header */
export function formatPlace(url: string, range: string | undefined): string {
  return range === undefined ? url : `${url} ${range}`
}

/** @returns value of a Range header */
export function formatRange({ first, end }: ParsedRange): string {
  return `bytes=${first}-${end - 1}`
}

/** Newest segment or part with the URL of a request and, if it is a byte range of a resource, its range. */
export function findMedia(
  { segments }: ParsedPlaylist,
  { url, headers }: Pick<Exchange, 'url' | 'headers'>,
): { readonly segment: ParsedSegment; readonly part: ParsedPart | undefined } | undefined {
  const isRequested = ({ url: listed, byteRange }: Located) =>
    listed === url && (byteRange === undefined || headers['range'] === formatRange(byteRange))
  for (const segment of segments.toReversed()) {
    if (isRequested(segment)) return { segment, part: undefined }
    const part = segment.parts.find(isRequested)
    if (part !== undefined) return { segment, part }
  }
  return undefined
}

/**
 * Merges a delta update into the playlist that a client has (6.3.7).
 *
 * @returns the full playlist; undefined if the known one lacks a skipped segment
 */
export function mergeDelta(
  known: ParsedPlaylist,
  delta: ParsedPlaylist,
): ParsedPlaylist | undefined {
  if (delta.skipped === 0) return delta
  const last = delta.mediaSequence + delta.skipped - 1
  const skipped = known.segments.filter(
    ({ sequence, uri }) => sequence >= delta.mediaSequence && sequence <= last && uri !== undefined,
  )
  if (skipped.length !== delta.skipped) return undefined
  const discontinuities = skipped.filter(({ discontinuity }) => discontinuity).length
  return {
    ...delta,
    skipped: 0,
    segments: [
      ...skipped.map((segment) => ({ ...segment, parts: [] })),
      ...delta.segments.map((segment) => ({
        ...segment,
        discontinuitySequence: segment.discontinuitySequence + discontinuities,
      })),
    ],
  }
}

/** @param url  of the playlist, after redirects, without delivery directives */
export function parseMediaPlaylist(text: string, url: string, requestedUrl = url): ParsedPlaylist {
  const lines = readLines(text)
  const first = (name: string) => findTag(lines, name)
  const integer = (name: string) => parseDecimal(first(name)?.value)
  const mediaSequence = integer('EXT-X-MEDIA-SEQUENCE') ?? 0
  const skip = first('EXT-X-SKIP')
  const skipped = skip === undefined ? 0 : (decimal(skip, 'SKIPPED-SEGMENTS') ?? 0)
  const discontinuitySequence = integer('EXT-X-DISCONTINUITY-SEQUENCE') ?? 0
  const partInf = first('EXT-X-PART-INF')
  const control = first('EXT-X-SERVER-CONTROL')
  const reader = new SegmentReader(url, mediaSequence + skipped, discontinuitySequence)
  for (const entry of lines.entries) {
    if (isTag(entry)) reader.addTag(entry)
    else reader.end(entry.line, entry.uri)
  }
  return {
    requestedUrl,
    url,
    text,
    tags: lines.tags,
    mediaSequence,
    discontinuitySequence,
    skipped,
    version: integer('EXT-X-VERSION') ?? 1,
    targetSec: integer('EXT-X-TARGETDURATION') ?? Number.NaN,
    partTargetSec: partInf === undefined ? undefined : decimal(partInf, 'PART-TARGET'),
    serverControl: control === undefined ? undefined : readServerControl(control),
    independentSegments: first('EXT-X-INDEPENDENT-SEGMENTS') !== undefined,
    ended: first('EXT-X-ENDLIST') !== undefined,
    segments: reader.finish(),
    hints: findTags(lines, 'EXT-X-PRELOAD-HINT')
      .filter(({ attributes }) => attributes.get('TYPE') === 'PART')
      .map((tag) => {
        const uri = unquoted(tag, 'URI') ?? ''
        return { line: tag.line, uri, url: resolve(uri, url) }
      }),
  }
}

function readServerControl(tag: Tag): ServerControl {
  return {
    line: tag.line,
    text: tag.value,
    canBlockReload: tag.attributes.get('CAN-BLOCK-RELOAD') === 'YES',
    canSkipUntilSec: decimal(tag, 'CAN-SKIP-UNTIL'),
    holdBackSec: decimal(tag, 'HOLD-BACK'),
    partHoldBackSec: decimal(tag, 'PART-HOLD-BACK'),
  }
}

/** Gathers the tags and parts of a segment up to its URI. */
class SegmentReader {
  readonly #resolve: (uri: string) => string
  readonly #segments: ParsedSegment[] = []
  #sequence: number
  #discontinuitySequence: number
  #tags: Tag[] = []
  #parts: ParsedPart[] = []
  #map: ParsedSegment['map']
  #encryption: string | undefined
  /** End of the previous byte range, for ranges without offset. */
  #rangeEnd = 0
  #partRangeEnd = 0

  constructor(url: string, sequence: number, discontinuitySequence: number) {
    this.#resolve = resolver(url)
    this.#sequence = sequence
    this.#discontinuitySequence = discontinuitySequence
  }

  addTag(tag: Tag): void {
    this.#tags.push(tag)
    if (tag.name === 'EXT-X-DISCONTINUITY') this.#discontinuitySequence++
    else if (tag.name === 'EXT-X-PART') this.#addPart(tag)
    else if (tag.name === 'EXT-X-MAP') {
      const byteRange = readRange(unquoted(tag, 'BYTERANGE'), 0)
      this.#map = { url: this.#resolve(unquoted(tag, 'URI') ?? ''), byteRange }
    } else if (tag.name === 'EXT-X-KEY') {
      const method = tag.attributes.get('METHOD')
      this.#encryption = method === 'NONE' ? undefined : method
    }
  }

  end(line: number, uri: string | undefined): void {
    const find = (name: string) => findTag({ tags: this.#tags }, name)
    const extinf = find('EXTINF')?.value ?? ''
    const duration = extinf.replace(/,.*$/s, '')
    const dateTime = find('EXT-X-PROGRAM-DATE-TIME')?.value
    const byteRange = readRange(find('EXT-X-BYTERANGE')?.value, this.#rangeEnd)
    this.#rangeEnd = byteRange?.end ?? 0
    this.#segments.push({
      line,
      uri,
      duration,
      dateTime,
      byteRange,
      url: uri === undefined ? undefined : this.#resolve(uri),
      sequence: this.#sequence++,
      discontinuitySequence: this.#discontinuitySequence,
      durationSec:
        uri === undefined ? totalSec(this.#parts) : (parseDecimal(duration) ?? Number.NaN),
      discontinuity: find('EXT-X-DISCONTINUITY') !== undefined,
      gap: find('EXT-X-GAP') !== undefined,
      dateTimeMs: dateTime === undefined ? undefined : parseDate(dateTime),
      map: this.#map,
      encryption: this.#encryption,
      parts: this.#parts,
      tags: this.#tags,
    })
    this.#tags = []
    this.#parts = []
    this.#partRangeEnd = 0
  }

  /** @returns all segments; one that is not complete is the last if it has parts */
  finish(): readonly ParsedSegment[] {
    const [firstPart] = this.#parts
    if (firstPart !== undefined) this.end(firstPart.line, undefined)
    return this.#segments
  }

  #addPart(tag: Tag): void {
    const uri = unquoted(tag, 'URI') ?? ''
    const byteRange = readRange(unquoted(tag, 'BYTERANGE'), this.#partRangeEnd)
    this.#partRangeEnd = byteRange?.end ?? 0
    this.#parts.push({
      line: tag.line,
      uri,
      byteRange,
      url: this.#resolve(uri),
      duration: tag.attributes.get('DURATION') ?? '',
      durationSec: decimal(tag, 'DURATION') ?? Number.NaN,
      independent: tag.attributes.get('INDEPENDENT') === 'YES',
      gap: tag.attributes.get('GAP') === 'YES',
    })
  }
}

/** A date without time zone is UTC (4.4.4.6). */
function parseDate(text: string): number {
  return Date.parse(/(Z|[+-]\d\d(:?\d\d)?)$/.test(text) ? text : `${text}Z`)
}

/** @returns resolution of references against one base; plain names, which most are, cost no parsing */
function resolver(base: string): (uri: string) => string {
  const folder = resolve('.', base)
  return (uri) => (/^[\w-][\w.-]*$/.test(uri) ? folder + uri : resolve(uri, base))
}

export function resolve(uri: string, base: string): string {
  return URL.canParse(uri, base) ? new URL(uri, base).href : uri
}

/** Reads `<n>[@<o>]`; undefined if absent or malformed. */
function readRange(text: string | undefined, previousEnd: number): ParsedRange | undefined {
  const match = /^(\d+)(?:@(\d+))?$/.exec(text ?? '')
  if (match === null) return undefined
  const first = match[2] === undefined ? previousEnd : Number(match[2])
  return { first, end: first + Number(match[1]) }
}
