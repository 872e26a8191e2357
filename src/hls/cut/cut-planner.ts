/**
 * Decides for each PES packet of the reference track, as it arrives, whether the open segment or part ends before it.
 * Decisions are final: a PES packet never moves to another segment or part. The rules for
 * segments are in `segment-boundary.ts`, those for parts in `part-cutter.ts`.
 *
 * @module
 */
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import type { SpliceInfo } from '../../mpegts/psi/splice-info.ts'
import { TICKS_PER_SEC, type Times } from '../../mpegts/timestamps.ts'
import type { Track } from '../../mpegts/track.ts'
import type { TargetDurations } from '../target-durations.ts'
import {
  partDecision,
  dateRangeDecision,
  factDecision,
  type CutDecision,
  type CutPlannerOptions,
  type CutPlannerStats,
} from './cut-decision.ts'
import { GopLengths } from './gop-lengths.ts'
import { PartCutter } from './part-cutter.ts'
import { frameTicksOf } from './part-target.ts'
import { ProgramDate } from './program-date.ts'
import { Progress } from './progress.ts'
import { gapBefore, isDueAt, segmentTicks } from './segment-boundary.ts'
import { SequenceCounter, type SegmentEnd, type SegmentPlan } from './segment-plan.ts'
import { Splices } from './splices.ts'
import { Targets } from './targets.ts'
import { Timeline, type Open } from './timeline.ts'

const NO_DECISIONS: CutDecision[] = []

/** Longest GOP without a warning, unless segments are longer: viewers wait for the end of the first one to begin. */
const MAX_GOP_SEC = 4

/** Minimum distance of a PES packet to the newest frame with which it surely begins another one, in frames. */
const MIN_FRAME = 0.75

/**
 * Inputs: `carry` the tracks, `announce` splice information, `expect` and `push` each PES packet of the reference track in
 * order of arrival, `observe` those of other tracks, `endTimeline` when the tracks change, `endClock` when the encoder has
 * left, `settle` while media pauses, `end` at the end. The decisions of `push` apply before its PES packet, which is in no
 * segment if none is `open` afterwards.
 */
export class CutPlanner {
  readonly #maxSegmentBytes: number
  readonly #maxGopSec: number
  readonly #targets: Targets
  readonly #parts = new PartCutter()
  readonly #sequence: SequenceCounter
  readonly #programDate: ProgramDate
  readonly #splices = new Splices()
  readonly #gops = new GopLengths()
  readonly #progress = new Progress()
  readonly #stats = { packetsBeforeStart: 0, forcedCuts: 0 }
  #decisions: CutDecision[] = NO_DECISIONS
  #open: Open | undefined
  /** Whether a break has started or ended since the latest random access point. */
  #spliceIsDue = false
  /** DTS of the first PES packet dropped in the wait for a random access point. */
  #awaitedSinceTicks: number | undefined

  constructor(options: CutPlannerOptions) {
    const { maxSegmentBytes, sequenceStart, earlier } = options
    this.#maxSegmentBytes = maxSegmentBytes
    this.#maxGopSec = Math.max(MAX_GOP_SEC, options.segmentSec)
    this.#targets = new Targets(options, this.#gops, earlier?.targets)
    this.#fixParts()
    this.#sequence = new SequenceCounter(sequenceStart, earlier !== undefined)
    this.#programDate = new ProgramDate(earlier?.endMs)
  }

  /** Longest of the newest GOPs of the reference track, in seconds; undefined before the first is complete. */
  get gopSec(): number | undefined {
    const { longestTicks } = this.#gops
    return longestTicks === 0 ? undefined : longestTicks / TICKS_PER_SEC
  }

  get stats(): CutPlannerStats {
    const { discontinuities } = this.#sequence
    return { ...this.#stats, discontinuities, missedSplices: this.#splices.missed }
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
    return this.#targets.limitTicks
  }

  /** EXT-X-TARGETDURATION; before it is fixed, its maximum. */
  get targetSec(): number {
    return this.#targets.sec
  }

  /** Date at which the open segment begins or, without one, the next at the earliest; milliseconds since 1970. */
  get dateMs(): number {
    return this.#programDate.startMs
  }

  /** Takes the tracks of all renditions. */
  carry(tracks: readonly Track[]): void {
    const audioTicks = tracks.filter(({ kind }) => kind === 'audio').map(frameTicksOf)
    this.#parts.fitAudio(audioTicks.filter((ticks) => ticks > 0))
  }

  announce(splice: SpliceInfo): void {
    this.#splices.announce(splice)
  }

  /**
   * @param wallMs  time of arrival, milliseconds since 1970
   * @param openBytes  size of the largest open segment with the reference track
   */
  push(unit: PesUnit, wallMs: number, openBytes: number): readonly CutDecision[] {
    this.#progress.push(unit.dtsTicks)
    if (unit.repetition === undefined) this.#targets.addFrame(unit)
    if (this.#open?.timeline.breaksAt(unit, this.#targets.maxStepTicks) === true) {
      const jumpTicks = this.#open.timeline.timeOf(unit) - this.latestTicks
      this.#decide(factDecision({ code: 'TIMESTAMP_JUMP', jumpSec: jumpTicks / TICKS_PER_SEC }))
      this.#endTimeline()
      this.#dropSplices(unit.ptsTicks)
    }
    if (this.#open === undefined) this.#begin(unit, wallMs)
    else this.#cutIfDue(this.#open, unit, wallMs, openBytes)
    if (unit.startsFrame && this.#open !== undefined) this.#addFrame(this.#open.timeline, unit)
    return this.#takeDecisions()
  }

  /** Records a PES packet of another track. */
  observe(unit: PesUnit): void {
    this.#targets.addOther(unit)
  }

  /** Announces the times of the next PES packet of the reference track, before which the open part may end. */
  expect({ dtsTicks }: Times): readonly CutDecision[] {
    if (this.#open === undefined) return NO_DECISIONS
    const { plan, timeline } = this.#open
    const { frameTicks } = timeline
    const ticks = timeline.timeAt(dtsTicks)
    // It may be the second field of a frame, which belongs to the part of the first.
    if (ticks - timeline.latestTicks < MIN_FRAME * frameTicks) return NO_DECISIONS
    if (ticks - plan.startTicks > this.limitTicks) return NO_DECISIONS
    // The hint after the last part of a segment belongs to the next segment: Shaka would append the hinted part twice.
    if (this.#gops.isOverAt(ticks, frameTicks) && this.#isDue(plan, ticks)) return NO_DECISIONS
    return this.#parts.foresee(ticks, frameTicks).map(partDecision)
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
    this.#decideTargets(this.#targets.settle(openTicks / TICKS_PER_SEC))
    return this.#takeDecisions()
  }

  /** Fixes EXT-X-TARGETDURATION by the segments of the stream, if there are any; last call, after `endClock`. */
  end(): readonly CutDecision[] {
    this.#decideTargets(this.#targets.fix())
    return this.#takeDecisions()
  }

  /** Starts a timeline if the PES packet is a random access point. */
  #begin(unit: PesUnit, wallMs: number): void {
    this.#open = undefined
    this.#gops.endTimeline()
    if (!unit.randomAccess) {
      this.#stats.packetsBeforeStart++
      this.#awaitedSinceTicks ??= unit.dtsTicks
      const awaitedTicks = unit.dtsTicks - this.#awaitedSinceTicks
      if (awaitedTicks > this.limitTicks)
        this.#decide(
          factDecision({ code: 'NO_KEY_FRAME', awaitedSec: awaitedTicks / TICKS_PER_SEC }),
        )
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

  #cutIfDue({ plan, timeline }: Open, unit: PesUnit, wallMs: number, openBytes: number): void {
    const ticks = timeline.timeOf(unit)
    const { randomAccess, dtsTicks, repetition } = unit
    if (repetition === undefined) this.#watchGop(timeline, unit)
    if (randomAccess && repetition === undefined) {
      this.#gops.push(ticks)
      this.#programDate.arrive((ticks - plan.startTicks) / TICKS_PER_SEC, wallMs)
    } else if (randomAccess) this.#gops.restart(ticks)
    // Behind the last repetition, a GOP of the encoder goes on.
    const gopTicks = repetition?.isLast === false ? repetition.untilTicks - dtsTicks : undefined
    const gap = gapBefore(plan, ticks, timeline.mediaEndTicks, this.limitTicks)
    this.#reachSplices(timeline, unit)
    const isDue = gap !== undefined || (randomAccess && this.#isDue(plan, ticks, gopTicks))
    if (randomAccess) this.#spliceIsDue = false
    // A frame stays whole: a decoder needs its second field, or its later slices, with it.
    if (!isDue && !(unit.startsFrame && this.#isForced(plan, unit, timeline, openBytes))) return
    const endTicks = this.#parts.snap(gap ?? ticks, timeline.frameTicks)
    this.#end(plan, { endTicks, untilTicks: endTicks - 1 }, { nextFrameTicks: ticks })
    // The end may have fixed the targets, so that no segment can span the gap any more.
    if (ticks - endTicks <= this.#targets.maxStepTicks) this.#start(timeline, endTicks, unit)
    else this.#begin(unit, wallMs)
  }

  /** Whether the open segment ends before a random access point at `ticks`. */
  #isDue(plan: SegmentPlan, ticks: number, gopTicks = this.#gops.longestTicks): boolean {
    const point = { ticks, spliceIsDue: this.#spliceIsDue, gopTicks }
    return isDueAt(plan, point, this.#targets)
  }

  /** Reports a GOP that is too long for viewers who join, once while it lasts and again at its end. */
  #watchGop(timeline: Timeline, unit: PesUnit): void {
    const maxTicks = this.#maxGopSec * TICKS_PER_SEC + timeline.frameTicks / 2
    const gopTicks = this.#gops.lengthAt(timeline.timeOf(unit))
    const wasTooLong = this.#gops.lengthAt(timeline.latestTicks) > maxTicks
    if (gopTicks > maxTicks && (unit.randomAccess || !wasTooLong)) this.#reportGop(gopTicks)
  }

  #reportGop(gopTicks: number): void {
    const { targetSec } = this
    const limitSec = Math.min(targetSec, this.#maxGopSec)
    const gopSec = gopTicks / TICKS_PER_SEC
    this.#decide(factDecision({ code: 'GOP_TOO_LONG', gopSec, limitSec, targetSec }))
  }

  /** Whether the open segment would exceed its maximum duration or size with this PES packet; reports which. */
  #isForced(plan: SegmentPlan, unit: PesUnit, timeline: Timeline, openBytes: number): boolean {
    const ticks = timeline.timeOf(unit)
    const isTooLong = ticks - plan.startTicks + timeline.frameTicks > this.limitTicks
    const maxBytes = this.#maxSegmentBytes
    const isTooLarge = openBytes + unit.sizeBytes > maxBytes
    const { targetSec } = this
    if (isTooLong) this.#reportGop(this.#gops.lengthAt(ticks))
    else if (isTooLarge)
      this.#decide(factDecision({ code: 'SEGMENT_TOO_LARGE', maxBytes, targetSec }))
    return isTooLong || isTooLarge
  }

  #addFrame(timeline: Timeline, unit: PesUnit): void {
    const ticks = timeline.timeOf(unit)
    this.#decide(
      ...this.#parts.advance(ticks, timeline.frameTicks, unit.randomAccess).map(partDecision),
    )
    timeline.advance(unit)
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
    this.#parts.start(startTicks)
    this.#decide({ type: 'start', plan })
  }

  #end(
    { startTicks }: SegmentPlan,
    { endTicks, untilTicks }: Pick<SegmentEnd, 'endTicks' | 'untilTicks'>,
    { nextFrameTicks = Infinity, cutShort = false },
  ): void {
    const lengthTicks = segmentTicks(startTicks, endTicks, this.limitTicks)
    const durationSec = lengthTicks / TICKS_PER_SEC
    const fixed = this.#targets.addSegment(durationSec, cutShort)
    const goesOn = nextFrameTicks - endTicks <= this.#targets.maxStepTicks
    const last = { untilTicks, endsTimeline: !goesOn }
    this.#decide(...this.#parts.end(startTicks + lengthTicks, last).map(partDecision))
    this.#programDate.advance(durationSec)
    const nextDateTimeMs = goesOn ? this.#programDate.startMs : undefined
    const maxSec = this.limitTicks / TICKS_PER_SEC
    const end = { endTicks, untilTicks, durationSec, maxSec, nextDateTimeMs }
    this.#decide({ type: 'end', end })
    this.#decideTargets(fixed)
  }

  #endTimeline({ cutShort = false } = {}): void {
    this.#awaitedSinceTicks = undefined
    if (this.#open === undefined) return
    const { plan, timeline } = this.#open
    const endTicks = this.#parts.snap(timeline.endTicks, timeline.frameTicks, true)
    this.#end(plan, { endTicks, untilTicks: timeline.closingTicks }, { cutShort })
    this.#parts.endTimeline()
    this.#open = undefined
  }

  #reachSplices(timeline: Timeline, unit: PesUnit): void {
    const startTicks = this.#open?.plan.startTicks ?? timeline.startTicks
    const { dateRanges, cut } = this.#splices.reach({
      ticks: timeline.timeOf(unit),
      randomAccess: unit.randomAccess,
      dateOf: (ticks) => this.#programDate.after(Math.max(ticks, timeline.startTicks) - startTicks),
    })
    if (cut) this.#spliceIsDue = true
    this.#decide(...dateRanges.map(dateRangeDecision))
  }

  /** @param newTicks  see `Splices.endTimeline` */
  #dropSplices(newTicks?: number): void {
    this.#decide(...this.#splices.endTimeline(newTicks).map(dateRangeDecision))
    const points = this.#splices.takeMissed()
    if (points > 0) this.#decide(factDecision({ code: 'SPLICE_MISSED', points }))
  }

  #decideTargets(fixed: TargetDurations | undefined): void {
    this.#fixParts()
    if (fixed !== undefined) this.#decide({ type: 'target', ...fixed })
  }

  #fixParts(): void {
    this.#parts.fix(this.#targets.partTargetSec, this.limitTicks)
  }

  #decide(...decisions: readonly CutDecision[]): void {
    if (decisions.length > 0) this.#decisions = [...this.#decisions, ...decisions]
  }

  #takeDecisions(): readonly CutDecision[] {
    const decisions = this.#decisions
    this.#decisions = NO_DECISIONS
    return decisions
  }
}
