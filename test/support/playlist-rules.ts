/**
 * The rules that a live media playlist has to keep from one version to the next (RFC 8216bis 4.4 and 6.2), without
 * those of low latency. Takes every version of a playlist in order, and returns the violated rules.
 *
 * @module
 */

interface ListedSegment {
  readonly uri: string
  /** EXTINF as text: the duration of a segment never changes, not even in its last decimal. */
  readonly duration: string
  readonly discontinuity: boolean
  readonly gap: boolean
  readonly dateTime: string | undefined
}

interface ListedPlaylist {
  readonly tags: readonly { name: string; value: string }[]
  readonly targetSec: number
  readonly mediaSequence: number
  readonly discontinuitySequence: number
  readonly ended: boolean
  /** Attributes of each EXT-X-DATERANGE, as written. */
  readonly dateRanges: readonly ReadonlyMap<string, string>[]
  readonly segments: readonly ListedSegment[]
}

const MULTIVARIANT_TAGS = new Set(['EXT-X-STREAM-INF', 'EXT-X-MEDIA', 'EXT-X-I-FRAME-STREAM-INF'])

/** The smallest EXT-X-VERSION that knows each tag (RFC 8216bis 8). */
const VERSION_OF_TAG: Readonly<Record<string, number>> = { 'EXT-X-BYTERANGE': 4, 'EXT-X-MAP': 6 }

/** Rounding of PROGRAM-DATE-TIME and EXTINF. */
const ROUNDING_SEC = 0.002

/** Max difference between dates and EXTINF per second: dates follow the wall clock, media the encoder's clock. */
const MAX_SLEW = 0.001

export interface PlaylistRulesOptions {
  /** Whether a segment can be decoded alone; without it nothing is said of INDEPENDENT-SEGMENTS. */
  readonly isIndependent?: (uri: string) => boolean
  /** Whether the first version checked is the first one of a stream whose encoder is connected. */
  readonly watchedFromStart?: boolean
}

/** Number of segments with which a live playlist appears. */
const SEGMENTS_AT_START = 3

/** `check` each version once, in order. */
export class PlaylistRules {
  readonly #options: PlaylistRulesOptions
  #previous: ListedPlaylist | undefined
  #grewAtMs: number | undefined

  constructor(options: PlaylistRulesOptions = {}) {
    this.#options = options
  }

  /**
   * @param nowMs  when the version was published; without it nothing is said of rule 9
   * @returns the rules it breaks, numbered as in the checklist; empty where it keeps all
   */
  check(text: string, nowMs?: number): string[] {
    const playlist = parse(text)
    const broken = [
      ...checkSyntax(text, playlist),
      ...checkSegments(playlist),
      ...checkDateRanges(playlist),
      ...this.#checkIndependence(playlist),
    ]
    if (this.#previous === undefined) broken.push(...this.#checkStart(playlist))
    else {
      broken.push(...checkChange(this.#previous, playlist))
      broken.push(...checkDateRangeChange(this.#previous, playlist))
    }
    broken.push(...this.#checkPace(playlist, nowMs))
    this.#previous = playlist
    return broken
  }

  /** Players start three target durations before the end (RFC 8216bis 6.3.3). */
  #checkStart({ segments, ended }: ListedPlaylist): string[] {
    const isLong = segments.length >= SEGMENTS_AT_START || ended
    return this.#options.watchedFromStart === true
      ? check([isLong], `6.3.3: the playlist appeared with ${segments.length} segments`)
      : []
  }

  /** The tag applies to every segment that the version lists (RFC 8216bis 4.4.2.1). */
  #checkIndependence({ tags, segments }: ListedPlaylist): string[] {
    const isClaimed = tags.some(({ name }) => name === 'EXT-X-INDEPENDENT-SEGMENTS')
    const { isIndependent } = this.#options
    if (!isClaimed || isIndependent === undefined) return []
    return segments.flatMap(({ uri, gap }) =>
      check(
        [gap || isIndependent(uri)],
        `53: INDEPENDENT-SEGMENTS, but ${uri} needs another segment`,
      ),
    )
  }

  #checkPace(playlist: ListedPlaylist, nowMs: number | undefined): string[] {
    const previous = this.#previous
    const grew = previous === undefined || nextSequence(playlist) > nextSequence(previous)
    if (!grew || nowMs === undefined) return []
    const waitedMs = nowMs - (this.#grewAtMs ?? nowMs)
    this.#grewAtMs = nowMs
    return check(
      [waitedMs <= 1500 * playlist.targetSec],
      `9: a new segment came after ${waitedMs} ms, target ${playlist.targetSec} s`,
    )
  }
}

function checkSyntax(text: string, { tags, segments }: ListedPlaylist): string[] {
  const names = tags.map(({ name }) => name)
  const count = (name: string) => names.filter((other) => other === name).length
  const target = tags.find(({ name }) => name === 'EXT-X-TARGETDURATION')?.value ?? ''
  const version = Number(tags.find(({ name }) => name === 'EXT-X-VERSION')?.value ?? 1)
  const needed = Math.max(
    segments.some(({ duration }) => duration.includes('.')) ? 3 : 1,
    ...names.map((name) => VERSION_OF_TAG[name] ?? 1),
  )
  const firstSegment = names.indexOf('EXTINF')
  const sequenceAt = names.indexOf('EXT-X-DISCONTINUITY-SEQUENCE')
  return [
    ...check([text.startsWith('#EXTM3U\n')], '1: does not start with #EXTM3U'),
    ...check([!names.some((name) => MULTIVARIANT_TAGS.has(name))], '1: multivariant tags'),
    ...check([version === needed], `2: version ${version} where ${needed} is needed`),
    ...check(
      [count('EXT-X-TARGETDURATION') === 1, /^\d+$/.test(target)],
      '3: not one TARGETDURATION, a whole number',
    ),
    ...check([count('EXT-X-MEDIA-SEQUENCE') === 1], '5: not one MEDIA-SEQUENCE'),
    ...check(
      [sequenceAt >= 0, firstSegment < 0 || sequenceAt < firstSegment],
      '6: no DISCONTINUITY-SEQUENCE before the first segment',
    ),
    ...check([count('EXT-X-PLAYLIST-TYPE') === 0], '7: PLAYLIST-TYPE in a live playlist'),
    ...check(
      [count('EXT-X-ENDLIST') <= 1, !names.slice(0, -1).includes('EXT-X-ENDLIST')],
      '16: ENDLIST is not the last line',
    ),
  ]
}

function checkSegments({ segments, targetSec }: ListedPlaylist): string[] {
  return segments.flatMap((segment, index) => {
    const before = segments[index - 1]
    const gapSec = before === undefined ? 0 : startSec(segment) - endSec(before)
    const toleranceSec = ROUNDING_SEC + MAX_SLEW * Number(before?.duration ?? 0)
    return [
      ...check(
        [Math.round(Number(segment.duration)) <= targetSec, Number(segment.duration) > 0],
        `4: ${segment.uri} lasts ${segment.duration} s, target ${targetSec} s`,
      ),
      ...check([segment.dateTime !== undefined], `12: ${segment.uri} has no PROGRAM-DATE-TIME`),
      ...check(
        [segment.discontinuity || Math.abs(gapSec) <= toleranceSec],
        `11: ${segment.uri} starts ${gapSec} s after the end before it, without DISCONTINUITY`,
      ),
      ...check([gapSec >= -toleranceSec], `12: ${segment.uri} overlaps the one before`),
    ]
  })
}

function checkDateRanges({ dateRanges, segments }: ListedPlaylist): string[] {
  const ids = dateRanges.map((range) => range.get('ID'))
  const isDated = segments.some(({ dateTime }) => dateTime !== undefined)
  return [
    ...check([dateRanges.length === 0 || isDated], '14: DATERANGE without PROGRAM-DATE-TIME'),
    ...check([new Set(ids).size === ids.length], `14: an ID of ${ids.join()} comes twice`),
    ...dateRanges.flatMap((range) => {
      const { sections, seconds } = classify(range)
      return check(
        [
          /^"[^"]+"$/.test(range.get('ID') ?? ''),
          /^"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,}Z"$/.test(range.get('START-DATE') ?? ''),
          sections.every((value) => /^0x([0-9A-F]{2})+$/.test(value)),
          seconds.every((value) => /^\d+(\.\d+)?$/.test(value)),
        ],
        `14: ${describeRange(range)} is not well formed`,
      )
    }),
  ]
}

function checkDateRangeChange(before: ListedPlaylist, after: ListedPlaylist): string[] {
  const [oldest] = after.segments
  return before.dateRanges.flatMap((range) => {
    const now = after.dateRanges.find((other) => other.get('ID') === range.get('ID'))
    const isSame = [...range].every(([name, value]) => now?.get(name) === value)
    const isOver = oldest === undefined || dateRangeEndSec(range) <= startSec(oldest)
    return now === undefined
      ? check([isOver], `15: ${describeRange(range)} was removed before it was over`)
      : check([isSame], `14: ${describeRange(range)} changed to ${describeRange(now)}`)
  })
}

function classify(range: ReadonlyMap<string, string>): { sections: string[]; seconds: string[] } {
  const valuesOf = (pattern: RegExp) =>
    [...range].flatMap(([name, value]) => (pattern.test(name) ? value : []))
  return { sections: valuesOf(/^SCTE35-/), seconds: valuesOf(/DURATION$/) }
}

/** End of a date range; without DURATION it has none. */
function dateRangeEndSec(range: ReadonlyMap<string, string>): number {
  const startSec = Date.parse((range.get('START-DATE') ?? '').replaceAll('"', '')) / 1000
  return startSec + Number(range.get('DURATION') ?? Infinity)
}

function describeRange(range: ReadonlyMap<string, string>): string {
  return [...range].map((attribute) => attribute.join('=')).join(',')
}

function checkChange(before: ListedPlaylist, after: ListedPlaylist): string[] {
  const removed = after.mediaSequence - before.mediaSequence
  const gone = before.segments.slice(0, Math.max(0, removed))
  const discontinuities = gone.filter(({ discontinuity }) => discontinuity).length
  // A segment that came and went between two versions was in no playlist.
  const isAllKnown = removed <= before.segments.length
  const kept = before.segments.slice(Math.max(0, removed))
  const totalSec = after.segments.reduce((sum, { duration }) => sum + Number(duration), 0)
  return [
    ...check([after.targetSec === before.targetSec], '3: TARGETDURATION changed'),
    ...check([removed >= 0], '5: MEDIA-SEQUENCE went back'),
    ...kept.flatMap((segment, index) => {
      const now = after.segments[index]
      return check(
        [now !== undefined && JSON.stringify(now) === JSON.stringify(segment)],
        `5: ${segment.uri} was ${JSON.stringify(segment)} and is ${JSON.stringify(now)}`,
      )
    }),
    ...check(
      [
        after.discontinuitySequence === before.discontinuitySequence + discontinuities ||
          (!isAllKnown &&
            after.discontinuitySequence > before.discontinuitySequence + discontinuities),
      ],
      `6: DISCONTINUITY-SEQUENCE went from ${before.discontinuitySequence} to ${after.discontinuitySequence} as ${discontinuities} DISCONTINUITY left`,
    ),
    ...check(
      [removed === 0 || after.ended || totalSec >= 3 * after.targetSec - ROUNDING_SEC],
      `8: segments left, and only ${totalSec} s remain`,
    ),
    ...check([!before.ended || after.ended], '16: ENDLIST was taken back'),
    ...check(
      [!before.ended || nextSequence(after) === nextSequence(before)],
      '16: a segment was added after ENDLIST',
    ),
  ]
}

export function check(conditions: readonly boolean[], broken: string): string[] {
  return conditions.every(Boolean) ? [] : [broken]
}

function nextSequence({ mediaSequence, segments }: ListedPlaylist): number {
  return mediaSequence + segments.length
}

function startSec({ dateTime }: ListedSegment): number {
  return Date.parse(dateTime ?? '') / 1000
}

function endSec(segment: ListedSegment): number {
  return startSec(segment) + Number(segment.duration)
}

function parse(text: string): ListedPlaylist {
  const tags: { name: string; value: string }[] = []
  const segments: ListedSegment[] = []
  let own = new Map<string, string>()
  for (const line of text.split('\n').filter((text) => text !== '')) {
    if (line.startsWith('#')) {
      const [, name = '', value = ''] = /^#([^:]+):?(.*)$/.exec(line) ?? []
      tags.push({ name, value })
      own.set(name, value)
      continue
    }
    segments.push({
      uri: line,
      duration: (own.get('EXTINF') ?? '').replace(/,.*$/, ''),
      discontinuity: own.has('EXT-X-DISCONTINUITY'),
      gap: own.has('EXT-X-GAP'),
      dateTime: own.get('EXT-X-PROGRAM-DATE-TIME'),
    })
    own = new Map()
  }
  const number = (wanted: string) =>
    Number(tags.find(({ name }) => name === wanted)?.value ?? Number.NaN)
  return {
    tags,
    segments,
    targetSec: number('EXT-X-TARGETDURATION'),
    mediaSequence: number('EXT-X-MEDIA-SEQUENCE'),
    discontinuitySequence: number('EXT-X-DISCONTINUITY-SEQUENCE'),
    dateRanges: tags
      .filter(({ name }) => name === 'EXT-X-DATERANGE')
      .map(({ value }) => parseAttributes(value)),
    ended: tags.some(({ name }) => name === 'EXT-X-ENDLIST'),
  }
}

export function parseAttributes(list: string): ReadonlyMap<string, string> {
  const attributes = list.matchAll(/([A-Z0-9-]+)=("[^"]*"|[^",]*)/g)
  return new Map([...attributes].map(([, name = '', value = '']) => [name, value]))
}
