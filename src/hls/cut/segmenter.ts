/**
 * Cuts demuxed units into segments: whole PES packets with the timestamps they came with, a random access point first.
 *
 * @module
 */
import type { DemuxerOutput, PesUnit } from '../../mpegts/demux/demuxer-output.ts'
import type { Program } from '../../mpegts/track.ts'
import {
  chooseTracks,
  isSameSelection,
  listTracks,
  type CarriedTracks,
  type TrackPolicy,
} from '../rendition/carried-tracks.ts'
import { ContinuityCounters } from '../../mpegts/mux/continuity-counters.ts'
import { HeldAudio } from '../rendition/held-audio.ts'
import { HeldData } from '../rendition/held-data.ts'
import { OpenSegment } from './open-segment.ts'
import type { DateRange } from '../playlist/playlist.ts'
import { ProgramDate } from './program-date.ts'
import { ProgramTables, PSI_BYTES } from '../../mpegts/mux/psi-writer.ts'
import { segmentUri } from '../rendition/rendition.ts'
import { SegmentBuffer } from '../../mpegts/mux/segment-buffer.ts'
import type { Segment } from '../store/segment.ts'
import * as warnings from './source-facts.ts'
import type { SourceWarning } from './source-facts.ts'
import { Splices } from './splices.ts'
import { TargetDuration } from './target-duration.ts'
import { Timeline, TICKS_PER_SEC } from './timeline.ts'
import { TrackSelection } from '../rendition/track-selection.ts'

export interface SegmenterOptions {
  /** Names this start of the stream in segment URIs; never given before. */
  readonly epoch: string
  /** Media and discontinuity sequence number of the first segment; 0 unless told. */
  readonly sequenceStart?: { readonly media: number; readonly discontinuity: number }
  /** A segment ends at the first random access point after this. */
  readonly segmentSec: number
  /** EXT-X-TARGETDURATION is at most this, whatever the encoder's GOP; a whole number. */
  readonly maxSegmentSec: number
  /** `compatible` unless told. */
  readonly tracks?: TrackPolicy
  /** A segment that would grow larger is cut; 64 MiB unless told. */
  readonly maxSegmentBytes?: number
}

/**
 * Each code of a warning comes once. A date range comes with the segment that ends where it begins, ahead of it, and
 * again when more is known of it.
 */
export type SegmenterOutput =
  | { readonly type: 'segment'; readonly segment: Segment }
  | { readonly type: 'date-range'; readonly dateRange: DateRange }
  | ({ readonly type: 'warning' } & SourceWarning)

/** Units that reached no segment, and seams; counted since the segmenter was made. */
export interface SegmenterStats {
  /** Damaged audio and damaged key frames, which a decoder had better not see. */
  readonly damagedUnits: number
  /** Units of the reference track before a random access point. */
  readonly unitsBeforeStart: number
  /** Audio units whose time fitted to no picture. */
  readonly strayAudioUnits: number
  /** Units of metadata that no picture came for. */
  readonly strayDataUnits: number
  /** Units for which a segment had no room. */
  readonly oversizeUnits: number
  /** Segments cut inside a GOP. */
  readonly forcedCuts: number
  readonly discontinuities: number
  /** Splice points whose time never came. */
  readonly missedSplices: number
}

export const DEFAULT_MAX_SEGMENT_BYTES = 64 * 1024 * 1024

/** A GOP that is a little shorter than a segment should be makes a segment: a frame less, or rounded timestamps. */
const EARLY_CUT_FRACTION = 0.1

/** No segment is called shorter, whatever its timestamps say; it bounds how many make up a playlist. */
const LEAST_SEGMENT_TICKS = 0.01 * TICKS_PER_SEC

/** Sound and metadata this far ahead of the last picture still belong to it when the time line ends. */
const CLOSING_TICKS = 1 * TICKS_PER_SEC

/** Room asked for ahead, in sizes of the segment before. */
const EXPECTED_GROWTH = 1.15

const NOTHING: readonly SegmenterOutput[] = []

/**
 * `push` what the demuxer puts out; `discontinuity` when the encoder went away, `end` when it will not come back. Each
 * takes the wall clock of that moment, in milliseconds since 1970, and returns what it completed.
 *
 * The reference track is the video, or the audio where there is no video. Nothing leaves before its first random
 * access point, and every discontinuity starts at one again. A track that stays silent is left out, with a discontinuity,
 * until it is heard.
 */
export class Segmenter {
  readonly #epoch: string
  readonly #sequenceStart: { readonly media: number; readonly discontinuity: number }
  readonly #segmentTicks: number
  readonly #maxSegmentBytes: number
  readonly #policy: TrackPolicy
  readonly #target: TargetDuration
  readonly #continuity = new ContinuityCounters()
  readonly #heldAudio = new HeldAudio()
  readonly #heldData = new HeldData()
  readonly #splices = new Splices()
  readonly #warned = new Set<string>()
  readonly #stats = {
    damagedUnits: 0,
    unitsBeforeStart: 0,
    oversizeUnits: 0,
    forcedCuts: 0,
    discontinuities: 0,
  }
  #outputs: SegmenterOutput[] = []
  #wallMs = 0
  readonly #selection: TrackSelection
  #carried: CarriedTracks
  readonly #tables = new ProgramTables()
  #open: OpenSegment | undefined
  #expectedBytes = 0
  /** A splice point was reached, but no random access point since. */
  #spliceIsDue = false
  /** Decoding time of the first unit since a random access point is awaited. */
  #awaitedSinceTicks: number | undefined
  // Of the next segment to close:
  #mediaSequence: number
  readonly #programDate = new ProgramDate()
  #discontinuity = false

  constructor(options: SegmenterOptions) {
    const { epoch, segmentSec, maxSegmentSec } = options
    if (!(segmentSec > 0 && segmentSec <= maxSegmentSec && Number.isInteger(maxSegmentSec))) {
      throw new RangeError(
        `segmentSec is ${segmentSec} and maxSegmentSec ${maxSegmentSec}: expected 0 < segmentSec <= maxSegmentSec, the latter a whole number`,
      )
    }
    this.#epoch = epoch
    this.#sequenceStart = options.sequenceStart ?? { media: 0, discontinuity: 0 }
    this.#mediaSequence = this.#sequenceStart.media
    this.#segmentTicks = segmentSec * TICKS_PER_SEC
    this.#maxSegmentBytes = options.maxSegmentBytes ?? DEFAULT_MAX_SEGMENT_BYTES
    this.#policy = options.tracks ?? 'compatible'
    this.#selection = new TrackSelection(this.#policy)
    this.#carried = this.#selection.wanted
    this.#target = new TargetDuration(segmentSec, maxSegmentSec)
  }

  get stats(): SegmenterStats {
    return {
      ...this.#stats,
      strayAudioUnits: this.#heldAudio.dropped,
      strayDataUnits: this.#heldData.dropped,
      missedSplices: this.#splices.missed,
    }
  }

  /** What its segments carry by now; another object where that, or what is known of it, changed. */
  get carried(): CarriedTracks {
    return this.#carried
  }

  /** Copies what it keeps of the output's chunks. */
  push(output: DemuxerOutput, wallMs: number): readonly SegmenterOutput[] {
    this.#wallMs = wallMs
    if (output.type === 'unit') this.#pushUnit(output.unit)
    else if (output.type === 'program') this.#setProgram(output.program, output.layoutChanged)
    else if (output.type === 'splice') this.#splices.announce(output.splice)
    else if (output.pid === this.#carried.pcrPid) this.#pushPackets(output.chunks)
    return this.#takeOutputs()
  }

  /** The encoder went away: what is open is closed, and whatever comes next is on another time line. */
  discontinuity(wallMs: number): readonly SegmenterOutput[] {
    this.#wallMs = wallMs
    this.#closeTimeline()
    this.#loseSplices()
    this.#heldAudio.retain(() => false)
    this.#heldData.retain(() => false)
    this.#selection.reset()
    return this.#takeOutputs()
  }

  /** The stream is over; last call. */
  end(wallMs: number): readonly SegmenterOutput[] {
    return this.discontinuity(wallMs)
  }

  #setProgram(program: Program, layoutChanged: boolean): void {
    this.#selection.setProgram(program)
    const { wanted } = this.#selection
    if (layoutChanged || !isSameSelection(wanted, this.#carried)) this.#closeTimeline()
    this.#carry(wanted)
    const { leftOut } = chooseTracks(program, this.#policy)
    if (leftOut.length > 0) this.#warn(warnings.tracksLeftOut(leftOut, this.#policy))
  }

  #carry(carried: CarriedTracks): void {
    const { video, audio, data = [] } = carried
    this.#carried = carried
    this.#heldAudio.retain(({ track }) => video !== undefined && track.pid === audio?.pid)
    this.#heldData.retain(({ track }) => data.some(({ pid }) => pid === track.pid))
    this.#tables.update(carried)
  }

  #pushPackets(chunks: readonly Buffer[]): void {
    const sizeBytes = chunks.reduce((sum, { length }) => sum + length, 0)
    if (this.#open !== undefined && this.#hasRoom(this.#open, sizeBytes)) this.#open.append(chunks)
  }

  #pushUnit(unit: PesUnit): void {
    const silent = this.#selection.hear(
      unit,
      this.#open === undefined ? 0 : this.#target.limitTicks,
    )
    if (silent !== undefined) this.#warn(warnings.trackSilent(silent))
    this.#adoptSelection(unit)
    const { video, audio, data } = this.#carried
    const { pid } = unit.track
    const isData = data?.some((track) => track.pid === pid) === true
    if (pid !== video?.pid && pid !== audio?.pid && !isData) return
    if (unit.damaged && unit.randomAccess) this.#stats.damagedUnits++
    else if (unit.sizeBytes + PSI_BYTES > this.#maxSegmentBytes) this.#stats.oversizeUnits++
    else if (isData) this.#pushData(unit)
    else if (pid === (video ?? audio)?.pid) this.#pushReference(unit)
    else this.#pushAudio(unit)
  }

  /** Carries the tracks that are wanted by now, if they can be joined at this unit. */
  #adoptSelection(unit: PesUnit): void {
    const { wanted } = this.#selection
    const reference = wanted.video ?? wanted.audio
    if (isSameSelection(wanted, this.#carried) || unit.track.pid !== reference?.pid) return
    if (!unit.randomAccess || unit.damaged) return
    this.#closeTimeline()
    const waiting = wanted.video === undefined ? this.#heldAudio.release() : []
    this.#carry(wanted)
    for (const sound of waiting) this.#pushReference(sound)
  }

  #pushAudio(unit: PesUnit): void {
    this.#heldAudio.push(unit)
    if (this.#open !== undefined) this.#placeHeld(this.#open, this.#open.timeline.latestTicks)
    this.#heldAudio.keep()
    if (this.#heldAudio.outOfStep) this.#warn(warnings.audioOutOfStep())
  }

  #pushData(unit: PesUnit): void {
    this.#heldData.push(unit)
    if (this.#open !== undefined) this.#placeHeld(this.#open, this.#open.timeline.latestTicks)
  }

  #pushReference(unit: PesUnit): void {
    if (this.#open?.timeline.breaksAt(unit, this.#target.limitTicks) === true) {
      this.#warn(warnings.timestampJump())
      this.#closeTimeline()
      this.#loseSplices(unit.ptsTicks)
    }
    const open = this.#open === undefined ? this.#begin(unit) : this.#cutIfDue(this.#open, unit)
    if (open === undefined) return
    open.appendReference(unit, this.#target.sec * TICKS_PER_SEC)
    this.#placeHeld(open, open.timeline.latestTicks)
  }

  /** Starts a time line, if a decoder can start at this unit. */
  #begin(unit: PesUnit): OpenSegment | undefined {
    if (!unit.randomAccess) {
      this.#stats.unitsBeforeStart++
      this.#awaitedSinceTicks ??= unit.dtsTicks
      if (unit.dtsTicks - this.#awaitedSinceTicks > this.#target.limitTicks) {
        this.#warn(warnings.noKeyFrame())
      }
      return undefined
    }
    this.#awaitedSinceTicks = undefined
    const timeline = new Timeline(unit)
    this.#heldAudio.retain(({ ptsTicks }) => timeline.isNear(ptsTicks))
    this.#heldData.retain(({ ptsTicks }) => timeline.isNear(ptsTicks))
    this.#programDate.anchor(this.#wallMs)
    this.#discontinuity = this.#mediaSequence > this.#sequenceStart.media
    if (this.#discontinuity) this.#stats.discontinuities++
    const open = this.#openSegment(timeline, unit.ptsTicks, true)
    this.#reachSplices(open, unit)
    this.#spliceIsDue = false
    return open
  }

  /** @returns the segment into which the unit goes */
  #cutIfDue(open: OpenSegment, unit: PesUnit): OpenSegment {
    const { timeline } = open
    const ticks = timeline.timeOf(unit)
    const current = this.#splitUpTo(open, ticks)
    if (unit.randomAccess) {
      this.#programDate.arrive((ticks - current.startTicks) / TICKS_PER_SEC, this.#wallMs)
    }
    this.#reachSplices(current, unit)
    const lengthTicks = ticks - current.startTicks
    const isLongEnough = lengthTicks >= this.#segmentTicks * (1 - EARLY_CUT_FRACTION)
    const isSpliced = this.#spliceIsDue && this.#target.fixed && lengthTicks >= LEAST_SEGMENT_TICKS
    const isDue = unit.randomAccess && (isLongEnough || !current.randomAccess || isSpliced)
    if (unit.randomAccess) this.#spliceIsDue = false
    if (!isDue && this.#hasRoom(current, unit.sizeBytes)) return current
    if (!isDue) {
      this.#stats.forcedCuts++
      this.#warn(warnings.segmentTooLarge(this.#maxSegmentBytes))
    }
    this.#placeHeld(current, ticks - 1)
    this.#close(current, ticks)
    return this.#openSegment(timeline, ticks, unit.randomAccess)
  }

  /**
   * Cuts a segment that would last too long if it ended at `ticks`; what lies behind the cut starts the next one.
   *
   * @returns the segment that is open then
   */
  #splitUpTo(open: OpenSegment, ticks: number): OpenSegment {
    let current = open
    while (ticks - current.startTicks > this.#target.limitTicks) {
      const { split } = current
      if (split === undefined) break
      const next = this.#openSegment(current.timeline, split.ticks, split.randomAccess)
      current.splitInto(next)
      this.#close(current, split.ticks)
      current = next
      if (split.randomAccess) continue
      this.#stats.forcedCuts++
      this.#warn(warnings.gopTooLong(this.#target.sec))
    }
    return current
  }

  #reachSplices({ timeline, startTicks }: OpenSegment, unit: PesUnit): void {
    const { dateRanges, cut } = this.#splices.reach({
      ticks: timeline.timeOf(unit),
      randomAccess: unit.randomAccess,
      dateOf: (ticks) => {
        const sinceStartTicks = Math.max(ticks, timeline.startTicks) - startTicks
        return this.#programDate.startMs + (sinceStartTicks / TICKS_PER_SEC) * 1000
      },
    })
    if (cut) this.#spliceIsDue = true
    this.#outputDateRanges(dateRanges)
  }

  /** @param newTicks  as `Splices.loseClock` takes it */
  #loseSplices(newTicks?: number): void {
    this.#outputDateRanges(this.#splices.loseClock(newTicks))
    if (this.#splices.missed > 0) this.#warn(warnings.splicesMissed())
  }

  #outputDateRanges(dateRanges: readonly DateRange[]): void {
    for (const dateRange of dateRanges) this.#outputs.push({ type: 'date-range', dateRange })
  }

  #openSegment(timeline: Timeline, startTicks: number, randomAccess: boolean): OpenSegment {
    const buffer = new SegmentBuffer(this.#continuity, this.#expectedBytes)
    buffer.append([this.#tables.bytes])
    this.#open = new OpenSegment(timeline, startTicks, { randomAccess, buffer })
    return this.#open
  }

  /** @param untilTicks  sound and metadata after that are left for later */
  #placeHeld(open: OpenSegment, untilTicks: number): void {
    for (const unit of this.#heldData.take(open.timeline, untilTicks)) this.#place(open, unit)
    for (;;) {
      const unit = this.#heldAudio.take(open.timeline, untilTicks)
      if (unit === undefined) return
      this.#place(open, unit)
    }
  }

  #place(open: OpenSegment, unit: PesUnit): void {
    if (this.#hasRoom(open, unit.sizeBytes)) open.append(unit.chunks)
    else this.#stats.oversizeUnits++
  }

  #hasRoom(open: OpenSegment, sizeBytes: number): boolean {
    return open.sizeBytes + sizeBytes <= this.#maxSegmentBytes
  }

  #closeTimeline(): void {
    this.#awaitedSinceTicks = undefined
    if (this.#open === undefined) return
    const { latestTicks, endTicks } = this.#open.timeline
    const open = this.#splitUpTo(this.#open, endTicks)
    this.#placeHeld(open, latestTicks + CLOSING_TICKS)
    this.#close(open, endTicks)
    this.#open = undefined
  }

  #close(open: OpenSegment, endTicks: number): void {
    const durationTicks = Math.min(
      Math.max(endTicks - open.startTicks, LEAST_SEGMENT_TICKS),
      this.#target.limitTicks,
    )
    const durationSec = durationTicks / TICKS_PER_SEC
    this.#target.fix(durationSec)
    const bytes = open.finish()
    this.#expectedBytes = Math.ceil(bytes.length * EXPECTED_GROWTH)
    const segment: Segment = {
      epoch: this.#epoch,
      mediaSequence: this.#mediaSequence,
      rendition: 'main',
      uri: segmentUri(this.#epoch, 'main', this.#mediaSequence),
      bytes,
      durationSec,
      startTicks: open.startTicks,
      endTicks,
      targetDurationSec: this.#target.sec,
      programDateTimeMs: this.#programDate.startMs,
      discontinuity: this.#discontinuity,
      discontinuitySequence: this.#sequenceStart.discontinuity + this.#stats.discontinuities,
      independent: open.independent,
      tracks: listTracks(this.#carried),
      videoFrames: this.#carried.video === undefined ? 0 : open.units,
    }
    this.#mediaSequence++
    this.#programDate.advance(durationSec)
    this.#discontinuity = false
    this.#outputs.push({ type: 'segment', segment })
  }

  #warn(warning: SourceWarning): void {
    if (this.#warned.has(warning.code)) return
    this.#warned.add(warning.code)
    this.#outputs.push({ type: 'warning', ...warning })
  }

  #takeOutputs(): readonly SegmenterOutput[] {
    if (this.#outputs.length === 0) return NOTHING
    const outputs = this.#outputs
    this.#outputs = []
    return outputs
  }
}
