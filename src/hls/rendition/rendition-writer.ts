/**
 * Writer of the segments and parts of one rendition, with the same boundaries in all renditions (RFC 8216bis 6.2.4).
 *
 * ```
 * plan ───────────────────────────┐
 *                                 ▼
 * PES packet ─► TrackQueues ─► MediaWriter ─► part, segment
 * ```
 *
 * @module
 */
import { totalBytes } from '../../binary/total-bytes.ts'
import type { SampleStats } from '../../mp4/sample.ts'
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import { PSI_BYTES } from '../../mpegts/mux/program-tables.ts'
import type { Track } from '../../mpegts/track.ts'
import type { Boundary } from '../cut/cut-decision.ts'
import {
  type PartEnd,
  listedProperties,
  type SegmentEnd,
  type SegmentPlan,
} from '../cut/segment-plan.ts'
import {
  isAudioRendition,
  isCmafRendition,
  partUri,
  segmentUri,
  type RenditionName,
} from '../file-names.ts'
import { type Part, createSegment, type Segment } from '../store/segment.ts'
import { isSameSelection, leadTrack, listTracks, type CarriedTracks } from './rendition-tracks.ts'
import { CmafWriter } from './cmaf-writer.ts'
import type { MediaWriter } from './media-writer.ts'
import {
  TrackQueues,
  type PlacingWindow,
  type QueuedPes,
  type TrackQueue,
  type WaitingMemory,
} from './track-queues.ts'
import { TransportStreamWriter } from './transport-stream-writer.ts'
import type { SlabPool } from '../../mpegts/mux/slab-pool.ts'

/** Media of a segment up to the next boundary: a part, or all of a segment without parts. */
interface OpenBoundary {
  readonly plan: SegmentPlan
  /** Time of the earliest media that belongs to the timeline of the segment, or to its rendition. */
  readonly fromTicks: number
  /** Whether it is the first of a timeline, or of the rendition. */
  readonly startsMedia: boolean
  /** Latest time of the part before it; undefined at the start of the segment. */
  readonly afterTicks: number | undefined
  end?: Boundary | undefined
  /** Progress of the reference track at which the wait for slower tracks ends. */
  dueTicks: number
}

export interface RenditionWriterOptions {
  readonly name: RenditionName
  readonly epoch: string
  readonly maxSegmentBytes: number
  readonly slabs: SlabPool
  /** Counters of the samples of all renditions. */
  readonly samples: SampleStats
  /** Memory of the waiting PES packets of all renditions. */
  readonly waiting: WaitingMemory
}

/** The parts of a segment precede it. */
export type WriterOutput =
  | { readonly type: 'part'; readonly part: Part }
  | { readonly type: 'segment'; readonly segment: Segment }

/** Number of consecutive misaligned segments that make a rendition misaligned: one key frame may be lost. */
const MISALIGNED_IN_A_ROW = 2

/** Number of consecutive late parts after which the other renditions no longer wait for this one. */
const LATE_IN_A_ROW = 3

const NO_OUTPUTS: readonly WriterOutput[] = []

/** Maximum number of boundaries that wait for slower tracks, if the reference track hardly advances meanwhile. */
const MAX_PENDING = 16

/**
 * Calling order: `carry` tracks and `push` their PES packets; `start` each planned segment, `end` its parts and then the
 * segment. `advance` returns complete parts and segments; then `keep` a copy of a PES packet that it `isHolding` still.
 *
 * A segment begins with a PES packet of the lead track: the video or, without video, the audio.
 */
export class RenditionWriter {
  readonly #options: RenditionWriterOptions
  readonly #isAudio: boolean
  readonly #media: MediaWriter
  readonly #queues: TrackQueues
  #carried: CarriedTracks | undefined
  #isReference = false
  #isNew = true
  #pending: OpenBoundary[] = []
  /** Finished parts of the open segment. */
  #parts: Part[] = []
  #oversizePackets = 0
  #misalignedInARow = 0
  /** Number of consecutive parts that were finished without all their media. */
  #lateInARow = 0

  constructor(options: RenditionWriterOptions) {
    this.#options = options
    this.#isAudio = isAudioRendition(options.name)
    this.#media = createMediaWriter(options)
    this.#queues = new TrackQueues(options.maxSegmentBytes, options.waiting)
  }

  get name(): RenditionName {
    return this.#options.name
  }

  /** Tracks carried now, undefined for none; a new object after each change of the tracks or their parameters. */
  get carried(): CarriedTracks | undefined {
    return this.#carried
  }

  /** Whether the lead track is the reference track, so that a segment is complete as soon as its end is planned. */
  get isReference(): boolean {
    return this.#isReference
  }

  /** Size of the open segment. */
  get openBytes(): number {
    return this.#media.sizeBytes
  }

  /** Number of PES packets dropped because the open segment would have exceeded its maximum size. */
  get oversizePackets(): number {
    return this.#oversizePackets
  }

  /** Whether the key frames are not aligned with those of the reference track. */
  get misaligned(): boolean {
    return this.#misalignedInARow >= MISALIGNED_IN_A_ROW
  }

  /** Whether audio is dropped because its timestamps are too far from those of the reference track. */
  get audioOutOfStep(): boolean {
    return this.#queues.audioOutOfStep
  }

  /** Whether media is dropped until the next timeline, see `MediaWriter`. */
  get needsTimeline(): boolean {
    return this.#media.needsTimeline
  }

  /** See `MediaWriter`. */
  get isInexpressible(): boolean {
    return this.#media.isInexpressible
  }

  /** Number of PES packets dropped from the queues, by kind of track. */
  get droppedPackets(): Readonly<Record<Track['kind'], number>> {
    return this.#queues.droppedPackets
  }

  /**
   * @param carried  tracks from now on; undefined for none: the segments are gaps
   * @param referencePid  PID of the reference track
   */
  carry(carried: CarriedTracks | undefined, referencePid: number | undefined): void {
    const isReference = carried !== undefined && leadTrack(carried)?.pid === referencePid
    const isSame = isSameSelection(carried, this.#carried)
    this.#media.carry(carried, isSame)
    if (!isSame || isReference !== this.#isReference) this.#queues.carry(carried, isReference)
    this.#carried = carried
    this.#isReference = isReference
  }

  /** Borrows the chunks of the PES packet until `keep`. */
  push(unit: PesUnit): void {
    this.#queues.get(unit.track.pid)?.push(unit)
  }

  /** Writes packets that only carry a PCR; drops them unless the newest segment is open and has room. */
  pushPackets(chunks: readonly Buffer[]): void {
    const sizeBytes = totalBytes(chunks)
    if (this.#pending.length === 1 && this.#hasRoom(sizeBytes)) this.#media.writePackets?.(chunks)
  }

  /** @param fromTicks  time of the earliest media, if this is the first segment of the rendition */
  start(plan: SegmentPlan, fromTicks = plan.startTicks): void {
    const isNew = this.#isNew
    this.#isNew = false
    const pending = {
      plan,
      fromTicks: isNew ? fromTicks : plan.timelineStartTicks,
      startsMedia: isNew || plan.startsTimeline,
      afterTicks: undefined,
      dueTicks: Infinity,
    }
    this.#pending.push(pending)
    if (this.#pending.length === 1) this.#enter(pending)
  }

  /**
   * Ends a part, after which the segment goes on, or a segment.
   *
   * @param dueTicks  progress of the reference track at which the wait for slower tracks ends
   * @returns false for a boundary that this rendition does not have: of a segment that was not started here, or of a part
   *   in a format without parts
   */
  end(boundary: Boundary, dueTicks: number): boolean {
    const last = this.#pending.at(-1)
    if (last === undefined || last.end !== undefined) return false
    if (boundary.type === 'part' && this.#media.endPart === undefined) return false
    last.end = boundary
    last.dueTicks = dueTicks
    if (boundary.type === 'part') {
      const { untilTicks: afterTicks } = boundary.end
      this.#pending.push({
        ...last,
        startsMedia: false,
        afterTicks,
        end: undefined,
        dueTicks: Infinity,
      })
    }
    return true
  }

  /**
   * @param latestTicks  time of the newest frame of the reference track
   * @param progressTicks  duration of the media of the reference track so far, see `Progress`; Infinity for a flush
   * @returns parts and segments that have all their media, or whose wait for slower tracks is over
   */
  advance(latestTicks: number, progressTicks: number): readonly WriterOutput[] {
    let outputs: WriterOutput[] | undefined
    for (let [first] = this.#pending; first !== undefined; [first] = this.#pending) {
      const { plan, fromTicks, afterTicks, end, dueTicks } = first
      const untilTicks = end?.end.untilTicks ?? latestTicks
      const window = { timelineStartTicks: fromTicks, untilTicks }
      // Media that arrives after the last part is in the next segment.
      const isOver = afterTicks !== undefined && end?.type === 'end'
      // A part ends before a frame: if the encoder leaves before that frame, the segment has no further part.
      const isBegun = this.#isReference || latestTicks > (afterTicks ?? -Infinity)
      // Audio that begins after the end of a timeline is of no use: the next one is presented from there on.
      const isBeside = this.#isAudio && !this.#isReference
      const maxTicks = isBeside && end ? end.end.endTicks - 1 : Infinity
      if (!isOver && (isBegun || end !== undefined))
        this.#place(window, Math.min(untilTicks, maxTicks))
      if (end === undefined) break
      const isDue = isOver || progressTicks >= dueTicks || this.#pending.length > MAX_PENDING
      const isComplete = this.#isReference || this.#isPast(window)
      if (!isComplete && !isDue && this.#lateInARow < LATE_IN_A_ROW) break
      outputs ??= []
      const mayFollow = !this.#isReference && progressTicks < Infinity
      const lastEndTicks = mayFollow ? undefined : this.#lastEndTicks
      if (end.type === 'part') {
        // A flush cuts off what would have come in time.
        if (isComplete) this.#lateInARow = 0
        else if (progressTicks < Infinity) this.#lateInARow++
        outputs.push({ type: 'part', part: this.#endPart(plan, end.end, lastEndTicks) })
      } else {
        // Players take audio without video for a failed variant, so a segment without its lead track becomes a gap.
        if (this.#media.open === undefined) this.#skip(window)
        outputs.push({ type: 'segment', segment: this.#endSegment(plan, end.end, lastEndTicks) })
      }
      this.#pending.shift()
      const [next] = this.#pending
      if (next !== undefined) this.#enter(next)
    }
    return outputs ?? NO_OUTPUTS
  }

  /** Whether a PES packet waits that was pushed last: its chunks are still views into the input. */
  isHolding(unit: PesUnit): boolean {
    return this.#queues.get(unit.track.pid)?.isHolding(unit) === true
  }

  /** Takes a copy for the PES packet that it is holding. */
  keep(copy: PesUnit): void {
    this.#queues.get(copy.track.pid)?.keep(copy)
  }

  /** Removes and returns waiting PES packets. */
  release(pid: number): PesUnit[] {
    return this.#queues.get(pid)?.release() ?? []
  }

  /** Drops the waiting PES packets. */
  clear(): void {
    this.#queues.clear()
  }

  #isPast(window: PlacingWindow): boolean {
    return this.#media.isPast(window.untilTicks) || this.#queues.isPast(window)
  }

  #enter({ plan, startsMedia }: OpenBoundary): void {
    if (!startsMedia) return
    this.#queues.startTimeline()
    this.#media.startTimeline(plan, this.#isReference)
  }

  /** @param untilTicks  time up to which the media of the lead track is written */
  #place(window: PlacingWindow, untilTicks: number): void {
    let isLead = true
    for (const queue of this.#queues) {
      // New tracks begin with the next segment.
      const { open } = this.#media
      if (open !== undefined && open !== this.#carried) return
      if (open === undefined && !isLead) return
      for (let unit = queue.take(window); unit !== undefined; unit = queue.take(window)) {
        this.#write(unit, queue, isLead)
      }
      if (isLead) this.#media.advance(untilTicks)
      isLead = false
    }
  }

  #write(queued: QueuedPes, queue: TrackQueue, isLead: boolean): void {
    const tablesBytes = this.#media.open === undefined ? PSI_BYTES : 0
    if (this.#hasRoom(tablesBytes + queued.unit.sizeBytes)) this.#media.write(queued, isLead)
    else {
      this.#oversizePackets++
      queue.interrupt()
    }
  }

  /** Parameter sets that CMAF inserts count once they are written: 10 KB of a sample at most, see `ParameterSets`. */
  #hasRoom(bytes: number): boolean {
    return this.openBytes + bytes <= this.#options.maxSegmentBytes
  }

  #skip(window: PlacingWindow): void {
    this.#queues.skip(window)
    this.#media.skip(window.untilTicks)
  }

  #endPart(plan: SegmentPlan, end: PartEnd, lastEndTicks: number | undefined): Part {
    const { name, epoch } = this.#options
    const written = this.#media.endPart!(end, lastEndTicks)
    const part: Part = {
      ...listedProperties(plan, this.#media.lateSec),
      rendition: name,
      serial: end.serial,
      uri: partUri(epoch, name, end.serial),
      segmentUri: segmentUri(epoch, name, plan.mediaSequence),
      durationSec: end.durationSec,
      endsTimeline: end.endsTimeline,
      ...written,
    }
    this.#parts.push(part)
    return part
  }

  /** End of the timeline, if it is planned and no media waits; undefined before. */
  get #lastEndTicks(): number | undefined {
    if (!this.#queues.isEmpty) return undefined
    const ends = this.#pending.flatMap(({ end }) => end?.end ?? [])
    return ends.find(({ untilTicks, endTicks }) => untilTicks >= endTicks)?.endTicks
  }

  #endSegment(plan: SegmentPlan, end: SegmentEnd, lastEndTicks: number | undefined): Segment {
    const { name, epoch } = this.#options
    const parts = this.#parts
    this.#parts = []
    const listed = listedProperties(plan, this.#media.lateSec)
    const written = this.#media.endSegment(plan, end, lastEndTicks)
    const { aligned, frames, carried = this.#carried, ...media } = written
    if (aligned !== false || plan.keyTicks === undefined) this.#misalignedInARow = 0
    else this.#misalignedInARow++
    return createSegment({
      ...listed,
      epoch,
      rendition: name,
      uri: segmentUri(epoch, name, plan.mediaSequence),
      durationSec: end.durationSec,
      startTicks: plan.startTicks,
      endTicks: end.endTicks,
      parts,
      nextDateTimeMs: end.nextDateTimeMs && end.nextDateTimeMs + this.#media.lateSec * 1000,
      tracks: carried === undefined ? [] : listTracks(carried),
      videoFrames: carried?.video === undefined ? 0 : frames,
      ...media,
    })
  }
}

function createMediaWriter(options: RenditionWriterOptions): MediaWriter {
  const { name, slabs } = options
  return isCmafRendition(name)
    ? new CmafWriter({ ...options, name })
    : new TransportStreamWriter(slabs)
}
