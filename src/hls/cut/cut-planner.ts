/**
 * Decides for each PES packet of the reference track, as it arrives, whether the open segment ends before it. Decisions
 * are final: a PES packet never moves to another segment.
 *
 * @module
 */
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import type { SpliceInfo } from '../../mpegts/psi/splice-info.ts'
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import type { DateRange } from '../date-range.ts'
import type { SourceFact } from '../source-fact.ts'
import type { CutDecision, CutPlannerOptions, CutPlannerStats } from './cut-decision.ts'
import { GopLengths } from './gop-lengths.ts'
import { ProgramDate } from './program-date.ts'
import { Progress } from './progress.ts'
import { SequenceCounter, type SegmentEnd, type SegmentPlan } from './segment-plan.ts'
import { Splices } from './splices.ts'
import { TargetDuration } from './target-duration.ts'
import { Timeline } from './timeline.ts'

/** Fraction of `segmentSec` by which a segment may be shorter: a GOP may lack a frame, or have rounded timestamps. */
const EARLY_CUT_FRACTION = 0.1

/** Minimum duration of a segment, whatever its timestamps say; it bounds the number of segments in a playlist. */
const MIN_SEGMENT_TICKS = 0.01 * TICKS_PER_SEC

/** Time after the last frame of a timeline up to which the last segment includes audio and metadata. */
const CLOSING_TICKS = 1 * TICKS_PER_SEC

const NO_DECISIONS: CutDecision[] = []

/**
 * Inputs: `announce` splice information, `push` each PES packet of the reference track in order of arrival,
 * `endTimeline` when the tracks change, `endClock` when the encoder has left, `settle` while media pauses, `end` at the
 * end. The decisions of `push` apply before its PES packet, which is in no segment if none is `open` afterwards.
 */
export class CutPlanner {
  readonly #segmentTicks: number
  readonly #maxSegmentBytes: number
  readonly #target: TargetDuration
  readonly #sequence: SequenceCounter
  readonly #programDate = new ProgramDate()
  readonly #splices = new Splices()
  readonly #gops = new GopLengths()
  readonly #progress = new Progress()
  readonly #stats = { unitsBeforeStart: 0, forcedCuts: 0 }
  #decisions: CutDecision[] = NO_DECISIONS
  /** The open segment and its timeline. */
  #open: { readonly plan: SegmentPlan; readonly timeline: Timeline } | undefined
  /** Whether a break has started or ended since the latest random access point. */
  #spliceIsDue = false
  /** Number of missed splice points reported so far. */
  #reportedSplices = 0
  /** DTS of the first PES packet dropped in the wait for a random access point. */
  #awaitedSinceTicks: number | undefined

  constructor(options: CutPlannerOptions) {
    const { segmentSec, maxSegmentSec, maxSegmentBytes } = options
    this.#segmentTicks = segmentSec * TICKS_PER_SEC
    this.#maxSegmentBytes = maxSegmentBytes
    this.#target = new TargetDuration(segmentSec, maxSegmentSec)
    this.#sequence = new SequenceCounter(options.sequenceStart)
  }

  get stats(): CutPlannerStats {
    return {
      ...this.#stats,
      discontinuities: this.#sequence.discontinuities,
      missedSplices: this.#splices.missed,
    }
  }

  get open(): SegmentPlan | undefined {
    return this.#open?.plan
  }

  /** Time of the newest frame of the timeline; -Infinity without an open segment. */
  get latestTicks(): number {
    return this.#open?.timeline.latestTicks ?? -Infinity
  }

  /** Duration of the media of the reference track so far, see `Progress`. */
  get progressTicks(): number {
    return this.#progress.ticks
  }

  /** Maximum duration of a segment. */
  get limitTicks(): number {
    return this.#target.limitTicks
  }

  /** EXT-X-TARGETDURATION; before it is fixed, its maximum. */
  get targetSec(): number {
    return this.#target.sec
  }

  announce(splice: SpliceInfo): void {
    this.#splices.announce(splice)
  }

  /**
   * @param wallMs  time of arrival, milliseconds since 1970
   * @param openBytes  size of the main rendition's open segment
   */
  push(unit: PesUnit, wallMs: number, openBytes: number): readonly CutDecision[] {
    this.#progress.push(unit.dtsTicks)
    if (this.#open?.timeline.breaksAt(unit, this.limitTicks) === true) {
      const jumpTicks = this.#open.timeline.timeOf(unit) - this.latestTicks
      this.#report({ code: 'TIMESTAMP_JUMP', jumpSec: jumpTicks / TICKS_PER_SEC })
      this.#endTimeline()
      this.#dropSplices(unit.ptsTicks)
    }
    if (this.#open === undefined) this.#begin(unit, wallMs)
    else this.#cutIfDue(this.#open, unit, wallMs, openBytes)
    if (unit.startsFrame) this.#open?.timeline.advance(unit)
    return this.#takeDecisions()
  }

  /** Ends the open segment; the next segment starts another timeline. */
  endTimeline(): readonly CutDecision[] {
    this.#endTimeline()
    return this.#takeDecisions()
  }

  /** Ends the timeline and drops the announced splice points, whose times are on the clock of the encoder that left. */
  endClock(): readonly CutDecision[] {
    this.#endTimeline({ cutShort: true })
    this.#dropSplices()
    return this.#takeDecisions()
  }

  /** Fixes EXT-X-TARGETDURATION by the segments so far and the open one, unless disconnects cut all of them short. */
  settle(): readonly CutDecision[] {
    const open = this.#open
    const openTicks = open === undefined ? 0 : open.timeline.mediaEndTicks - open.plan.startTicks
    this.#decideTarget(this.#target.settle(openTicks / TICKS_PER_SEC))
    return this.#takeDecisions()
  }

  /** Fixes EXT-X-TARGETDURATION by the segments of the stream, if there are any; last call, after `endClock`. */
  end(): readonly CutDecision[] {
    this.#decideTarget(this.#target.fix())
    return this.#takeDecisions()
  }

  /** Starts a timeline if the PES packet is a random access point. */
  #begin(unit: PesUnit, wallMs: number): void {
    if (!unit.randomAccess) {
      this.#stats.unitsBeforeStart++
      this.#awaitedSinceTicks ??= unit.dtsTicks
      const awaitedTicks = unit.dtsTicks - this.#awaitedSinceTicks
      if (awaitedTicks > this.limitTicks) {
        this.#report({ code: 'NO_KEY_FRAME', awaitedSec: awaitedTicks / TICKS_PER_SEC })
      }
      return
    }
    this.#awaitedSinceTicks = undefined
    this.#programDate.anchor(wallMs)
    this.#sequence.startTimeline()
    this.#gops.push(unit.ptsTicks)
    const timeline = new Timeline(unit)
    this.#start(timeline, unit.ptsTicks, unit)
    this.#reachSplices(timeline, unit)
    this.#spliceIsDue = false
  }

  #cutIfDue(
    { plan, timeline }: { plan: SegmentPlan; timeline: Timeline },
    unit: PesUnit,
    wallMs: number,
    openBytes: number,
  ): void {
    const ticks = timeline.timeOf(unit)
    const { randomAccess } = unit
    if (randomAccess) {
      this.#gops.push(ticks)
      this.#programDate.arrive((ticks - plan.startTicks) / TICKS_PER_SEC, wallMs)
    }
    const gap = this.#gapBefore(plan, timeline, ticks)
    this.#reachSplices(timeline, unit)
    const isDue = gap !== undefined || this.#isDue(plan, ticks, randomAccess)
    if (randomAccess) this.#spliceIsDue = false
    if (!isDue && !this.#isForced(plan, unit, timeline, openBytes)) return
    const boundaryTicks = gap ?? ticks
    const untilTicks = boundaryTicks - 1
    this.#end(plan, { endTicks: boundaryTicks, untilTicks, endsTimeline: false })
    this.#start(timeline, boundaryTicks, unit)
  }

  /** @returns end of the open segment if the PES packet at `ticks` is after its maximum duration; else undefined */
  #gapBefore({ startTicks }: SegmentPlan, timeline: Timeline, ticks: number): number | undefined {
    if (ticks - startTicks <= this.limitTicks) return undefined
    const minTicks = startTicks + MIN_SEGMENT_TICKS
    return Math.min(Math.max(timeline.mediaEndTicks, minTicks), startTicks + this.limitTicks)
  }

  /** Whether the open segment ends before a PES packet at `ticks` because the packet is a random access point. */
  #isDue({ startTicks, keyTicks }: SegmentPlan, ticks: number, randomAccess: boolean): boolean {
    if (!randomAccess) return false
    const lengthTicks = ticks - startTicks
    if (keyTicks === undefined) return true
    if (lengthTicks >= this.#segmentTicks * (1 - EARLY_CUT_FRACTION)) return true
    if (lengthTicks < MIN_SEGMENT_TICKS) return false
    if (this.#spliceIsDue) return true
    // With one more GOP as long as the longest recent one, the segment would exceed its maximum duration.
    return lengthTicks + this.#gops.longestTicks > this.limitTicks
  }

  /** Whether the open segment would exceed its maximum duration or size with this PES packet; reports which. */
  #isForced(plan: SegmentPlan, unit: PesUnit, timeline: Timeline, openBytes: number): boolean {
    const ticks = timeline.timeOf(unit)
    const isTooLong = ticks - plan.startTicks + timeline.frameTicks > this.limitTicks
    const maxBytes = this.#maxSegmentBytes
    const isTooLarge = openBytes + unit.sizeBytes > maxBytes
    const { targetSec } = this
    const gopSec = this.#gops.lengthAt(ticks) / TICKS_PER_SEC
    if (isTooLong) this.#report({ code: 'GOP_TOO_LONG', gopSec, targetSec })
    else if (isTooLarge) this.#report({ code: 'SEGMENT_TOO_LARGE', maxBytes, targetSec })
    return isTooLong || isTooLarge
  }

  #start(timeline: Timeline, startTicks: number, { randomAccess, ptsTicks }: PesUnit): void {
    const plan = {
      ...this.#sequence.next(),
      startTicks,
      keyTicks: randomAccess ? ptsTicks : undefined,
      timelineStartTicks: timeline.startTicks,
      programDateTimeMs: this.#programDate.startMs,
    }
    if (!randomAccess) this.#stats.forcedCuts++
    this.#open = { plan, timeline }
    this.#decide({ type: 'start', plan })
  }

  #end(
    { startTicks }: SegmentPlan,
    { endTicks, untilTicks, endsTimeline }: Omit<SegmentEnd, 'durationSec'>,
    { cutShort = false } = {},
  ): void {
    const lengthTicks = Math.max(endTicks - startTicks, MIN_SEGMENT_TICKS)
    const durationSec = Math.min(lengthTicks, this.limitTicks) / TICKS_PER_SEC
    this.#programDate.advance(durationSec)
    this.#decide({ type: 'end', end: { endTicks, untilTicks, durationSec, endsTimeline } })
    this.#decideTarget(this.#target.addSegment(durationSec, { cutShort }))
  }

  #endTimeline({ cutShort = false } = {}): void {
    this.#awaitedSinceTicks = undefined
    this.#gops.endTimeline()
    if (this.#open === undefined) return
    const { plan, timeline } = this.#open
    const { endTicks, latestTicks } = timeline
    const untilTicks = latestTicks + CLOSING_TICKS
    this.#end(plan, { endTicks, untilTicks, endsTimeline: true }, { cutShort })
    this.#open = undefined
  }

  #reachSplices(timeline: Timeline, unit: PesUnit): void {
    const startTicks = this.#open?.plan.startTicks ?? timeline.startTicks
    const { dateRanges, cut } = this.#splices.reach({
      ticks: timeline.timeOf(unit),
      randomAccess: unit.randomAccess,
      dateOf: (ticks) => {
        const sinceStartTicks = Math.max(ticks, timeline.startTicks) - startTicks
        return this.#programDate.startMs + (sinceStartTicks / TICKS_PER_SEC) * 1000
      },
    })
    if (cut) this.#spliceIsDue = true
    this.#decideDateRanges(dateRanges)
  }

  /** @param newTicks  see `Splices.endTimeline` */
  #dropSplices(newTicks?: number): void {
    this.#decideDateRanges(this.#splices.endTimeline(newTicks))
    const points = this.#splices.missed - this.#reportedSplices
    this.#reportedSplices += points
    if (points > 0) this.#report({ code: 'SPLICE_MISSED', points })
  }

  #decideDateRanges(dateRanges: readonly DateRange[]): void {
    for (const dateRange of dateRanges) this.#decide({ type: 'date-range', dateRange })
  }

  #decideTarget(fixed: boolean): void {
    if (fixed) this.#decide({ type: 'target', targetSec: this.targetSec })
  }

  #report(fact: SourceFact): void {
    this.#decide({ type: 'fact', fact })
  }

  #decide(decision: CutDecision): void {
    this.#decisions = [...this.#decisions, decision]
  }

  #takeDecisions(): readonly CutDecision[] {
    const decisions = this.#decisions
    this.#decisions = NO_DECISIONS
    return decisions
  }
}
