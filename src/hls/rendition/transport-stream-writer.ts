/**
 * Segments of transport stream: PAT and PMT, then the PES packets as the demuxer has made them or, mostly, let them pass. Each
 * begins with all parameter sets, whether or not with a key frame.
 *
 * @module
 */
import { completeAccessUnit } from '../../mpegts/demux/complete-access-unit.ts'
import { decodePesHeader, pesBytes } from '../../mpegts/pes.ts'
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import { SegmentWriter } from '../../mpegts/mux/segment-writer.ts'
import type { SlabPool } from '../../mpegts/mux/slab-pool.ts'
import type { SegmentPlan } from '../cut/segment-plan.ts'
import { isSameTrackLayout, type Track } from '../../mpegts/track.ts'
import { listTracks, type CarriedTracks } from './rendition-tracks.ts'
import { type MediaWriter, type WrittenSegment, SegmentContent } from './media-writer.ts'
import type { QueuedPes } from './track-queues.ts'

export class TransportStreamWriter implements MediaWriter {
  readonly isInexpressible = false
  readonly lateSec = 0
  readonly #writer: SegmentWriter
  #carried: CarriedTracks | undefined
  /** Carried tracks by PID. */
  #tracks = new Map<number, Track>()
  #open: SegmentContent | undefined
  #needsTimeline = false

  constructor(slabs: SlabPool) {
    this.#writer = new SegmentWriter(slabs)
  }

  get sizeBytes(): number {
    return this.#writer.sizeBytes
  }

  get needsTimeline(): boolean {
    return this.#needsTimeline
  }

  get open(): CarriedTracks | undefined {
    return this.#open?.carried
  }

  carry(carried: CarriedTracks | undefined, isSame: boolean): void {
    this.#carried = carried
    if (carried === undefined) return
    const tracks = listTracks(carried)
    this.#tracks = new Map(tracks.map((track) => [track.pid, track]))
    this.#writer.setProgram({ ...carried, tracks })
    if (isSame && this.#open !== undefined) this.#open.carried = carried
  }

  startTimeline(): void {
    this.#needsTimeline = false
  }

  write({ unit }: QueuedPes, isLead: boolean): void {
    if (unit.track.kind === 'audio' && !this.#isCarried(unit.track)) {
      this.#needsTimeline = true
      return
    }
    let opening: readonly Buffer[] | undefined
    if (this.#open === undefined && this.#carried !== undefined) {
      this.#writer.begin()
      this.#open = new SegmentContent(this.#carried, unit)
      opening = withParameterSets(unit)
    }
    this.#writer.write(opening ?? unit.chunks)
    if (isLead) this.#open?.push(unit)
  }

  /** Whether players can go on with the decoder that they have set up for the track. */
  #isCarried(track: Track): boolean {
    const carried = this.#tracks.get(track.pid)
    return carried === undefined || carried === track || isSameTrackLayout(carried, track)
  }

  writePackets(chunks: readonly Buffer[]): void {
    if (this.#open !== undefined) this.#writer.write(chunks)
  }

  advance(): void {}

  skip(): void {}

  isPast(): boolean {
    return false
  }

  endSegment(plan: SegmentPlan): WrittenSegment {
    const open = this.#open
    this.#open = undefined
    return {
      chunks: this.#writer.finish(),
      independent: open?.isIndependent(plan) === true,
      aligned: open?.isAligned(plan),
      startsWithKeyFrame: open?.startsWithKeyFrame === true,
      frames: open?.frames ?? 0,
      carried: open?.carried,
    }
  }
}

/**
 * Inserts the parameter sets into a frame that is no key frame. By a segment without any, hls.js sets up its buffers for audio
 * alone, and gives up at the next key frame (`bufferAppendError`).
 *
 * @returns transport packets of the frame; undefined for a PES packet that stays as it is
 */
function withParameterSets(unit: PesUnit): readonly Buffer[] | undefined {
  const { track, parameterSets, randomAccess, startsFrame } = unit
  if (track.codec !== 'h264' && track.codec !== 'h265') return undefined
  if (parameterSets === undefined || randomAccess || !startsFrame) return undefined
  const header = decodePesHeader(pesBytes(unit.chunks))
  if (header === undefined) return undefined
  const pes = { ...unit, headerBytes: header.sizeBytes }
  return completeAccessUnit(track.codec, pes, parameterSets).chunks
}
