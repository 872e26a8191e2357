/**
 * Output to one peer: writes headers with this side's timestamp and the peer's socket id, and records the time at which
 * the latest datagram was sent.
 *
 * @module
 */
import { ControlType, HEADER_BYTES, writeControlHeader } from './wire/packet.ts'

/** A data packet in two parts: connections may share the payload, which never changes. */
export type DataPacket = readonly [header: Buffer, payload: Buffer]

/** A datagram, whole or in parts. */
export type Datagram = Buffer | DataPacket

interface TransmitterOptions {
  readonly peerSocketId: number
  /** Timestamp of a packet sent at `startUs`. */
  readonly startTimestampUs: number
  readonly startUs: number
  readonly nowUs: number
  /** Transmits a datagram, which later changes only in the R flag of a retransmission. */
  readonly send: (datagram: Datagram) => void
}

/** Padding of control packets without contents, as in libsrt (srtcore/packet.cpp); the draft has no padding. */
const PADDING_BYTES = 4

export class Transmitter {
  readonly peerSocketId: number
  readonly #send: (datagram: Datagram) => void
  /** Time at which this side's timestamp is 0. */
  readonly #originUs: number
  #lastSentUs: number

  constructor(options: TransmitterOptions) {
    this.peerSocketId = options.peerSocketId
    this.#send = options.send
    this.#originUs = options.startUs - options.startTimestampUs
    this.#lastSentUs = options.nowUs
  }

  get lastSentUs(): number {
    return this.#lastSentUs
  }

  /** Timestamp of a packet sent now; never wraps, though a header holds only its low 32 bits. */
  timestampUs(nowUs: number): number {
    return nowUs - this.#originUs
  }

  /** @returns a control packet with a complete header and uninitialized contents */
  createControl(type: ControlType, information: number, bytes: number, nowUs: number): Buffer {
    const datagram = Buffer.allocUnsafe(HEADER_BYTES + bytes)
    writeControlHeader(datagram, {
      type,
      information,
      timestampUs: this.timestampUs(nowUs),
      socketId: this.peerSocketId,
    })
    return datagram
  }

  /** Sends an extension as a control packet of its own, after the handshake (draft 3.2). */
  sendExtension(subtype: number, contents: Buffer, nowUs: number): void {
    const datagram = Buffer.allocUnsafe(HEADER_BYTES + contents.length)
    writeControlHeader(datagram, {
      type: ControlType.USER_DEFINED,
      subtype,
      information: 0,
      timestampUs: this.timestampUs(nowUs),
      socketId: this.peerSocketId,
    })
    datagram.set(contents, HEADER_BYTES)
    this.send(datagram, nowUs)
  }

  /** Sends a control packet; one without contents is padded. */
  sendControl(type: ControlType, information: number, contents: Buffer | undefined, nowUs: number) {
    const datagram = this.createControl(type, information, contents?.length ?? PADDING_BYTES, nowUs)
    if (contents === undefined) datagram.fill(0, HEADER_BYTES)
    else datagram.set(contents, HEADER_BYTES)
    this.send(datagram, nowUs)
  }

  send(datagram: Datagram, nowUs: number): void {
    this.#lastSentUs = nowUs
    this.#send(datagram)
  }
}
