/**
 * Splits a transport stream into datagrams with sending times, so that a file is sent at the rate of a live encoder.
 * Sans-IO.
 *
 *   bytes ─► packets ─► timeline across passes ─► datagrams of seven packets ─► sending times by PCR
 *
 * The clock is the PCR of one PID or, without any PCR, the DTS of one PID. Packets between two clock readings are
 * spaced evenly, so a datagram waits for the next clock reading.
 *
 * @module
 */
import { TICKS_PER_SEC, unwrapTimestamp } from '../mpegts/timestamps.ts'
import { MillraceError } from '../errors.ts'
import { createDemuxerStats } from '../mpegts/demux/demuxer-stats.ts'
import { PACKET_BYTES, readPid } from '../mpegts/packet.ts'
import { PacketSync, type PacketRun } from '../mpegts/demux/packet-sync.ts'
import { LoopTimeline } from './loop-timeline.ts'
import { readPcr, readPesTimes } from './packet-times.ts'

/** Seven packets, 1316 bytes, fit an Ethernet frame after the headers of IP, UDP and SRT. */
const PACKETS_PER_DATAGRAM = 7
const DATAGRAM_BYTES = PACKETS_PER_DATAGRAM * PACKET_BYTES

/** Maximum number of datagrams that wait for a clock reading: 10 MiB, a few key frames of 4K video. */
const MAX_WAITING_DATAGRAMS = 8192

/** Maximum time between two clock readings; a longer time is a timestamp discontinuity. */
const MAX_STEP_TICKS = 10 * TICKS_PER_SEC

const US_PER_TICK = 1e6 / TICKS_PER_SEC

export interface PacedDatagram {
  /** 1 to 7 complete packets; owned by the receiver. */
  readonly payload: Buffer
  /** Sending time in microseconds since the first clock reading; never decreases. */
  readonly dueUs: number
}

/** PID whose PCR or DTS is the clock. */
interface ClockSource {
  readonly kind: 'pcr' | 'dts'
  readonly pid: number
}

interface Reading {
  /** Index of the packet with the reading, over all passes, from 0. */
  readonly packet: number
  /** Unwrapped time in ticks of 90 kHz. */
  readonly ticks: number
  /** Sending time of the packet, in microseconds since the first clock reading. */
  readonly us: number
}

/** Calling order: `push` bytes; `rewind` when the file starts over; `end` after the last byte. */
export class PacedStream {
  readonly #timeline = new LoopTimeline()
  readonly #sync = new PacketSync(createDemuxerStats())
  #packets = 0
  #filling = Buffer.allocUnsafe(DATAGRAM_BYTES)
  #filledBytes = 0
  /** Complete datagrams that wait for a clock reading. */
  #waiting: Buffer[] = []
  /** Index of the last packet of the first waiting datagram; its time is the sending time of that datagram. */
  #firstTimedPacket = PACKETS_PER_DATAGRAM - 1
  #source: ClockSource | undefined
  #reading: Reading | undefined
  /** Time per packet between the latest two readings without a timestamp discontinuity. */
  #usPerPacket = 0

  /** Packets pushed so far, in all passes. */
  get packets(): number {
    return this.#packets
  }

  /**
   * @param bytes  next bytes of the file, any number; must not be changed before the next call
   * @throws {MillraceError} `MEDIA_INVALID` after 10 MiB without a clock reading
   */
  push(bytes: Buffer): PacedDatagram[] {
    return this.#take(this.#sync.push(bytes))
  }

  /** Starts another pass: the next bytes pushed are the beginning of the file. */
  rewind(): PacedDatagram[] {
    const datagrams = this.#take(this.#sync.end())
    this.#timeline.rewind()
    return datagrams
  }

  end(): PacedDatagram[] {
    const datagrams = this.#take(this.#sync.end())
    if (this.#filledBytes > 0) this.#waiting.push(this.#filling.subarray(0, this.#filledBytes))
    return [...datagrams, ...this.#release()]
  }

  #take(runs: readonly PacketRun[]): PacedDatagram[] {
    const datagrams: PacedDatagram[] = []
    for (const { bytes, start, end, stride } of runs) {
      for (let at = start; at < end; at += stride) {
        bytes.copy(this.#filling, this.#filledBytes, at, at + PACKET_BYTES)
        if (!this.#timeline.push(this.#filling, this.#filledBytes)) continue
        const ticks = this.#readClock(this.#filling, this.#filledBytes)
        if (ticks !== undefined) datagrams.push(...this.#advance(ticks))
        this.#packets++
        this.#filledBytes += PACKET_BYTES
        if (this.#filledBytes === DATAGRAM_BYTES) this.#complete()
      }
    }
    return datagrams
  }

  #complete(): void {
    if (this.#waiting.length === MAX_WAITING_DATAGRAMS) {
      throw new MillraceError('MEDIA_INVALID', {
        message:
          'the file cannot be paced: no PCR and no DTS in 10 MiB; make new ones (ffmpeg -i FILE -c copy out.ts)',
      })
    }
    this.#waiting.push(this.#filling)
    this.#filling = Buffer.allocUnsafe(DATAGRAM_BYTES)
    this.#filledBytes = 0
  }

  #readClock(bytes: Buffer, at: number): number | undefined {
    const pid = readPid(bytes, at)
    const pcr = readPcr(bytes, at)
    if (pcr !== undefined && this.#source?.kind !== 'pcr') {
      this.#source = { kind: 'pcr', pid }
      // The PCR replaces the DTS as clock; the sending times continue.
      if (this.#reading !== undefined) this.#reading = { ...this.#reading, ticks: pcr }
    }
    if (this.#source?.kind === 'pcr') return pid === this.#source.pid ? pcr : undefined
    const dts = readPesTimes(bytes, at)?.dtsTicks
    if (dts !== undefined) this.#source ??= { kind: 'dts', pid }
    return pid === this.#source?.pid ? dts : undefined
  }

  /** Adopts the clock reading of the current packet, and releases the datagrams that waited for it. */
  #advance(clockTicks: number): PacedDatagram[] {
    const last = this.#reading ?? { packet: 0, ticks: clockTicks, us: 0 }
    const ticks = unwrapTimestamp(clockTicks, last.ticks)
    const packets = this.#packets - last.packet
    const step = ticks - last.ticks
    if (step >= 0 && step <= MAX_STEP_TICKS && packets > 0) {
      this.#usPerPacket = (step * US_PER_TICK) / packets
    }
    const datagrams = this.#release()
    this.#reading = { packet: this.#packets, ticks, us: last.us + packets * this.#usPerPacket }
    return datagrams
  }

  /** Releases all waiting datagrams, spaced by `#usPerPacket`. */
  #release(): PacedDatagram[] {
    const { packet, us } = this.#reading ?? { packet: 0, us: 0 }
    const datagrams = this.#waiting.map((payload, index) => {
      const number = this.#firstTimedPacket + index * PACKETS_PER_DATAGRAM
      return { payload, dueUs: us + (number - packet) * this.#usPerPacket }
    })
    this.#firstTimedPacket += this.#waiting.length * PACKETS_PER_DATAGRAM
    this.#waiting = []
    return datagrams
  }
}
