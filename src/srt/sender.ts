/**
 * The sending half of a connection: payloads become data packets, paced and within the peer's window; what the peer
 * misses is sent again (draft-sharabayko-srt 4.8.2), unless it would come too late (4.6).
 *
 * Inputs: `push`, `handleAck`, `handleNak`, and `tick` every 10 ms while `busy`.
 *
 * @module
 */
import { nextMessageNumber } from '../binary/message-number.ts'
import { addToSequence, sequenceDistance } from '../binary/sequence-number.ts'
import type { Encryption } from './encryption.ts'
import { Pacer } from './pacer.ts'
import type { RttEstimator } from './rtt.ts'
import { SendBuffer } from './send-buffer.ts'
import type { Transmitter } from './transmitter.ts'
import type { Ack } from './wire/ack.ts'
import { ExtensionType } from './wire/extension.ts'
import type { LossRange } from './wire/loss-list.ts'
import { ControlType, HEADER_BYTES, markRetransmitted, writeDataHeader } from './wire/packet.ts'

/** A packet is kept for the peer's latency, but for this long at least, and a little more (libsrt, srtcore/core.cpp). */
const MIN_KEEP_US = 1_000_000
const MARGIN_US = 20_000

/** On top of an answer's time: the receiver's acknowledgement may wait, and both sides' ticks are coarse. */
const TAIL_MARGIN_US = 60_000

export interface SenderOptions {
  readonly initialSequenceNumber: number
  /** Packets kept until acknowledged. */
  readonly bufferPackets: number
  /** The peer's flow window, as its handshake tells. */
  readonly peerWindowPackets: number
  readonly peerLatencyUs: number
  readonly maxBandwidthBps: number
  /** Where the connection is encrypted. */
  readonly encryption?: Encryption
  readonly rtt: RttEstimator
  readonly transmitter: Transmitter
}

/** Counters since the beginning; see `SenderStats` for their meaning. */
export class SenderCounters {
  packets = 0
  bytes = 0
  retransmitted = 0
  lost = 0
  dropped = 0
  refused = 0
}

export class Sender {
  readonly counters = new SenderCounters()
  readonly #buffer: SendBuffer
  readonly #pacer: Pacer
  readonly #rtt: RttEstimator
  readonly #transmitter: Transmitter
  readonly #peerLatencyUs: number
  readonly #encryption: Encryption | undefined
  /** Sequence numbers that the peer has asked for, in the order it asked. */
  readonly #requested = new Set<number>()
  #peerWindowPackets: number
  #messageNumber = 1
  #pushedUs = -Infinity
  /** When the latest data packet left. */
  #sentUs = 0

  constructor(options: SenderOptions) {
    this.#buffer = new SendBuffer(options.initialSequenceNumber, options.bufferPackets)
    this.#pacer = new Pacer(options.maxBandwidthBps)
    this.#rtt = options.rtt
    this.#transmitter = options.transmitter
    this.#peerLatencyUs = options.peerLatencyUs
    this.#encryption = options.encryption
    this.#peerWindowPackets = options.peerWindowPackets
  }

  /** Something is kept: not sent, or not acknowledged. */
  get busy(): boolean {
    return !this.#buffer.isEmpty
  }

  /**
   * Nothing is left to do, and the peer has had the time to play what it has: libsrt discards on SHUTDOWN what it still
   * holds back for its latency.
   */
  isDone(nowUs: number): boolean {
    const playedUs = this.#pushedUs + this.#rtt.rttUs + this.#peerLatencyUs + MARGIN_US
    return !this.busy && nowUs >= playedUs
  }

  get flightPackets(): number {
    return this.#buffer.flightPackets
  }

  get keptPackets(): number {
    return this.#buffer.flightPackets + this.#buffer.waitingPackets
  }

  /**
   * Takes a payload of at most `MAX_PAYLOAD_BYTES`; it is copied.
   *
   * @returns false where the buffer is full: the payload was not taken
   */
  push(payload: Buffer, nowUs: number): boolean {
    if (this.#buffer.isFull) {
      this.counters.refused++
      return false
    }
    const datagram = Buffer.allocUnsafe(HEADER_BYTES + payload.length)
    writeDataHeader(datagram, {
      sequence: this.#buffer.end,
      message: this.#messageNumber,
      timestampUs: this.#transmitter.timestampUs(nowUs),
      socketId: this.#transmitter.peerSocketId,
    })
    datagram.set(payload, HEADER_BYTES)
    // Sealed once: what is sent again keeps its key, whichever is in use by then.
    this.#encryption?.seal(datagram)
    this.#messageNumber = nextMessageNumber(this.#messageNumber)
    this.#buffer.push(datagram, nowUs)
    this.#pushedUs = nowUs
    this.#transmit(nowUs)
    return true
  }

  /** @param number  of a full ACK; 0 on a light one */
  handleAck({ nextExpected, report }: Ack, number: number, nowUs: number): void {
    const { first, unsent } = this.#buffer
    // Beyond what was sent: made up. libsrt breaks the connection here; an outsider should not be able to.
    if (sequenceDistance(unsent, nextExpected) > 0) return
    const released = Math.max(0, sequenceDistance(first, nextExpected))
    this.#buffer.releaseUntil(addToSequence(first, released))
    if (report === undefined) {
      this.#peerWindowPackets = Math.max(0, this.#peerWindowPackets - released)
    } else {
      this.#peerWindowPackets = report.freePackets
      this.#rtt.adopt(report.rttUs, report.rttVarianceUs)
    }
    if (number !== 0) this.#transmitter.sendControl(ControlType.ACKACK, number, undefined, nowUs)
    this.#transmit(nowUs)
  }

  /** Sends again what is in flight and was not sent again within the last round trip. */
  handleNak(ranges: readonly LossRange[], nowUs: number): void {
    // One report may list a packet only once; overlapping ranges buy no more than one pass over the flight.
    let visits = this.#buffer.flightPackets
    for (const { first, last } of ranges) {
      const skipped = Math.max(0, sequenceDistance(first, this.#buffer.first))
      let sequence = addToSequence(first, skipped)
      while (
        visits-- > 0 &&
        this.#buffer.isInFlight(sequence) &&
        sequenceDistance(sequence, last) >= 0
      ) {
        this.#request(sequence, nowUs)
        sequence = addToSequence(sequence, 1)
      }
    }
    this.#transmit(nowUs)
  }

  #request(sequence: number, nowUs: number): void {
    if (nowUs - this.#buffer.resentUs(sequence) < this.#rtt.rttUs) return
    this.counters.lost++
    this.#requested.add(sequence)
  }

  tick(nowUs: number): void {
    this.#dropTooLate(nowUs)
    this.#requestTail(nowUs)
    this.#transmit(nowUs)
    this.#tellKeys(nowUs)
  }

  #tellKeys(nowUs: number): void {
    const message = this.#encryption?.request(nowUs, this.#rtt.rttUs)
    if (message !== undefined) this.#transmitter.sendExtension(ExtensionType.KMREQ, message, nowUs)
  }

  /** A loss at the end shows to nobody, unless something follows: the last packet, once more. */
  #requestTail(nowUs: number): void {
    const quietUs = nowUs - this.#sentUs
    if (this.#buffer.flightPackets === 0 || quietUs < this.#rtt.answerUs + TAIL_MARGIN_US) return
    this.#requested.add(addToSequence(this.#buffer.unsent, -1))
  }

  /** 4.6: what the peer would drop on arrival is not worth sending. */
  #dropTooLate(nowUs: number): void {
    const keepUs = Math.max(this.#peerLatencyUs, MIN_KEEP_US) + MARGIN_US
    const first = this.#buffer.firstQueuedAfter(nowUs - keepUs)
    this.counters.dropped += sequenceDistance(this.#buffer.first, first)
    this.#buffer.releaseUntil(first)
  }

  /** Losses first: they are the next to be late. */
  #transmit(nowUs: number): void {
    for (const sequence of this.#requested) {
      if (!this.#pacer.maySend(nowUs)) return
      this.#requested.delete(sequence)
      if (!this.#buffer.isInFlight(sequence)) continue
      const datagram = this.#buffer.get(sequence)
      markRetransmitted(datagram)
      this.#buffer.markResent(sequence, nowUs)
      this.counters.retransmitted++
      this.#send(datagram, nowUs)
    }
    while (
      this.#buffer.waitingPackets > 0 &&
      this.#buffer.flightPackets < this.#peerWindowPackets &&
      this.#pacer.maySend(nowUs)
    ) {
      this.#send(this.#buffer.takeUnsent(), nowUs)
    }
  }

  #send(datagram: Buffer, nowUs: number): void {
    this.counters.packets++
    this.counters.bytes += datagram.length - HEADER_BYTES
    this.#sentUs = nowUs
    this.#pacer.sent(datagram.length, nowUs)
    this.#transmitter.send(datagram, nowUs)
  }
}
