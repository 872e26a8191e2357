/**
 * Simulation of a caller, a listener and a bad network with a clock of its own: an hour of SRT in milliseconds,
 * reproducible from its seed.
 *
 * @module
 */
import { Call } from '../../src/srt/connection/call.ts'
import { Decryption } from '../../src/srt/crypto/decryption.ts'
import { Encryption } from '../../src/srt/crypto/encryption.ts'
import { Endpoint } from '../../src/srt/connection/endpoint.ts'
import type { KeyEncryptionKey } from '../../src/srt/crypto/key-encryption.ts'
import type { SenderStats, SrtStats } from '../../src/srt/stats.ts'
import { decodeAck } from '../../src/srt/wire/ack.ts'
import { decodeDropRequest } from '../../src/srt/wire/drop-request.ts'
import { decodeLossList } from '../../src/srt/wire/loss-list.ts'
import {
  ControlType,
  controlType,
  encryptionKeyFlag,
  isControl,
  isRetransmitted,
  sequenceNumber,
} from '../../src/srt/wire/packet.ts'
import { sequenceDistance } from '../../src/srt/wire/counters.ts'
import { Impairment, type LinkOptions } from '../support/impairment.ts'
import { createRandom } from '../support/random.ts'
import { ENDPOINT_OPTIONS } from './endpoint-options.ts'
import { SinkLedger } from './sink-ledger.ts'
import { wholeDatagram } from './whole-datagram.ts'

export interface SimulationOptions {
  readonly seed: number
  /** Impairments of both directions. */
  readonly link: LinkOptions
  readonly latencyMs: number
  readonly packets: number
  /** Interval between two packets. */
  readonly intervalUs: number
  readonly initialSequenceNumber?: number
  readonly startTimestampUs?: number
  /** Bandwidth towards the listener, if limited, with a queue of at most 100 ms. */
  readonly bandwidthBps?: number
  /** `maxBandwidthBps` of the caller; default 1 Gbit/s. */
  readonly maxBandwidthBps?: number
  /** Drift of the caller's clock against the listener's, positive if it is faster. */
  readonly driftPpm?: number
  /** Encryption by the caller; the listener has the same derived key. */
  readonly encryption?: {
    readonly keyEncryptionKey: KeyEncryptionKey
    readonly refreshPackets: number
    readonly preannouncePackets: number
  }
}

export interface Outcome {
  /** Output of the receiver in runs: number of payloads in order, or of packets in a gap. */
  readonly pushed: number
  readonly gaps: number
  readonly end: string | undefined
  /** Violated invariants. */
  readonly violations: readonly string[]
  /** Undefined if the handshake did not complete. */
  readonly sender: SenderStats | undefined
  readonly receiver: SrtStats | undefined
  readonly datagrams: { readonly toListener: number; readonly toCaller: number }
  /** Datagrams lost at the full queue of the link. */
  readonly overruns: number
  /** Longest interval between two packets that the caller sent for the first time. */
  readonly longestPauseUs: number
  /** DROPREQs of the caller. */
  readonly dropRequests: number
  /** Packets by KK: in clear, even, odd, both; retransmissions included. */
  readonly packetsByKey: readonly number[]
}

const TICK_US = 10_000
const MAX_QUEUE_US = 100_000
const CALLER = { address: '192.0.2.1', port: 40_000 }

/** Sends numbered packets over the link, closes, and waits for the end. */
export function simulate(options: SimulationOptions): Outcome {
  const timeline = new Timeline()
  const callerUs = () => timeline.nowUs * (1 + (options.driftPpm ?? 0) / 1e6)
  const { bytes } = createRandom(options.seed)
  const impairment = new Impairment(options.seed, options.link)
  const forward = new Wire(timeline, impairment, options.bandwidthBps)
  const backward = new Wire(timeline, new Impairment(~options.seed, options.link))

  const sink = new SinkLedger()
  const { violations } = sink

  const endpoint: Endpoint = new Endpoint({
    ...ENDPOINT_OPTIONS,
    latencyMs: options.latencyMs,
    random: bytes,
    nowUs: 0,
    host: {
      transmit: (sent) => {
        const datagram = wholeDatagram(sent)
        violations.push(...claims(datagram, highest))
        backward.carry(datagram, (copy) => call.handleDatagram(copy, callerUs()))
      },
      request: (attempt) =>
        timeline.at(5000, () => {
          const { keyMaterial } = attempt.agreement
          const kek = options.encryption?.keyEncryptionKey
          const decryption =
            keyMaterial && kek && Decryption.unlock(kek, keyMaterial, timeline.nowUs)
          endpoint.decide(attempt, { sink, ...(decryption && { decryption }) }, timeline.nowUs)
        }),
      expire: () => {},
      fail: (error) => violations.push(String(error)),
    },
  })

  let newSentUs: number | undefined
  let longestPauseUs = 0
  let newest: number | undefined
  let dropRequests = 0
  const note = (datagram: Buffer) => {
    if (isControl(datagram)) {
      if (controlType(datagram) !== ControlType.DROPREQ) return
      dropRequests++
      const { last } = decodeDropRequest(datagram)!
      if (newest === undefined || sequenceDistance(newest, last) >= 0) {
        violations.push('a drop request of what was never sent')
      }
    } else if (!isRetransmitted(datagram)) {
      longestPauseUs = Math.max(longestPauseUs, timeline.nowUs - (newSentUs ?? timeline.nowUs))
      newSentUs = timeline.nowUs
      newest = sequenceNumber(datagram)
    }
  }

  const packetsByKey = [0, 0, 0, 0]
  /** The newest sequence number that reached the listener. */
  let highest: number | undefined
  const arrive = (datagram: Buffer) => {
    if (!isControl(datagram)) {
      const sequence = sequenceNumber(datagram)
      packetsByKey[encryptionKeyFlag(datagram)]!++
      if (highest === undefined || sequenceDistance(highest, sequence) > 0) highest = sequence
    }
    endpoint.handleDatagram(datagram, CALLER.port, CALLER.address, timeline.nowUs)
  }

  let sent = 0
  let over = false
  const sendNext = () => {
    if (over) return
    if (sent === options.packets) {
      call.close()
      return
    }
    const payload = Buffer.alloc(1316)
    payload.writeUInt32BE(sent)
    if (!call.send(payload, callerUs())) violations.push('the send buffer is full')
    sent++
    timeline.at(options.intervalUs, sendNext)
  }
  const call = new Call({
    remoteAddress: '192.0.2.2',
    remotePort: 10_080,
    socketId: 77,
    streamId: 'seeded',
    latencyMs: options.latencyMs,
    peerLatencyMs: options.latencyMs,
    initialSequenceNumber: options.initialSequenceNumber ?? 0,
    startTimestampUs: options.startTimestampUs ?? 0,
    sendBufferPackets: 8192,
    maxBandwidthBps: options.maxBandwidthBps ?? 1e9,
    connectTimeoutUs: 3_000_000,
    idleTimeoutUs: 5_000_000,
    ...(options.encryption && {
      encryption: new Encryption({ ...options.encryption, random: bytes }),
    }),
    host: {
      // The sender marks retransmissions in its own datagram, so the wire takes a copy.
      transmit: (sent) => {
        const datagram = wholeDatagram(sent)
        note(datagram)
        forward.carry(datagram, arrive)
      },
      connected: sendNext,
      refused: (error) => {
        over = true
        violations.push(error.message)
      },
      ended: () => (over = true),
      fail: (error) => violations.push(String(error)),
    },
  })

  call.start(0)
  const tick = () => {
    call.tick(callerUs())
    endpoint.tick(timeline.nowUs)
    if (!over || endpoint.busy) timeline.at(TICK_US, tick)
  }
  tick()
  const limitUs = options.packets * options.intervalUs + 30_000_000
  timeline.run(limitUs)
  if (timeline.nowUs > limitUs) violations.push('it never ends')
  if (sink.position > sent) violations.push(`${sink.position} accounted for, ${sent} sent`)

  return {
    pushed: sink.pushed,
    gaps: sink.gaps,
    end: sink.endReason,
    violations,
    sender: call.stats(),
    receiver: sink.connection?.stats(),
    overruns: forward.overruns,
    longestPauseUs,
    dropRequests,
    packetsByKey,
    datagrams: { toListener: forward.carried, toCaller: backward.carried },
  }
}

/** Violations by an ACK or a NAK beyond the highest packet received, over which libsrt breaks the connection. */
export function claims(datagram: Buffer, highest: number | undefined): string[] {
  if (!isControl(datagram) || highest === undefined) return []
  const type = controlType(datagram)
  if (type === ControlType.ACK) {
    const { nextExpected } = decodeAck(datagram)!
    return sequenceDistance(highest, nextExpected) > 1 ? ['an ACK beyond what was received'] : []
  }
  if (type !== ControlType.NAK) return []
  const ranges = decodeLossList(datagram)
  if (ranges === undefined) return ['a NAK that cannot be read']
  return ranges.some(({ last }) => sequenceDistance(last, highest) <= 0)
    ? ['a NAK above what was received']
    : []
}

/** One direction of the link. */
export class Wire {
  readonly #timeline: Timeline
  readonly #impairment: Impairment
  readonly #usPerByte: number
  /** Time at which the queue will be empty. */
  #freeUs = 0
  #lastDueUs = 0
  carried = 0
  overruns = 0

  constructor(timeline: Timeline, impairment: Impairment, bandwidthBps = Infinity) {
    this.#timeline = timeline
    this.#impairment = impairment
    this.#usPerByte = 8e6 / bandwidthBps
  }

  carry(datagram: Buffer, deliver: (datagram: Buffer) => void): void {
    this.carried++
    const { nowUs } = this.#timeline
    this.#freeUs = Math.max(this.#freeUs, nowUs) + datagram.length * this.#usPerByte
    if (this.#freeUs > nowUs + MAX_QUEUE_US) {
      this.#freeUs -= datagram.length * this.#usPerByte
      this.overruns++
      return
    }
    for (const { delayMs, ordered, datagram: copy } of this.#impairment.push(datagram)) {
      let dueUs = this.#freeUs + delayMs * 1000
      if (ordered) dueUs = this.#lastDueUs = Math.max(dueUs, this.#lastDueUs)
      // Each datagram has a buffer of its own, as from a socket: the receiver may write to it.
      this.#timeline.at(dueUs - nowUs, () => deliver(Buffer.from(copy)))
    }
  }
}

/** Future events in order of time; those of the same time in the order in which they were added. */
export class Timeline {
  nowUs = 0
  /** A binary heap by time, then by number. */
  readonly #heap: { atUs: number; number: number; action: () => void }[] = []
  #number = 0

  at(delayUs: number, action: () => void): void {
    const heap = this.#heap
    const event = { atUs: this.nowUs + delayUs, number: this.#number++, action }
    let index = heap.push(event) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!isBefore(event, heap[parent]!)) break
      heap[index] = heap[parent]!
      index = parent
    }
    heap[index] = event
  }

  /** Runs until no event is left, or until `limitUs`. */
  run(limitUs: number): void {
    while (this.#heap.length > 0 && this.nowUs <= limitUs) {
      const { atUs, action } = this.#take()
      this.nowUs = atUs
      action()
    }
  }

  #take() {
    const heap = this.#heap
    const first = heap[0]!
    const moved = heap.pop()!
    if (heap.length === 0) return first
    let index = 0
    for (;;) {
      let child = index * 2 + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (!isBefore(heap[child]!, moved)) break
      heap[index] = heap[child]!
      index = child
    }
    heap[index] = moved
    return first
  }
}

function isBefore(a: { atUs: number; number: number }, b: { atUs: number; number: number }) {
  return a.atUs < b.atUs || (a.atUs === b.atUs && a.number < b.number)
}
