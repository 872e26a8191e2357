/**
 * Sender of a socket group, which does what libsrt 1.5 does: lines with the sequence numbers and timestamps of the group. In a
 * broadcast group, a packet goes over all lines; a line that joins begins with the next one. In a backup group, it goes over
 * the line of the highest weight, until that one is unstable: another line then also sends what is not acknowledged. No IO and
 * no clock.
 *
 * @module
 */
import { HandshakeInitiator } from '../../src/srt/handshake/handshake-initiator.ts'
import { RttEstimator } from '../../src/srt/rtt-estimator.ts'
import { Sender } from '../../src/srt/send/sender.ts'
import { Transmitter } from '../../src/srt/transmitter.ts'
import { decodeAck } from '../../src/srt/wire/ack.ts'
import { addToSequence, sequenceDistance } from '../../src/srt/wire/counters.ts'
import { encodeDropRequest } from '../../src/srt/wire/drop-request.ts'
import {
  decodeExtensions,
  encodeGroupExtension,
  GroupType,
  type GroupExtension,
} from '../../src/srt/wire/extension.ts'
import { ExtensionFlag, HandshakeType } from '../../src/srt/wire/handshake.ts'
import { decodeLossList } from '../../src/srt/wire/loss-list.ts'
import {
  ControlType,
  controlType,
  destinationSocketId,
  HEADER_BYTES,
  isControl,
  typeSpecificInformation,
} from '../../src/srt/wire/packet.ts'

const KEEPALIVE_US = 1_000_000
/** Silence of the listener after which a line is closed, and time until it calls again. */
const DEAD_US = 5_000_000
const REDIAL_US = 1_000_000
/** Min silence after which a line is unstable (`SRTO_GROUPMINSTABLETIMEO`), and time for which two lines send. */
const MIN_STABLE_US = 60_000
const OVERLAP_US = 1_000_000

export interface GroupSenderOptions {
  /** A `GroupType`. */
  readonly type: number
  /** Weights of the lines. */
  readonly weights: readonly number[]
  readonly groupId: number
  readonly streamId: string
  readonly latencyMs: number
  readonly initialSequenceNumber: number
  readonly nowUs: number
  readonly host: GroupSenderHost
}

interface GroupSenderHost {
  /** Transmits a datagram over a line, by its index. */
  send(line: number, datagram: Buffer): void
  /** The line is about to call, which it does from a port of its own each time. */
  dial?(line: number): void
  /** The listener refused the line, or did not answer. */
  refused?(line: number, error: Error): void
}

interface Packet {
  readonly payload: Buffer
  readonly pushedUs: number
}

/** Line from its call to its end. */
class Line {
  readonly index: number
  readonly weight: number
  state: 'away' | 'calling' | 'idle' | 'active' = 'away'
  socketId = 0
  /** Sequence number in its handshake. */
  calledFrom = 0
  /** First sequence number since it is active. */
  sendsFrom = 0
  initiator: HandshakeInitiator | undefined
  transmitter: Transmitter | undefined
  sender: Sender | undefined
  rtt = new RttEstimator()
  heardUs = -Infinity
  sentUs = -Infinity
  changedUs = -Infinity

  constructor(index: number, weight: number) {
    this.index = index
    this.weight = weight
  }

  get isConnected(): boolean {
    return this.state === 'idle' || this.state === 'active'
  }
}

/** Inputs: `call` for each line, `push`, `handleDatagram`, `tick` every 10 ms, `close`. */
export class GroupSender {
  readonly lines: readonly Line[]
  readonly #options: GroupSenderOptions
  /** Packets that no line has an ACK of, of the latest second at least. */
  readonly #unacknowledged: Packet[] = []
  /** Sequence number of the next packet. */
  #end: number
  /** The listener's id of the group. */
  #peerGroupId: number | undefined
  #peerLatencyUs = 0
  #calls = 0
  /** Time of the latest input. */
  #nowUs = 0
  #isClosed = false

  constructor(options: GroupSenderOptions) {
    this.#options = options
    this.#end = options.initialSequenceNumber
    this.lines = options.weights.map((weight, index) => new Line(index, weight))
  }

  call(index: number, nowUs: number): void {
    const { latencyMs, streamId, host, nowUs: startUs, ...options } = this.#options
    const line = this.lines[index]!
    const membership = { groupId: options.groupId, type: options.type, weight: line.weight }
    this.#change(line, 'calling', nowUs)
    line.socketId = ++this.#calls
    line.calledFrom = this.#end
    host.dial?.(index)
    line.initiator = new HandshakeInitiator({
      ...{ remoteAddress: '127.0.0.1', remotePort: 0, socketId: line.socketId, streamId },
      ...{ latencyMs, peerLatencyMs: latencyMs, initialSequenceNumber: this.#end },
      startTimestampUs: nowUs - startUs,
      ...{ receiveWindowPackets: 8192, connectTimeoutUs: 3_000_000 },
      host: {
        transmit: (datagram) => host.send(index, asMember(datagram, membership)),
        accepted: ({ handshake, hs }, atUs) => {
          line.rtt = new RttEstimator()
          line.sender = undefined
          line.transmitter = new Transmitter({
            peerSocketId: handshake.socketId,
            ...{ startUs, startTimestampUs: 0, nowUs: atUs },
            send: (datagram) => {
              line.sentUs = this.#nowUs
              host.send(index, Buffer.concat([datagram].flat()))
            },
          })
          this.#change(line, 'idle', atUs)
          this.#peerLatencyUs = hs.receiverDelayMs * 1000
        },
        refused: (error) => {
          this.#change(line, 'away', this.#nowUs)
          host.refused?.(index, error)
        },
      },
    })
    line.initiator.start(nowUs)
  }

  #change(line: Line, state: Line['state'], nowUs: number): void {
    line.state = state
    line.changedUs = nowUs
    line.heardUs = nowUs
  }

  /** @param payload  must not be changed afterwards */
  push(payload: Buffer, nowUs: number): void {
    this.#nowUs = nowUs
    this.#choose(nowUs)
    this.#unacknowledged.push({ payload, pushedUs: nowUs })
    this.#end = addToSequence(this.#end, 1)
    for (const { state, sender } of this.lines) if (state === 'active') sender!.push(payload, nowUs)
  }

  handleDatagram(index: number, datagram: Buffer, nowUs: number): void {
    this.#nowUs = nowUs
    const line = this.lines[index]!
    if (!isControl(datagram) || destinationSocketId(datagram) !== line.socketId) return
    const type = controlType(datagram)
    if (type === ControlType.HANDSHAKE) {
      if (line.state === 'calling') this.#handleHandshake(line, datagram)
      return
    }
    if (!line.isConnected) return
    line.heardUs = nowUs
    if (type === ControlType.ACK) {
      const ack = decodeAck(datagram)!
      line.sender?.handleAck(ack, typeSpecificInformation(datagram), nowUs)
      this.#forgetUntil(ack.nextExpected)
    } else if (type === ControlType.NAK) {
      const ranges = decodeLossList(datagram)!
      line.sender?.handleNak(ranges, nowUs)
      for (const { first, last } of ranges) {
        if (sequenceDistance(first, line.sendsFrom) <= 0) continue
        const before = addToSequence(line.sendsFrom, -1)
        const range = { first, last: sequenceDistance(before, last) > 0 ? before : last }
        line.transmitter!.sendControl(ControlType.DROPREQ, 0, encodeDropRequest(range), nowUs)
      }
    } else if (type === ControlType.SHUTDOWN) this.#change(line, 'away', nowUs)
  }

  #handleHandshake(line: Line, datagram: Buffer): void {
    line.initiator!.handleDatagram(datagram, this.#nowUs)
    if (!line.isConnected) return
    const groupId = decodeExtensions(datagram)?.group?.groupId
    this.#peerGroupId ??= groupId
    // libsrt closes the line.
    if (groupId === undefined || groupId !== this.#peerGroupId)
      throw new Error(`the listener's id of the group is ${groupId}, expected ${this.#peerGroupId}`)
  }

  #forgetUntil(sequence: number): void {
    const first = addToSequence(this.#end, -this.#unacknowledged.length)
    const count = sequenceDistance(first, sequence)
    if (count > 0 && count <= this.#unacknowledged.length) this.#unacknowledged.splice(0, count)
  }

  tick(nowUs: number): void {
    this.#nowUs = nowUs
    const dropUs = nowUs - Math.max(this.#peerLatencyUs, 1_000_000)
    while ((this.#unacknowledged[0]?.pushedUs ?? nowUs) < dropUs) this.#unacknowledged.shift()
    for (const line of this.lines) {
      if (line.state === 'calling') line.initiator!.tick(nowUs)
      const isDead = line.isConnected && nowUs - line.heardUs >= DEAD_US
      if (isDead) this.#hangUp(line, nowUs)
      const isDue = line.state === 'away' && nowUs - line.changedUs >= REDIAL_US
      if (isDue && line.initiator !== undefined && !this.#isClosed) this.call(line.index, nowUs)
      if (!line.isConnected) continue
      line.sender?.tick(nowUs)
      if (nowUs - line.sentUs >= KEEPALIVE_US) this.#keepAlive(line, nowUs)
    }
    this.#choose(nowUs)
  }

  #keepAlive({ transmitter }: Line, nowUs: number): void {
    transmitter!.sendControl(ControlType.KEEPALIVE, 0, undefined, nowUs)
  }

  /** Decides which lines send. */
  #choose(nowUs: number): void {
    const byWeight = this.lines
      .filter(({ isConnected }) => isConnected)
      .toSorted((a, b) => b.weight - a.weight)
    const idle = byWeight.filter(({ state }) => state === 'idle')
    if (this.#options.type === GroupType.BROADCAST) {
      for (const line of idle) this.#activate(line, nowUs)
      return
    }
    const isStable = ({ heardUs, rtt }: Line) =>
      nowUs - heardUs <= Math.max(MIN_STABLE_US, 2 * rtt.rttUs + 4 * rtt.varianceUs)
    const stable = byWeight.filter((line) => line.state === 'active' && isStable(line))
    const [spare] = idle
    const [used] = stable
    if (spare !== undefined && (used === undefined || spare.weight > used.weight))
      this.#activate(spare, nowUs)
    if (used === undefined || nowUs - used.changedUs < OVERLAP_US) return
    for (const line of stable) {
      if (line === used) continue
      line.state = 'idle'
      this.#keepAlive(line, nowUs)
    }
  }

  #activate(line: Line, nowUs: number): void {
    const isBackup = this.#options.type === GroupType.BACKUP
    const packets = isBackup ? this.#unacknowledged : []
    this.#change(line, 'active', nowUs)
    line.sendsFrom = addToSequence(this.#end, -packets.length)
    const sender = new Sender({
      initialSequenceNumber: line.sendsFrom,
      ...{ bufferPackets: 8192, peerWindowPackets: 8192, peerRepeatsNaks: true },
      ...{ peerLatencyUs: this.#peerLatencyUs, maxBandwidthBps: 1e9 },
      ...{ rtt: line.rtt, transmitter: line.transmitter!, nowUs },
    })
    line.sender = sender
    for (const { payload, pushedUs } of packets) sender.push(payload, pushedUs)
  }

  #hangUp(line: Line, nowUs: number): void {
    line.transmitter!.sendControl(ControlType.SHUTDOWN, 0, undefined, nowUs)
    this.#change(line, 'away', nowUs)
  }

  /** Ends all lines. */
  close(nowUs: number): void {
    this.#nowUs = nowUs
    this.#isClosed = true
    for (const line of this.lines) if (line.isConnected) this.#hangUp(line, nowUs)
  }
}

/** Adds the membership of a group to a conclusion; other datagrams stay as they are. */
export function asMember(datagram: Buffer, membership: GroupExtension): Buffer {
  if (!isControl(datagram) || controlType(datagram) !== ControlType.HANDSHAKE) return datagram
  if (datagram.readInt32BE(HEADER_BYTES + 20) !== HandshakeType.CONCLUSION) return datagram
  const whole = Buffer.concat([datagram, encodeGroupExtension(membership)])
  whole.writeUInt16BE(whole.readUInt16BE(HEADER_BYTES + 6) | ExtensionFlag.CONFIG, HEADER_BYTES + 6)
  return whole
}
