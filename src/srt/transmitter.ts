/**
 * The way out to one peer: stamps headers with our clock and the peer's socket id, and remembers when it last spoke.
 *
 * @module
 */
import { ControlType, HEADER_BYTES, writeControlHeader } from './wire/packet.ts'

export interface TransmitterOptions {
  readonly peerSocketId: number
  /** Where our timestamps stand at `startUs`: 0, but for callers that are told otherwise. */
  readonly startTimestampUs: number
  readonly startUs: number
  readonly nowUs: number
  /** Takes the datagram away; it is not written to again, but for the header of a retransmission. */
  readonly send: (datagram: Buffer) => void
}

/** libsrt pads control packets without contents to a word (srtcore/packet.cpp); the draft has none. */
const PADDING_BYTES = 4

export class Transmitter {
  readonly peerSocketId: number
  readonly #send: (datagram: Buffer) => void
  /** Our clock's reading at timestamp 0. */
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

  /** The timestamp that a packet of this moment bears; grows without end, the header keeps its low 32 bits. */
  timestampUs(nowUs: number): number {
    return nowUs - this.#originUs
  }

  /** @returns a control packet whose contents the caller has yet to write behind the header */
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

  /** Sends an extension while data flows: a control packet of its own (draft 3.2). */
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

  /** Sends a control packet, padded where it has no contents. */
  sendControl(type: ControlType, information: number, contents: Buffer | undefined, nowUs: number) {
    const datagram = this.createControl(type, information, contents?.length ?? PADDING_BYTES, nowUs)
    if (contents === undefined) datagram.fill(0, HEADER_BYTES)
    else datagram.set(contents, HEADER_BYTES)
    this.send(datagram, nowUs)
  }

  send(datagram: Buffer, nowUs: number): void {
    this.#lastSentUs = nowUs
    this.#send(datagram)
  }
}
