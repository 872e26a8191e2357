/**
 * Watch over the media of a publisher: frames that segments can be made of. Keep-alives hold a connection, but null
 * packets, tables, garbage and frames whose timestamps stand still make no segment.
 *
 * Sans-IO: `handle` takes the demuxer's outputs, `observe` the time (4 times a second is plenty).
 *
 * @module
 */
import type { DemuxerOutput } from '../mpegts/demux/demuxer-output.ts'

const SILENT_AFTER_US = 10_000_000

/** One for each publication. */
export class MediaWatch {
  #latestDtsTicks: number | undefined
  #moved = true
  #mediaUs = 0
  #silent = false

  /** No media for 10 s, and none since. */
  get silent(): boolean {
    return this.#silent
  }

  handle(output: DemuxerOutput): void {
    if (output.type !== 'unit' || output.unit.track.kind === 'data') return
    const { dtsTicks } = output.unit
    if (dtsTicks === this.#latestDtsTicks) return
    this.#latestDtsTicks = dtsTicks
    this.#moved = true
    this.#silent = false
  }

  observe(nowUs: number): void {
    if (this.#moved) this.#mediaUs = nowUs
    this.#moved = false
    this.#silent = nowUs - this.#mediaUs >= SILENT_AFTER_US
  }
}
