/**
 * Sender of SRTLA, written from the description of the protocol: spreads the packets of an SRT caller over lines by their
 * windows. No IO and no clock.
 *
 * A line's window grows with the packets that an SRTLA ACK names, and shrinks by a packet with each NAK of a packet that was
 * sent over the line.
 *
 * @module
 */
import { sequenceDistance } from '../../src/srt/wire/counters.ts'
import { decodeAck } from '../../src/srt/wire/ack.ts'
import { decodeLossList } from '../../src/srt/wire/loss-list.ts'
import { ControlType, controlType, isControl, sequenceNumber } from '../../src/srt/wire/packet.ts'

const KEEPALIVE_US = 1_000_000
/** Silence of the receiver after which a line registers again. */
const DEAD_US = 4_000_000

const WINDOW = { min: 1000, initial: 20_000, max: 60_000, gain: 30, loss: 100 }

export interface SrtlaSenderHost {
  /** Transmits a datagram over a line, by its index. */
  send(line: number, datagram: Buffer): void
  /** Passes a packet of SRT on to the caller. */
  deliver(datagram: Buffer): void
}

interface SenderLine {
  readonly index: number
  joined: boolean
  heardUs: number
  askedUs: number
  keptUs: number
  window: number
  /** Sequence numbers sent and not acknowledged. */
  readonly inFlight: Set<number>
  rttMs: number
  naks: number
}

/** Inputs: `handleCaller`, `handleReceiver`, `tick` about every 10 ms. */
export class SrtlaSender {
  readonly lines: readonly SenderLine[]
  readonly #host: SrtlaSenderHost
  readonly #random: (bytes: number) => Buffer
  #request: Buffer
  #id: Buffer | undefined
  #requestedUs = -Infinity
  /** Replies other than REG2 and REG3, by type. */
  readonly refusals: number[] = []

  constructor(lines: number, random: (bytes: number) => Buffer, host: SrtlaSenderHost) {
    this.#host = host
    this.#random = random
    this.#request = random(256)
    this.lines = Array.from({ length: lines }, (_, index) => ({
      index,
      joined: false,
      heardUs: -Infinity,
      askedUs: -Infinity,
      keptUs: -Infinity,
      window: WINDOW.initial,
      inFlight: new Set<number>(),
      rttMs: 0,
      naks: 0,
    }))
  }

  handleCaller(datagram: Buffer, nowUs: number): void {
    const usable = this.lines.filter(({ joined, heardUs }) => joined && nowUs - heardUs < DEAD_US)
    const score = ({ window, inFlight }: SenderLine) => window / (inFlight.size + 1)
    const [best] = usable.toSorted((a, b) => score(b) - score(a))
    if (best === undefined) return
    if (!isControl(datagram)) best.inFlight.add(sequenceNumber(datagram))
    this.#host.send(best.index, datagram)
  }

  handleReceiver(index: number, datagram: Buffer, nowUs: number): void {
    const line = this.lines[index]!
    line.heardUs = nowUs
    const type = datagram.readUInt16BE()
    if (type === 0x9000) line.rttMs = nowUs / 1000 - Number(datagram.readBigUInt64BE(2))
    else if (type === 0x9100) this.#acknowledge(line, datagram)
    else if (type === 0x9201) this.#adopt(datagram, nowUs)
    else if (type === 0x9202) line.joined = true
    else if (type >> 12 === 9) this.#refused(type)
    else {
      this.#learn(datagram)
      this.#host.deliver(datagram)
    }
  }

  #acknowledge(line: SenderLine, datagram: Buffer): void {
    for (let at = 4; at < datagram.length; at += 4) {
      if (line.inFlight.delete(datagram.readUInt32BE(at)))
        line.window = Math.min(line.window + WINDOW.gain, WINDOW.max)
    }
  }

  #adopt(datagram: Buffer, nowUs: number): void {
    const id = datagram.subarray(2)
    if (this.#id !== undefined || !id.subarray(0, 128).equals(this.#request.subarray(0, 128)))
      return
    this.#id = Buffer.from(id)
    for (const line of this.lines) this.#join(line, nowUs)
  }

  #join(line: SenderLine, nowUs: number): void {
    line.askedUs = nowUs
    this.#host.send(line.index, Buffer.concat([Buffer.from([0x92, 0x01]), this.#id!]))
  }

  #refused(type: number): void {
    this.refusals.push(type)
    if (type !== 0x9211) return
    this.#id = undefined
    this.#request = this.#random(256)
    for (const line of this.lines) line.joined = false
  }

  /** NAKs shrink the windows; ACKs of SRT empty them. */
  #learn(datagram: Buffer): void {
    if (!isControl(datagram)) return
    if (controlType(datagram) === ControlType.NAK) {
      for (const { first, last } of decodeLossList(datagram) ?? []) {
        for (let step = 0; step <= sequenceDistance(first, last); step++) this.#lost(first + step)
      }
    } else if (controlType(datagram) === ControlType.ACK) {
      const { nextExpected } = decodeAck(datagram)!
      for (const { inFlight } of this.lines) {
        for (const sequence of inFlight)
          if (sequenceDistance(sequence, nextExpected) > 0) inFlight.delete(sequence)
      }
    }
  }

  #lost(sequence: number): void {
    for (const line of this.lines) {
      if (!line.inFlight.has(sequence)) continue
      line.naks++
      line.window = Math.max(line.window - WINDOW.loss, WINDOW.min)
    }
  }

  tick(nowUs: number): void {
    if (this.#id === undefined) {
      if (nowUs - this.#requestedUs < KEEPALIVE_US) return
      this.#requestedUs = nowUs
      this.#host.send(0, Buffer.concat([Buffer.from([0x92, 0x00]), this.#request]))
      return
    }
    for (const line of this.lines) {
      const isLost = !line.joined || nowUs - line.heardUs >= DEAD_US
      if (isLost && nowUs - line.askedUs >= KEEPALIVE_US) {
        line.inFlight.clear()
        line.window = WINDOW.initial
        this.#join(line, nowUs)
      } else if (line.joined && nowUs - line.keptUs >= KEEPALIVE_US) {
        line.keptUs = nowUs
        this.#host.send(line.index, encodeKeepalive(line, nowUs))
      }
    }
  }
}

function encodeKeepalive({ rttMs, naks }: SenderLine, nowUs: number): Buffer {
  const datagram = Buffer.alloc(38)
  datagram.writeUInt16BE(0x9000)
  datagram.writeBigUInt64BE(BigInt(Math.round(nowUs / 1000)), 2)
  datagram.writeUInt32BE(0xc01f0001, 10)
  datagram.writeUInt32BE(Math.max(0, Math.round(rttMs)), 26)
  datagram.writeUInt32BE(naks, 30)
  return datagram
}
