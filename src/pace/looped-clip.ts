/**
 * A transport stream file in memory as an encoder without end would send it. Sans-IO.
 *
 * @module
 */
import { PacedStream, type PacedDatagram } from './paced-stream.ts'

/** Bytes of the file that are paced at once. */
const CHUNK_BYTES = 64 * 1316

/** Maximum time of media, and size of the file read, in a call: what is late by more stays late. */
const MAX_CALL_US = 1_000_000
const MAX_CALL_BYTES = 16 * 1024 * 1024

/**
 * Timestamps and continuity counters go on from pass to pass, see `LoopTimeline`. All datagrams have memory of their own,
 * so any number of clips can share the bytes of a file.
 */
export class LoopedClip {
  readonly #bytes: Buffer
  readonly #stream = new PacedStream()
  #at = 0
  /** Datagrams that are not due yet, from `#next` on. */
  #waiting: readonly PacedDatagram[] = []
  #next = 0
  /** Time up to which datagrams were taken, on the clock of the clip. */
  #takenUs = 0
  /** Delay of the clock of the clip. */
  #lateUs = 0

  /** @param bytes  whole transport packets with timestamps; never changed */
  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /**
   * @param elapsedUs  time since the start, in microseconds; never decreases
   * @returns next datagrams that are due until then, with times since the start: at most 1 s of media
   */
  takeUntil(elapsedUs: number): PacedDatagram[] {
    const untilUs = Math.min(elapsedUs - this.#lateUs, this.#takenUs + MAX_CALL_US)
    const datagrams: PacedDatagram[] = []
    let readBytes = 0
    let next = this.#waiting[this.#next]
    while (next === undefined ? readBytes < MAX_CALL_BYTES : next.dueUs <= untilUs) {
      if (next === undefined) {
        this.#read()
        readBytes += CHUNK_BYTES
      } else {
        datagrams.push({ payload: next.payload, dueUs: next.dueUs + this.#lateUs })
        this.#next++
      }
      next = this.#waiting[this.#next]
    }
    this.#takenUs = untilUs
    this.#lateUs = elapsedUs - untilUs
    return datagrams
  }

  #read(): void {
    const { length } = this.#bytes
    const rewound = this.#at >= length ? this.#stream.rewind() : []
    if (this.#at >= length) this.#at = 0
    const chunk = this.#bytes.subarray(this.#at, this.#at + CHUNK_BYTES)
    this.#at += CHUNK_BYTES
    this.#waiting = [...rewound, ...this.#stream.push(chunk)]
    this.#next = 0
  }
}
