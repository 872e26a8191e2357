/**
 * Splice points from their announcement to their time, and the date ranges that they become (RFC 8216bis 4.4.5.1.1).
 *
 * @module
 */
import type { SpliceInfo } from '../../mpegts/psi/splice-info.ts'
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import type { DateRange } from '../date-range.ts'
import { findSplicePoints, type SplicePoint } from './splice-point.ts'
import { SNAP_TICKS } from './timeline.ts'

/** Current time of the media. */
interface Moment {
  readonly ticks: number
  /** Whether a segment can start at this time. */
  readonly randomAccess: boolean
  /** Converts a time on this timeline to the wall clock, in milliseconds since 1970. */
  readonly dateOf: (ticks: number) => number
}

/** Effects of the splice points that are due. */
interface Reached {
  /** Date ranges that are new or have more attributes than before. */
  readonly dateRanges: readonly DateRange[]
  /** Whether a break starts or ends, so that a segment starts at this or the next random access point. */
  readonly cut: boolean
}

/**
 * Splice point whose time has not come, announced by the source or derived from the planned duration of a break.
 *
 * - `return`: planned end of the break.
 * - `expiry`: deadline, `OVERRUN_TICKS` after `return`, for the source to announce the end.
 */
interface Awaited extends Omit<SplicePoint, 'kind' | 'section'> {
  readonly kind: SplicePoint['kind'] | 'return' | 'expiry'
  readonly section?: Buffer
}

/** Break that has started and not ended. */
interface OpenBreak {
  readonly range: DateRange
  readonly autoReturn: boolean
}

const MAX_AWAITED = 64
const MAX_OPEN_BREAKS = 16
const MAX_REMEMBERED = 256

/** Longest wait, after the planned end of a break, for the source to announce the end; then it ended as planned. */
const OVERRUN_TICKS = 60 * TICKS_PER_SEC

/**
 * Maximum distance between a splice point and the first frame after a timestamp discontinuity; a point farther away
 * belongs to the timeline before the discontinuity.
 */
const MAX_AHEAD_TICKS = 60 * TICKS_PER_SEC

const NOTHING: Reached = { dateRanges: [], cut: false }

/**
 * Inputs: `announce` each splice information section, `reach` with the time of each PES packet of the reference track,
 * `endTimeline` at a timestamp discontinuity or when the encoder disconnects.
 */
export class Splices {
  #awaited: readonly Awaited[] = []
  /** Breaks by key, oldest first. */
  readonly #open = new Map<string, OpenBreak>()
  /** IDs of the newest `MAX_REMEMBERED` date ranges, newest last. */
  #begun: readonly string[] = []
  #missed = 0
  #missedReported = 0

  /** Number of points dropped before their time: their clock ended, or there were more than `MAX_AWAITED`. */
  get missed(): number {
    return this.#missed
  }

  /** @returns number of points missed since the previous call */
  takeMissed(): number {
    const points = this.#missed - this.#missedReported
    this.#missedReported = this.#missed
    return points
  }

  announce(splice: SpliceInfo): void {
    for (const point of findSplicePoints(splice)) {
      if (point.kind === 'cancel') this.#cancel(point.key)
      else this.#await(point)
    }
  }

  reach(moment: Moment): Reached {
    if (this.#awaited.length === 0) return NOTHING
    const due = this.#awaited.filter((point) => isDue(point, moment))
    if (due.length === 0) return NOTHING
    this.#awaited = this.#awaited.filter((point) => !due.includes(point))
    const timeOf = ({ ptsTicks = moment.ticks }: Awaited) => ptsTicks
    const inOrder = due.toSorted((a, b) => timeOf(a) - timeOf(b))
    return {
      cut: due.some((point) => this.#isBoundary(point)),
      dateRanges: inOrder.flatMap((point) => this.#take(point, timeOf(point), moment)),
    }
  }

  /**
   * Drops the splice points of a clock that has ended. If the end of a break is dropped, the break ends as planned or,
   * without a planned duration, stays open.
   *
   * @param newTicks  PTS of the first PES packet on the new clock, if any; points within `MAX_AHEAD_TICKS` of it stay
   */
  endTimeline(newTicks = Infinity): DateRange[] {
    // Not `>`: for a point without a time and `newTicks` Infinity the difference is NaN, and the point is dropped.
    const lost = this.#awaited.filter(
      ({ ptsTicks = newTicks }) => !(Math.abs(ptsTicks - newTicks) <= MAX_AHEAD_TICKS),
    )
    this.#awaited = this.#awaited.filter((point) => !lost.includes(point))
    this.#missed += lost.filter(isAnnounced).length
    return lost.filter(({ kind }) => isEnd(kind)).flatMap(({ key }) => this.#endAsPlanned(key))
  }

  /** Adds a point, which replaces one with the same key and kind; drops the oldest point when full. */
  #await(point: Awaited): void {
    const { key, kind } = point
    const others = this.#awaited.filter((other) => other.key !== key || other.kind !== kind)
    const isFull = others.length >= MAX_AWAITED
    if (isFull) this.#missed++
    this.#awaited = [...(isFull ? others.slice(1) : others), point]
  }

  /** @param event  key of a `cancel`: the key of the announced points, or a prefix of it */
  #cancel(event: string): void {
    this.#awaited = this.#awaited.filter(
      (point) => !isAnnounced(point) || (point.key !== event && !point.key.startsWith(`${event}-`)),
    )
  }

  #isBoundary({ kind, key }: Awaited): boolean {
    return kind === 'out' || kind === 'in' || (kind === 'return' && this.#endsByTime(key))
  }

  /** Whether the break is open and its end is not announced. */
  #endsByTime(key: string): boolean {
    const isEndAnnounced = this.#awaited.some((other) => other.key === key && other.kind === 'in')
    return this.#open.has(key) && !isEndAnnounced
  }

  #take(point: Awaited, ticks: number, { dateOf }: Moment): DateRange[] {
    const { kind, key, section } = point
    if (kind === 'command') return this.#begin(describeCommand(point, dateOf(ticks)))
    if (kind === 'out') return this.#startBreak(point, ticks, dateOf(ticks))
    if (kind === 'in') return this.#end(key, dateOf(ticks), section)
    if (!this.#endsByTime(key)) return []
    if (kind === 'expiry') return this.#endAsPlanned(key)
    if (this.#open.get(key)?.autoReturn === true) return this.#end(key, dateOf(ticks))
    this.#await({ kind: 'expiry', key, ptsTicks: ticks + OVERRUN_TICKS })
    return []
  }

  #startBreak(point: Awaited, ticks: number, startMs: number): DateRange[] {
    const { key, plannedTicks, autoReturn = false, section } = point
    const range = {
      ...describe(key, startMs, plannedTicks),
      ...(section && { scte35Out: section }),
    }
    if (this.#open.has(key)) return []
    const begun = this.#begin(range)
    if (begun.length === 0) return []
    const [oldest] = this.#open.keys()
    const isFull = this.#open.size >= MAX_OPEN_BREAKS
    const ended = isFull && oldest !== undefined ? this.#end(oldest, startMs) : []
    this.#open.set(key, { range, autoReturn })
    if (plannedTicks !== undefined) {
      this.#await({ kind: 'return', key, ptsTicks: ticks + plannedTicks })
    }
    return [...ended, ...begun]
  }

  /** Begins a date range, unless one with the same ID has begun before: attributes of a date range must not change. */
  #begin(range: DateRange): DateRange[] {
    if (this.#begun.includes(range.id)) return []
    this.#begun = [...this.#begun.slice(1 - MAX_REMEMBERED), range.id]
    return [range]
  }

  #endAsPlanned(key: string): DateRange[] {
    const { startMs = 0, plannedDurationSec } = this.#open.get(key)?.range ?? {}
    return plannedDurationSec === undefined
      ? []
      : this.#end(key, startMs + plannedDurationSec * 1000)
  }

  #end(key: string, endMs: number, section?: Buffer): DateRange[] {
    const open = this.#open.get(key)
    if (open === undefined) return []
    this.#open.delete(key)
    this.#awaited = this.#awaited.filter((point) => point.key !== key || isAnnounced(point))
    const durationSec = Math.max(0, endMs - open.range.startMs) / 1000
    return [{ ...open.range, durationSec, ...(section && { scte35In: section }) }]
  }
}

/** Whether the point was announced by the source, not derived from a planned duration. */
function isAnnounced({ kind }: Awaited): boolean {
  return kind !== 'return' && kind !== 'expiry'
}

function isEnd(kind: Awaited['kind']): boolean {
  return kind === 'in' || kind === 'return' || kind === 'expiry'
}

function isDue(point: Awaited, { ticks, randomAccess }: Moment): boolean {
  const { ptsTicks, kind } = point
  if (ptsTicks === undefined) return randomAccess || kind === 'command'
  return ptsTicks <= ticks + (randomAccess ? SNAP_TICKS : 0)
}

/** Date range of a command, with the duration of its event, or 0. */
function describeCommand({ key, plannedTicks, section }: Awaited, startMs: number): DateRange {
  const { plannedDurationSec: durationSec = 0, ...range } = describe(key, startMs, plannedTicks)
  return { ...range, durationSec, ...(section && { scte35Cmd: section }) }
}

/** Date range with a unique ID, which contains the date, since encoders reuse event IDs. */
function describe(key: string, startMs: number, plannedTicks: number | undefined): DateRange {
  return {
    id: `${key}-${Math.floor(startMs)}`,
    startMs,
    ...(plannedTicks !== undefined && { plannedDurationSec: plannedTicks / TICKS_PER_SEC }),
  }
}
