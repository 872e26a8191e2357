/**
 * Writer of the segments of one rendition. The plan has the same boundaries for all renditions (RFC 8216bis 6.2.4).
 *
 * ```
 * plan ───────────────────────────┐
 *                                 ▼
 * PES packet ─► TrackQueues ─► SegmentWriter ─► segment
 * ```
 *
 * @module
 */
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import { SegmentWriter } from '../../mpegts/mux/segment-writer.ts'
import type { SlabPool } from '../../mpegts/mux/slab-pool.ts'
import type { Track } from '../../mpegts/track.ts'
import type { SegmentEnd, SegmentPlan } from '../cut/segment-plan.ts'
import { segmentUri, type RenditionName } from '../file-names.ts'
import { createSegment, type Segment } from '../store/segment.ts'
import { isSameSelection, listTracks, type CarriedTracks } from './carried-tracks.ts'
import { OpenSegment } from './open-segment.ts'
import { TrackQueues } from './track-queues.ts'
import type { PlacingWindow, QueuedUnit, UnitQueue } from './unit-queue.ts'

export interface RenditionWriterOptions {
  readonly name: RenditionName
  readonly epoch: string
  /** Whether the lead track is the reference track, so that a segment is complete as soon as its end is planned. */
  readonly reference: boolean
  readonly maxSegmentBytes: number
  readonly slabs: SlabPool
}

interface PendingSegment {
  readonly plan: SegmentPlan
  end?: SegmentEnd
  /** Progress of the reference track at which the wait for slower tracks ends. */
  dueTicks: number
}

/** Number of consecutive misaligned segments that make a rendition misaligned: a single key frame may be lost. */
const MISALIGNED_IN_A_ROW = 2

const NO_SEGMENTS: readonly Segment[] = []

/** Maximum number of segments that wait for slower tracks, if the reference track hardly advances in the meantime. */
const MAX_PENDING = 16

/**
 * Calling order: `carry` tracks and `push` their PES packets; `start` and `end` each planned segment. `advance` returns
 * complete segments; then `keep` copies the PES packet if it waits.
 *
 * A segment begins with a PES packet of the lead track: the video or, without video, the audio.
 */
export class RenditionWriter {
  readonly #options: RenditionWriterOptions
  readonly #writer: SegmentWriter
  readonly #queues: TrackQueues
  #carried: CarriedTracks | undefined
  #pending: PendingSegment[] = []
  #open: OpenSegment | undefined
  #oversizeUnits = 0
  #misalignedInARow = 0

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

  /** Writes packets that only carry a PCR; drops them unless the newest planned segment is open and has room. */
  pushPackets(chunks: readonly Buffer[]): void {
    const sizeBytes = chunks.reduce((sum, { length }) => sum + length, 0)
    const isCurrent = this.#open !== undefined && this.#pending.length === 1
    if (isCurrent && this.#hasRoom(sizeBytes)) this.#writer.write(chunks)
  }

  start(plan: SegmentPlan): void {
    this.#pending.push({ plan, dueTicks: Infinity })
    if (this.#pending.length === 1) this.#enter(plan)
  }

  /** @param dueTicks  progress of the reference track at which the wait for slower tracks ends */
  end(end: SegmentEnd, dueTicks: number): void {
    const last = this.#pending.at(-1)
    if (last === undefined) return
    last.end = end
    last.dueTicks = dueTicks
  }

  /**
   * @param latestTicks  time of the newest frame of the reference track
   * @param progressTicks  duration of the media of the reference track so far, see `Progress`
   * @returns segments that have all their media, or whose wait for slower tracks is over
   */
  advance(latestTicks: number, progressTicks: number): readonly Segment[] {
    let segments: Segment[] | undefined
    for (let [first] = this.#pending; first !== undefined; [first] = this.#pending) {
      const { plan, end, dueTicks } = first
      const { timelineStartTicks } = plan
      const window = { timelineStartTicks, untilTicks: end?.untilTicks ?? latestTicks }
      this.#place(window)
      if (end === undefined) break
      const isDue = progressTicks >= dueTicks || this.#pending.length > MAX_PENDING
      if (!isDue && !this.#options.reference && !this.#queues.isPast(window)) break
      // Players take audio without video for a failed variant, so a segment without its lead track becomes a gap.
      if (this.#open === undefined) this.#queues.skip(window)
      segments ??= []
      segments.push(this.#finish(plan, end))
      this.#pending.shift()
      const [next] = this.#pending
      if (next !== undefined) this.#enter(next.plan)
    }
    return segments ?? NO_SEGMENTS
  }

  /** Copies the newest PES packet of each queue, if its chunks are still views into the input. */
  keep(): void {
    this.#queues.keep()
  }

  /** Removes and returns the waiting PES packets of a track. */
  release(pid: number): PesUnit[] {
    return this.#queues.get(pid)?.release() ?? []
  }

  /** Drops the waiting PES packets. */
  clear(): void {
    this.#queues.clear()
  }

  #enter({ startsTimeline }: SegmentPlan): void {
    if (startsTimeline) this.#queues.startTimeline()
  }

  #place(window: PlacingWindow): void {
    let isLead = true
    for (const queue of this.#queues) {
      // New tracks begin with the next segment, whose PMT lists them.
      if (this.#open !== undefined && this.#open.carried !== this.#carried) return
      if (this.#open === undefined && !isLead) return
      for (let unit = queue.take(window); unit !== undefined; unit = queue.take(window)) {
        this.#write(unit, queue, isLead)
      }
      isLead = false
    }
  }

  #write({ unit, packets }: QueuedUnit, queue: UnitQueue, isLead: boolean): void {
    if (this.#open === undefined && this.#carried !== undefined) {
      this.#writer.begin()
      this.#open = new OpenSegment(this.#carried, unit)
    }
    if (!this.#hasRoom(unit.sizeBytes)) {
      this.#oversizeUnits++
      queue.interrupt()
      return
    }
    if (packets === undefined) this.#writer.write(unit.chunks)
    else this.#writer.link(packets)
    if (isLead) this.#open?.push(unit)
  }

  #hasRoom(sizeBytes: number): boolean {
    return this.#writer.sizeBytes + sizeBytes <= this.#options.maxSegmentBytes
  }

  #finish(plan: SegmentPlan, end: SegmentEnd): Segment {
    const { name, epoch } = this.#options
    const open = this.#open
    this.#open = undefined
    const isMisaligned = open?.isAligned(plan) === false && plan.keyTicks !== undefined
    this.#misalignedInARow = isMisaligned ? this.#misalignedInARow + 1 : 0
    const carried = open?.carried ?? this.#carried
    return createSegment({
      epoch,
      mediaSequence: plan.mediaSequence,
      rendition: name,
      uri: segmentUri(epoch, name, plan.mediaSequence),
      chunks: this.#writer.finish(),
      durationSec: end.durationSec,
      startTicks: plan.startTicks,
      endTicks: end.endTicks,
      programDateTimeMs: plan.programDateTimeMs,
      discontinuity: plan.discontinuity,
      discontinuitySequence: plan.discontinuitySequence,
      independent: open?.isIndependent(plan) === true,
      parts: [],
      endsTimeline: end.endsTimeline,
      tracks: carried === undefined ? [] : listTracks(carried),
      videoFrames: carried?.video === undefined ? 0 : (open?.frames ?? 0),
    })
  }
}
