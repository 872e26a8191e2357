/**
 * Segments of transport stream: PAT and PMT, then the PES packets of the encoder as they came.
 *
 * @module
 */
import { SegmentWriter } from '../../mpegts/mux/segment-writer.ts'
import type { SlabPool } from '../../mpegts/mux/slab-pool.ts'
import type { SegmentPlan } from '../cut/segment-plan.ts'
import { listTracks, type CarriedTracks } from './rendition-tracks.ts'
import { type MediaWriter, type WrittenSegment, SegmentContent } from './media-writer.ts'
import type { QueuedPes } from './track-queues.ts'

export class TransportStreamWriter implements MediaWriter {
  readonly needsTimeline = false
  readonly isInexpressible = false
  readonly lateSec = 0
  readonly #writer: SegmentWriter
  #carried: CarriedTracks | undefined
  #open: SegmentContent | undefined

  constructor(slabs: SlabPool) {
    this.#writer = new SegmentWriter(slabs)
  }

  get sizeBytes(): number {
    return this.#writer.sizeBytes
  }

  get open(): CarriedTracks | undefined {
    return this.#open?.carried
  }

  carry(carried: CarriedTracks | undefined, isSame: boolean): void {
    this.#carried = carried
    if (carried === undefined) return
    this.#writer.setProgram({ ...carried, tracks: listTracks(carried) })
    if (isSame && this.#open !== undefined) this.#open.carried = carried
  }

  startTimeline(): void {}

  write({ unit, packets }: QueuedPes, isLead: boolean): void {
    if (this.#open === undefined && this.#carried !== undefined) {
      this.#writer.begin()
      this.#open = new SegmentContent(this.#carried, unit)
    }
    if (packets === undefined) this.#writer.write(unit.chunks)
    else this.#writer.link(packets)
    if (isLead) this.#open?.push(unit)
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
