/**
 * A rendition that follows another: it makes a segment of its own tracks for each segment of its leader, over the same
 * stretch of the timeline, with the same number, duration and date (RFC 8216bis 6.2.4).
 *
 * @module
 */
import type { PesUnit } from '../../mpegts/demux/demuxer-output.ts'
import { listTracks, type CarriedTracks } from './carried-tracks.ts'
import { ContinuityCounters } from '../../mpegts/mux/continuity-counters.ts'
import { ProgramTables, PSI_BYTES } from '../../mpegts/mux/psi-writer.ts'
import { segmentUri, type RenditionName } from './rendition.ts'
import { SegmentBuffer } from '../../mpegts/mux/segment-buffer.ts'
import type { Segment } from '../store/segment.ts'
import { SNAP_TICKS, TrackQueue, type QueuedUnit } from './track-queue.ts'

/** A leader's segment that is yet to be made. */
interface Order {
  /** Without its bytes, which others own. */
  readonly segment: Segment
  /** Leader's progress at which it is made of what is there. */
  readonly dueTicks: number
}

/** A key frame may be lost on the way; two are no accident. */
const MISALIGNED_IN_A_ROW = 2

/** More wait only where the leader's timestamps hardly move: they will not tell when it is time. */
const MOST_ORDERS = 16

const NO_BYTES = Buffer.alloc(0)

/**
 * `carry` tracks, `push` their units, `follow` each segment of the leader; `takeReady` gives what can be made by now.
 * Units that belong to no segment by then are gone with `clear`.
 */
export class Follower {
  readonly #name: RenditionName
  readonly #continuity = new ContinuityCounters()
  readonly #tables = new ProgramTables()
  #carried: CarriedTracks | undefined
  /** By PID. */
  #queues = new Map<number, TrackQueue>()
  #orders: Order[] = []
  #dropped = 0
  #misalignedInARow = 0

  constructor(name: RenditionName) {
    this.#name = name
  }

  /** Of what waits. */
  get sizeBytes(): number {
    return [...this.#queues.values()].reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  }

  /** Units that reached no segment. */
  get dropped(): number {
    return [...this.#queues.values()].reduce((sum, { dropped }) => sum + dropped, this.#dropped)
  }

  /** Its key frames stand elsewhere than the leader's. */
  get misaligned(): boolean {
    return this.#misalignedInARow >= MISALIGNED_IN_A_ROW
  }

  /** @param carried  from now on; undefined: nothing, so that its segments are gaps */
  carry(carried: CarriedTracks | undefined): void {
    const before = this.#queues
    this.#carried = carried
    this.#queues = new Map()
    for (const { pid, kind } of carried === undefined ? [] : listTracks(carried)) {
      this.#queues.set(pid, before.get(pid) ?? new TrackQueue({ isVideo: kind === 'video' }))
      before.delete(pid)
    }
    for (const queue of before.values()) {
      queue.clear()
      this.#dropped += queue.dropped
    }
    if (carried !== undefined) this.#tables.update(carried)
  }

  carries(pid: number): boolean {
    return this.#queues.has(pid)
  }

  /**
   * @param unit  kept, chunks and all
   * @param serial  order of arrival, over all tracks
   */
  push(unit: PesUnit, serial: number): void {
    this.#queues.get(unit.track.pid)?.push(unit, serial)
  }

  /** @param dueTicks  progress of the leader at which tracks that lag are waited for no more */
  follow(segment: Segment, dueTicks: number): void {
    this.#orders.push({ segment: { ...segment, bytes: NO_BYTES }, dueTicks })
  }

  /**
   * @param progressTicks  of the leader; infinite where nothing more will come
   * @returns segments of which all media is there, or late
   */
  takeReady(progressTicks: number): Segment[] {
    const segments: Segment[] = []
    for (let [order] = this.#orders; order !== undefined; [order] = this.#orders) {
      const { segment, dueTicks } = order
      const isComplete = [...this.#queues.values()].every((queue) => queue.isPast(segment))
      const isDue = progressTicks >= dueTicks || this.#orders.length > MOST_ORDERS
      if (!isComplete && !isDue) break
      this.#orders.shift()
      segments.push(this.#make(segment))
    }
    return segments
  }

  /** Drops what waits. */
  clear(): void {
    for (const queue of this.#queues.values()) queue.clear()
  }

  #make(leader: Segment): Segment {
    const units = [...this.#queues.values()]
      .flatMap((queue) => queue.take(leader))
      .toSorted((a, b) => a.serial - b.serial)
    const { video, audio } = this.#carried ?? {}
    const pid = (video ?? audio)?.pid
    const frames = units
      .map(({ unit }) => unit)
      .filter((unit) => unit.track.pid === pid && unit.startsFrame)
    const [first] = frames
    if (first === undefined) this.#dropped += units.length
    const aligned =
      first?.randomAccess === true &&
      (video === undefined || Math.abs(first.ptsTicks - leader.startTicks) <= SNAP_TICKS)
    const isStray = first !== undefined && !aligned && leader.independent
    this.#misalignedInARow = isStray ? this.#misalignedInARow + 1 : 0
    return {
      ...leader,
      rendition: this.#name,
      uri: segmentUri(leader.epoch, this.#name, leader.mediaSequence),
      // Sound alone is no picture: players take it for the loss of the variant.
      bytes: first === undefined ? NO_BYTES : this.#assemble(units),
      independent: aligned && !frames.some((unit) => isLeading(unit, first)),
      tracks: this.#carried === undefined ? [] : listTracks(this.#carried),
      videoFrames: video === undefined ? 0 : frames.length,
    }
  }

  #assemble(units: readonly QueuedUnit[]): Buffer {
    const sizeBytes = units.reduce((sum, { unit }) => sum + unit.sizeBytes, PSI_BYTES)
    const buffer = new SegmentBuffer(this.#continuity, sizeBytes)
    buffer.append([this.#tables.bytes])
    for (const { unit } of units) buffer.append(unit.chunks)
    return buffer.finish()
  }
}

/** Whether a picture is shown before the key frame that it follows, and needs earlier ones. */
function isLeading(unit: PesUnit, key: PesUnit): boolean {
  return unit.ptsTicks < key.ptsTicks && !unit.decodableLeading
}
