/**
 * Detection of encoders that send no usable media. Keepalives maintain their connection, but null packets, tables,
 * garbage and frames with frozen timestamps make no segment.
 *
 * Sans-IO: `handle` takes the demuxer's outputs, `observe` the time, about 4 times a second.
 *
 * @module
 */
import type { DemuxerOutput } from '../mpegts/demux/demuxer.ts'

const SILENT_AFTER_US = 10_000_000

/** Watch over one publication. */
export class MediaWatch {
  #latestDtsTicks: number | undefined
  /** Whether a timestamp has moved since the last `observe`; initially true, to start the wait at the first call. */
  #moved = true
  #mediaUs = 0
  #silent = false

  /** Whether no usable media has arrived for 10 s or more. */
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
