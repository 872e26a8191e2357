/**
 * The rules that a low-latency media playlist has to keep from one version to the next, beside those of
 * `playlist-rules.ts` (RFC 8216bis 4.4.3.7, 4.4.3.8, 4.4.4.9, 4.4.5 and appendix B.1).
 *
 * @module
 */
import { check, parseAttributes } from './playlist-rules.ts'

export interface ListedPart {
  readonly uri: string
  /** DURATION as text. */
  readonly duration: string
  readonly independent: boolean
  readonly gap: boolean
}

interface ListedSegment {
  readonly mediaSequence: number
  /** Undefined for the segment that is not complete. */
  readonly uri: string | undefined
  readonly durationSec: number
  readonly gap: boolean
  readonly discontinuity: boolean
  readonly dateTime: string | undefined
  readonly parts: readonly ListedPart[]
}

export interface LowLatencyPlaylist {
  readonly targetSec: number
  readonly serverControl: string | undefined
  readonly partTarget: string | undefined
  readonly ended: boolean
  readonly skipped: number
  /** Listed segments; the last one may have parts only. */
  readonly segments: readonly ListedSegment[]
  readonly hints: readonly string[]
  /** Whether an EXT-X-DISCONTINUITY is listed after the last segment and its parts. */
  readonly endsTimeline: boolean
  /** LAST-MSN and LAST-PART by URI. */
  readonly reports: ReadonlyMap<string, string>
  /** Breaches of the order of tags. */
  readonly disorder: readonly string[]
}

/** Durations are printed in units of 10 µs. */
const ROUNDING_SEC = 0.000_005

/** Shortest part that is not exempt, in PART-TARGET. */
const MIN_SHARE = 0.85

export interface LowLatencyRulesOptions {
  /** Number of other media playlists, each of which has a report. */
  readonly otherPlaylists?: number
  /** Whether the parts have the durations of a packager; default true. */
  readonly realDurations?: boolean
}

/** `check` each version of a full playlist once, in order. */
export class LowLatencyRules {
  readonly #options: LowLatencyRulesOptions
  readonly #parts = new Map<string, string>()
  #previous: LowLatencyPlaylist | undefined

  constructor(options: LowLatencyRulesOptions = {}) {
    this.#options = options
  }

  /** @returns the rules it breaks, numbered as in the checklist; empty where it keeps all */
  check(text: string): string[] {
    const playlist = parseLowLatency(text)
    const previous = this.#previous
    this.#previous = playlist
    return [
      ...playlist.disorder,
      ...checkControl(playlist),
      ...checkEdge(playlist, this.#options.otherPlaylists),
      ...playlist.segments.flatMap((segment) =>
        checkParts(segment, playlist, this.#options.realDurations ?? true),
      ),
      ...this.#checkIdentity(playlist),
      ...(previous === undefined ? [] : checkChange(previous, playlist)),
    ]
  }

  /** A part never changes, except that it may become a gap. */
  #checkIdentity({ segments }: LowLatencyPlaylist): string[] {
    return segments.flatMap(({ mediaSequence, parts }) =>
      parts.flatMap(({ uri, duration }, index) => {
        const now = `${mediaSequence}/${index} ${duration}`
        const known = this.#parts.get(uri) ?? now
        this.#parts.set(uri, now)
        return check([known === now], `10: part ${uri} was ${known} and is ${now}`)
      }),
    )
  }
}

function checkControl({ serverControl = '', partTarget = '', targetSec }: LowLatencyPlaylist) {
  const control = parseAttributes(serverControl)
  const number = (name: string) => Number(control.get(name) ?? Number.NaN)
  const skipUntil = control.get('CAN-SKIP-UNTIL')
  return [
    ...check([Number(partTarget) > 0], '20: no PART-INF'),
    ...check([control.get('CAN-BLOCK-RELOAD') === 'YES'], 'B.1: no CAN-BLOCK-RELOAD'),
    ...check([number('HOLD-BACK') >= 3 * targetSec], '34: HOLD-BACK under 3 target durations'),
    ...check(
      [number('PART-HOLD-BACK') >= 3 * Number(partTarget) - 1e-9],
      '35: PART-HOLD-BACK under 3 part targets',
    ),
    ...check(
      [skipUntil === undefined || Number(skipUntil) >= 6 * targetSec],
      '36: CAN-SKIP-UNTIL under 6 target durations',
    ),
  ]
}

function checkEdge(playlist: LowLatencyPlaylist, otherPlaylists: number | undefined): string[] {
  const { ended, hints, reports, endsTimeline } = playlist
  if (ended) {
    const isOver = hints.length === 0 && reports.size === 0 && !endsTimeline
    return check([isOver], '16: hint, report or DISCONTINUITY after the last segment')
  }
  return [
    ...check([hints.length === 1], `29: ${hints.length} hints`),
    ...check(
      [otherPlaylists === undefined || reports.size === otherPlaylists],
      `48: ${reports.size} reports of ${otherPlaylists} playlists`,
    ),
  ]
}

function checkParts(
  segment: ListedSegment,
  { partTarget = '', segments, targetSec }: LowLatencyPlaylist,
  realDurations: boolean,
): string[] {
  const { parts, uri, durationSec, mediaSequence } = segment
  if (parts.length === 0) return []
  const isComplete = uri !== undefined
  const sumSec = parts.reduce((sum, { duration }) => sum + Number(duration), 0)
  const laterSec = segments
    .filter((later) => later.mediaSequence > mediaSequence)
    .reduce(
      (sum, later) => sum + (later.uri === undefined ? partsSec(later) : later.durationSec),
      0,
    )
  return [
    ...check([segment.dateTime !== undefined], `24: no date before the parts of ${mediaSequence}`),
    ...check(
      [!isComplete || Math.abs(sumSec - durationSec) <= (parts.length + 1) * ROUNDING_SEC],
      `23: the parts of ${uri} last ${sumSec} s, EXTINF ${durationSec}`,
    ),
    ...check(
      [laterSec < 3 * targetSec + 0.001],
      `25: the parts of ${mediaSequence} are listed too long`,
    ),
    ...check(
      [!segment.gap || parts.every(({ gap }) => gap)],
      `17: ${uri} is a gap, and not all of its parts`,
    ),
    ...parts.flatMap((part, index) => {
      const isLast = isComplete && index === parts.length - 1
      const isExempt = part.independent || part.gap || parts[index + 1]?.gap === true || isLast
      const isNewest = !isComplete && index === parts.length - 1
      const isLong = Number(part.duration) >= MIN_SHARE * Number(partTarget) - 1e-9
      return [
        ...check(
          [Number(part.duration) <= Number(partTarget)],
          `21: ${part.uri} lasts ${part.duration} s, PART-TARGET ${partTarget}`,
        ),
        ...check(
          [!realDurations || isLong || isExempt || isNewest],
          `22: ${part.uri} lasts ${part.duration} s, PART-TARGET ${partTarget}`,
        ),
        ...check([!part.gap || !part.independent], `27: ${part.uri} is a gap and INDEPENDENT`),
      ]
    }),
  ]
}

function partsSec({ parts }: ListedSegment): number {
  return parts.reduce((sum, { duration }) => sum + Number(duration), 0)
}

function checkChange(before: LowLatencyPlaylist, after: LowLatencyPlaylist): string[] {
  const [hint] = before.hints
  const known = new Set(before.segments.flatMap(({ parts }) => parts.map(({ uri }) => uri)))
  const added = after.segments.flatMap(({ parts }) =>
    parts.filter(({ uri }) => !known.has(uri)).map(({ uri }) => uri),
  )
  const open = before.segments.at(-1)
  const isStarted = open !== undefined && open.uri === undefined
  const next = after.segments.find(
    ({ mediaSequence }) => mediaSequence === (before.segments.at(-1)?.mediaSequence ?? -1) + 1,
  )
  const now = after.segments.find(({ mediaSequence }) => mediaSequence === open?.mediaSequence)
  return [
    ...check([after.partTarget === before.partTarget], '20: PART-INF changed'),
    ...check([after.serverControl === before.serverControl], '33: SERVER-CONTROL changed'),
    ...check(
      [added.length === 0 || hint === undefined || added[0] === hint],
      `30: ${added[0]} came where ${hint} was hinted`,
    ),
    ...check(
      [!before.endsTimeline || next === undefined || next.discontinuity],
      '7962: the DISCONTINUITY that preceded the hint is gone',
    ),
    ...check(
      [
        !isStarted ||
          (now?.dateTime === open.dateTime && now?.discontinuity === open.discontinuity),
      ],
      '24: date or DISCONTINUITY of a segment changed with its completion',
    ),
    ...check(
      [!isStarted || open.parts.every(({ uri }, index) => now?.parts[index]?.uri === uri)],
      '10: parts of the open segment are gone',
    ),
  ]
}

/** @returns the differences of the reports of one moment; empty where all playlists have the same newest part */
export function compareReports(texts: ReadonlyMap<string, string>): string[] {
  const positions = new Map(
    [...texts].map(([uri, text]) => [uri, ownReport(parseLowLatency(text))]),
  )
  const [first] = positions.values()
  return [...texts].flatMap(([uri, text]) => {
    const { reports, ended } = parseLowLatency(text)
    if (ended) return []
    const others = [...positions].filter(([other]) => other !== uri)
    return [
      ...check([positions.get(uri) === first], `48: ${uri} is at ${positions.get(uri)}`),
      ...others.flatMap(([other, position]) =>
        check([reports.get(other) === position], `48: ${uri} reports ${reports.get(other)}`),
      ),
    ]
  })
}

function ownReport({ segments }: LowLatencyPlaylist): string {
  const last = segments.at(-1)
  return `${last?.mediaSequence} ${(last?.parts.length ?? 0) - 1}`
}

/** Full playlist that a client makes of a delta update and the full playlist it has (RFC 8216bis 6.3.7). */
export function mergeDelta(known: string, delta: string): string {
  const skip = /^#EXT-X-SKIP:SKIPPED-SEGMENTS=(\d+)\n/m.exec(delta)
  if (skip === null) return delta
  const sequence = (text: string) => Number(/MEDIA-SEQUENCE:(\d+)/.exec(text)?.[1])
  const first = sequence(delta) - sequence(known)
  const blocks = segmentBlocks(known).slice(first, first + Number(skip[1]))
  if (blocks.length !== Number(skip[1])) throw new Error('the known playlist is too old')
  return delta.replace(skip[0], blocks.join('')).replace('#EXT-X-VERSION:9', '#EXT-X-VERSION:3')
}

/** Lines of each complete segment, without its parts. */
function segmentBlocks(text: string): string[] {
  const tags = /^#(EXT-X-(GAP|DISCONTINUITY$|PROGRAM-DATE-TIME)|EXTINF)|^[^#]/
  let block = ''
  return text.split('\n').flatMap((line) => {
    if (line === '' || !tags.test(line)) return []
    block += `${line}\n`
    if (line.startsWith('#')) return []
    const complete = block
    block = ''
    return [complete]
  })
}

export function parseLowLatency(text: string): LowLatencyPlaylist {
  const lines = text.split('\n').filter((line) => line !== '')
  const valueOf = (name: string) =>
    lines.find((line) => line.startsWith(`#${name}:`))?.slice(name.length + 2)
  const skipped = Number(/=(\d+)/.exec(valueOf('EXT-X-SKIP') ?? '')?.[1] ?? 0)
  let mediaSequence = Number(valueOf('EXT-X-MEDIA-SEQUENCE')) + skipped
  const segments: ListedSegment[] = []
  const disorder: string[] = []
  const hints: string[] = []
  const reports = new Map<string, string>()
  let own = new Map<string, string>()
  let parts: ListedPart[] = []
  const finish = (uri: string | undefined) => {
    segments.push({
      ...{ mediaSequence: mediaSequence++, uri, parts },
      durationSec: Number.parseFloat(own.get('EXTINF') ?? '0'),
      gap: own.has('EXT-X-GAP'),
      discontinuity: own.has('EXT-X-DISCONTINUITY'),
      dateTime: own.get('EXT-X-PROGRAM-DATE-TIME'),
    })
    own = new Map()
    parts = []
  }
  for (const line of lines) {
    const [, name = '', value = ''] = /^#([^:]+):?(.*)$/.exec(line) ?? []
    const attributes = parseAttributes(value)
    const unquoted = (key: string) => (attributes.get(key) ?? '').replaceAll('"', '')
    if (!line.startsWith('#')) finish(line)
    else if (name === 'EXT-X-PART') {
      parts.push({
        uri: unquoted('URI'),
        duration: attributes.get('DURATION') ?? '',
        independent: attributes.get('INDEPENDENT') === 'YES',
        gap: attributes.get('GAP') === 'YES',
      })
    } else if (name === 'EXT-X-PRELOAD-HINT') hints.push(unquoted('URI'))
    else if (name === 'EXT-X-RENDITION-REPORT') {
      reports.set(unquoted('URI'), `${attributes.get('LAST-MSN')} ${attributes.get('LAST-PART')}`)
    } else {
      const isOfSegment = /^EXT-X-(DISCONTINUITY|PROGRAM-DATE-TIME)$/.test(name)
      if (isOfSegment && parts.length > 0) disorder.push(`24: ${name} comes after a part`)
      own.set(name, value)
    }
  }
  const endsTimeline = parts.length === 0 && own.has('EXT-X-DISCONTINUITY')
  if (parts.length > 0) finish(undefined)
  return {
    ...{ segments, hints, reports, endsTimeline, skipped, disorder },
    targetSec: Number(valueOf('EXT-X-TARGETDURATION')),
    serverControl: valueOf('EXT-X-SERVER-CONTROL'),
    partTarget: valueOf('EXT-X-PART-INF')?.replace('PART-TARGET=', ''),
    ended: lines.includes('#EXT-X-ENDLIST'),
  }
}
