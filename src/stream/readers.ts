/**
 * Readers of a stream: they get the payloads of the source on air as they came, each from a key frame on. When another
 * source goes on air, they go on with its key frame.
 *
 * @module
 */
import type { ReaderReport } from '../api/records.ts'
import type { Demuxed, PayloadLog } from './payload-log.ts'

/** Time without a key frame after which a reader gets what comes. */
const PATIENCE_US = 10_000_000

/** Reader of a stream, independent of its transport. */
export interface Reader {
  /**
   * Sends a payload, which all readers share. It never waits.
   *
   * @returns false if the payload is dropped, since the reader is too slow
   */
  send(payload: Buffer, nowUs: number): boolean
  /** Absent for a reader that is reported elsewhere. */
  report?(): ReaderReport
  /** Disconnects the reader. */
  close(): void
}

/** Inputs: `push` the payloads of the source on air, `switchTo` another one. */
export class Readers {
  /** Readers, with the time since which they wait for a key frame; undefined: they do not wait. */
  readonly #readers = new Map<Reader, number | undefined>()
  #isAnyWaiting = false
  #sentBytes = 0

  /** Payload sent to all readers so far, without retransmissions. */
  get sentBytes(): number {
    return this.#sentBytes
  }

  get size(): number {
    return this.#readers.size
  }

  /** Number of readers that are reported here. */
  get reported(): number {
    return [...this.#readers.keys()].filter((reader) => 'report' in reader).length
  }

  add(reader: Reader, nowUs: number): void {
    this.#readers.set(reader, nowUs)
    this.#isAnyWaiting = true
  }

  delete(reader: Reader): void {
    this.#readers.delete(reader)
  }

  report(): ReaderReport[] {
    return [...this.#readers.keys()].flatMap((reader) => reader.report?.() ?? [])
  }

  /** Passes a payload of the source on air on. @param log  of that source */
  push(payload: Buffer, demuxed: Demuxed, log: PayloadLog, nowUs: number): void {
    let isImpatient = false
    for (const [reader, sinceUs] of this.#readers) {
      if (sinceUs === undefined) this.#send(reader, payload, nowUs)
      else if (nowUs - sinceUs > PATIENCE_US) isImpatient = true
    }
    if (!this.#isAnyWaiting) return
    log.push(payload, demuxed)
    if (!log.begun && !isImpatient) return
    this.#begin(log.begun ? log.take() : [payload], nowUs)
    log.clear()
  }

  /** The readers go on with what a source that goes on air has sent since its latest key frame, or wait for one. */
  switchTo(log: PayloadLog, nowUs: number): void {
    for (const reader of this.#readers.keys()) this.#readers.set(reader, nowUs)
    this.#isAnyWaiting = this.size > 0
    if (log.begun) this.#begin(log.take(), nowUs)
  }

  close(): void {
    for (const reader of this.#readers.keys()) reader.close()
    this.#readers.clear()
  }

  #begin(payloads: readonly Buffer[], nowUs: number): void {
    for (const [reader, sinceUs] of this.#readers) {
      if (sinceUs === undefined) continue
      this.#readers.set(reader, undefined)
      for (const payload of payloads) this.#send(reader, payload, nowUs)
    }
    this.#isAnyWaiting = false
  }

  #send(reader: Reader, payload: Buffer, nowUs: number): void {
    if (reader.send(payload, nowUs)) this.#sentBytes += payload.length
  }
}
