/**
 * Bitrate of each track of an encoder, in whole seconds.
 *
 * @module
 */
import type { DemuxerOutput } from '../mpegts/demux/demuxer.ts'

/** Minimum duration of a measurement: long enough for a GOP, so that a key frame makes no peak. */
const WINDOW_US = 4_000_000

/** Inputs: `handle` each output of the demuxer, `observe` the time, about 4 times a second. */
export class TrackBitrates {
  /** Transport packets since the start of the window, in bytes by PID. */
  #bytes = new Map<number, number>()
  #startUs: number | undefined
  #bps: ReadonlyMap<number, number> = new Map()

  /** Bits per second of the transport packets by PID, over the last 4 s; empty before that. */
  get bps(): ReadonlyMap<number, number> {
    return this.#bps
  }

  handle(output: DemuxerOutput): void {
    if (output.type !== 'unit') return
    const { track, sizeBytes } = output.unit
    this.#bytes.set(track.pid, (this.#bytes.get(track.pid) ?? 0) + sizeBytes)
  }

  observe(nowUs: number): void {
    this.#startUs ??= nowUs
    const elapsedUs = nowUs - this.#startUs
    if (elapsedUs < WINDOW_US) return
    const bpsOf = (bytes: number) => Math.round((bytes * 8e6) / elapsedUs)
    this.#bps = new Map([...this.#bytes].map(([pid, bytes]) => [pid, bpsOf(bytes)]))
    this.#bytes = new Map()
    this.#startUs = nowUs
  }
}
