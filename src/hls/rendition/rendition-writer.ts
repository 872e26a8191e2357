/**
 * Writer of the segments and parts of one rendition, with the same boundaries in all renditions (RFC 8216bis 6.2.4).
 *
 * ```
 * plan ───────────────────────────┐
 *                                 ▼
 * PES packet ─► TrackQueues ─► SegmentWriter ─► part, segment
 * ```
 *
 * @module
 */
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import { PSI_BYTES } from '../../mpegts/mux/program-tables.ts'
import { SegmentWriter } from '../../mpegts/mux/segment-writer.ts'
import type { Track } from '../../mpegts/track.ts'
import type { Boundary } from '../cut/cut-decision.ts'
import type { PartEnd } from '../cut/part-plan.ts'
import type { SegmentEnd, SegmentPlan } from '../cut/segment-plan.ts'
import type { Part } from '../store/part.ts'
import type { Segment } from '../store/segment.ts'
import { isSameSelection, listTracks, type CarriedTracks } from './carried-tracks.ts'
import { finishPart, finishSegment } from './finished-media.ts'
import { OpenPart, OpenSegment } from './open-segment.ts'
import type { Pending } from './pending.ts'
import { TrackQueues } from './track-queues.ts'
import type { RenditionWriterOptions, WriterOutput } from './writer-output.ts'
import type { PlacingWindow, QueuedUnit, UnitQueue } from './unit-queue.ts'

/** Number of consecutive misaligned segments that make a rendition misaligned: one key frame may be lost. */
const MISALIGNED_IN_A_ROW = 2

/** Number of consecutive late parts after which the other renditions no longer wait for this one. */
const LATE_IN_A_ROW = 3

const NO_OUTPUTS: readonly WriterOutput[] = []

/** Maximum number of boundaries that wait for slower tracks, if the reference track hardly advances meanwhile. */
const MAX_PENDING = 16

/**
 * Calling order: `carry` tracks and `push` their PES packets; `start` each planned segment, `end` its parts and then the
 * segment. `advance` returns complete parts and segments; then `keep` copies the PES packet if it waits.
 *
 * A segment or part begins with a PES packet of the lead track: the video or, without video, the audio.
 */
export class RenditionWriter {
  readonly #options: RenditionWriterOptions
  readonly #writer: SegmentWriter
  readonly #queues: TrackQueues
  #carried: CarriedTracks | undefined
  #isNew = true
  #pending: Pending[] = []
  #open: OpenSegment | undefined
  #openPart: OpenPart | undefined
  /** Finished parts of the open segment. */
  #parts: Part[] = []
  #oversizeUnits = 0
  #misalignedInARow = 0
  /** Number of consecutive parts that were finished without all their media. */
  #lateInARow = 0

  constructor(options: RenditionWriterOptions) {
    this.#options = options
    this.#writer = new SegmentWriter(options.slabs)
    this.#queues = new TrackQueues(options)
  }

  /** Tracks carried now, undefined for none; a new object after each change of the tracks or their parameters. */
  get carried(): CarriedTracks | undefined {
    return this.#carried
  }

  /** Size of the open segment. */
  get openBytes(): number {
    return this.#writer.sizeBytes
  }

  /** Size of the waiting PES packets. */
  get waitingBytes(): number {
    return this.#queues.sizeBytes
  }

  /** Number of PES packets dropped because the open segment would have exceeded its maximum size. */
  get oversizeUnits(): number {
    return this.#oversizeUnits
  }

  /** Whether the key frames are not aligned with those of the reference track. */
  get misaligned(): boolean {
    return this.#misalignedInARow >= MISALIGNED_IN_A_ROW
  }

  /** Whether audio is dropped because its timestamps are too far from those of the reference track. */
  get audioOutOfStep(): boolean {
    return this.#queues.audioOutOfStep
  }

  /** Number of PES packets dropped from the queues, by kind of track. */
  get droppedUnits(): Readonly<Record<Track['kind'], number>> {
    return this.#queues.droppedUnits
  }

  /** @param carried  tracks from now on; undefined for none: the segments are gaps */
  carry(carried: CarriedTracks | undefined): void {
    const isSame = isSameSelection(carried, this.#carried)
    this.#carried = carried
    if (carried !== undefined) this.#writer.setProgram({ ...carried, tracks: listTracks(carried) })
    if (!isSame) this.#queues.carry(carried)
    else if (this.#open !== undefined && carried !== undefined) this.#open.carried = carried
  }

  carries(pid: number): boolean {
    return this.#queues.get(pid) !== undefined
  }

  /** Borrows the chunks of the PES packet until `keep`. */
  push(unit: PesUnit): void {
    this.#queues.get(unit.track.pid)?.push(unit)
  }

  /** Writes packets that only carry a PCR; drops them unless the newest part is open and has room. */
  pushPackets(chunks: readonly Buffer[]): void {
    const sizeBytes = chunks.reduce((sum, { length }) => sum + length, 0)
    const isCurrent = this.#openPart !== undefined && this.#pending.length === 1
    if (isCurrent && this.#hasRoom(sizeBytes)) this.#writer.write(chunks)
  }

  /** @param fromTicks  time of the earliest media, if this is the first segment of the rendition */
  start(plan: SegmentPlan, fromTicks = plan.startTicks): void {
    const timelineStartTicks = this.#isNew ? fromTicks : plan.timelineStartTicks
    this.#isNew = false
    const from = { ...plan, timelineStartTicks }
    this.#pending.push({ plan: from, afterTicks: undefined, dueTicks: Infinity })
    if (this.#pending.length === 1) this.#enter(plan)
  }

  /**
   * Ends a part, after which the segment goes on, or a segment.
   *
   * @param dueTicks  progress of the reference track at which the wait for slower tracks ends
   * @returns false for a boundary of a segment that was not started here
   */
  end(boundary: Boundary, dueTicks: number): boolean {
    const last = this.#pending.at(-1)
    if (last === undefined || last.end !== undefined) return false
    last.end = boundary
    last.dueTicks = dueTicks
    if (boundary.type === 'part') {
      const { untilTicks: afterTicks } = boundary.end
      this.#pending.push({ plan: last.plan, afterTicks, dueTicks: Infinity })
    }
    return true
  }

  /**
   * @param latestTicks  time of the newest frame of the reference track
   * @param progressTicks  duration of the media of the reference track so far, see `Progress`
   * @returns parts and segments that have all their media, or whose wait for slower tracks is over
   */
  advance(latestTicks: number, progressTicks: number): readonly WriterOutput[] {
    let outputs: WriterOutput[] | undefined
    for (let [first] = this.#pending; first !== undefined; [first] = this.#pending) {
      const { plan, afterTicks, end, dueTicks } = first
      const untilTicks = end?.end.untilTicks ?? latestTicks
      const window = { timelineStartTicks: plan.timelineStartTicks, untilTicks }
      // Media that arrives after the last part is in the next segment.
      const isOver = afterTicks !== undefined && end?.type === 'end'
      // A part ends before a frame: if the encoder leaves before that frame, the segment has no further part.
      const isBegun = this.#options.reference || latestTicks > (afterTicks ?? -Infinity)
      if (!isOver && (isBegun || end !== undefined)) this.#place(window)
      if (end === undefined) break
      const isDue = isOver || progressTicks >= dueTicks || this.#pending.length > MAX_PENDING
      const isComplete = this.#options.reference || this.#isPast(window, end)
      if (!isComplete && !isDue && this.#lateInARow < LATE_IN_A_ROW) break
      outputs ??= []
      if (end.type === 'part') {
        this.#placeAudio(window)
        if (isComplete) this.#beginPart()
        this.#lateInARow = isComplete ? 0 : this.#lateInARow + 1
        outputs.push({ type: 'part', part: this.#endPart(plan, end.end) })
      } else {
        // Players take audio without video for a failed variant, so a segment without its lead track becomes a gap.
        if (this.#open === undefined) this.#queues.skip(window)
        outputs.push({ type: 'segment', segment: this.#endSegment(plan, end.end) })
      }
      this.#pending.shift()
      const [next] = this.#pending
      if (next !== undefined && next.afterTicks === undefined) this.#enter(next.plan)
    }
    return outputs ?? NO_OUTPUTS
  }

  /** Copies the newest PES packet of each queue, if its chunks are still views into the input. */
  keep(): void {
    this.#queues.keep()
  }

  /** Removes and returns waiting PES packets. */
  release(pid: number): PesUnit[] {
    return this.#queues.get(pid)?.release() ?? []
  }

  /** Drops the waiting PES packets. */
  clear(): void {
    this.#queues.clear()
  }

  /** Parts wait for video alone, as in the main rendition: an audio PES packet later would be 170 ms later. */
  #isPast(window: PlacingWindow, { type }: Boundary): boolean {
    return type === 'part' ? this.#queues.isLeadPast(window) : this.#queues.isPast(window)
  }

  #enter({ startsTimeline }: SegmentPlan): void {
    if (startsTimeline) this.#queues.startTimeline()
  }

  #place(window: PlacingWindow): void {
    let isLead = true
    for (const queue of this.#queues) {
      // New tracks begin with the next segment, whose PMT lists them.
      if (this.#open !== undefined && this.#open.carried !== this.#carried) return
      if (this.#openPart === undefined && !isLead) return
      this.#placeFrom(queue, window, isLead)
      isLead = false
    }
  }

  /** Places audio in a part without video, in a segment with video: a frame on the screen lasts longer than the part. */
  #placeAudio(window: PlacingWindow): void {
    if (this.#openPart !== undefined || this.#open?.carried !== this.#carried) return
    for (const queue of this.#queues) {
      if (queue.kind === 'audio') this.#placeFrom(queue, window, false)
    }
  }

  /** Writes the tables of a part in which no PES packet begins. It is no gap, after which hls.js stops loading. */
  #beginPart(): void {
    if (this.#openPart !== undefined || this.#open === undefined) return
    if (this.#open.carried === this.#carried && this.#hasRoom(PSI_BYTES)) this.#writer.begin()
  }

  #placeFrom(queue: UnitQueue, window: PlacingWindow, isLead: boolean): void {
    for (let unit = queue.take(window); unit !== undefined; unit = queue.take(window)) {
      this.#write(unit, queue, isLead)
    }
  }

  #write({ unit, packets }: QueuedUnit, queue: UnitQueue, isLead: boolean): void {
    const tablesBytes = this.#openPart === undefined ? PSI_BYTES : 0
    if (!this.#hasRoom(tablesBytes + unit.sizeBytes)) {
      this.#oversizeUnits++
      queue.interrupt()
      return
    }
    if (this.#openPart === undefined && this.#carried !== undefined) {
      this.#writer.begin()
      this.#open ??= new OpenSegment(this.#carried, unit)
      this.#openPart = new OpenPart(isLead && unit.randomAccess)
    }
    if (packets === undefined) this.#writer.write(unit.chunks)
    else this.#writer.link(packets)
    if (isLead) this.#open?.push(unit)
    this.#openPart?.push(unit)
  }

  #hasRoom(bytes: number): boolean {
    return this.openBytes + bytes <= this.#options.maxSegmentBytes
  }

  #endPart(plan: SegmentPlan, end: PartEnd): Part {
    const independent = this.#openPart?.isIndependent(this.#open?.carried) === true
    const chunks = this.#writer.endPart()
    const part = finishPart(this.#options, plan, end, { chunks, independent })
    this.#openPart = undefined
    this.#parts.push(part)
    return part
  }

  #endSegment(plan: SegmentPlan, end: SegmentEnd): Segment {
    const open = this.#open
    const parts = this.#parts
    this.#open = undefined
    this.#openPart = undefined
    this.#parts = []
    if (open?.isAligned(plan) !== false || plan.keyTicks === undefined) this.#misalignedInARow = 0
    else this.#misalignedInARow++
    const chunks = this.#writer.finish()
    return finishSegment(this.#options, plan, end, { chunks, parts, open, carried: this.#carried })
  }
}
