/**
 * Lines of one sender, which are one peer to SRT.
 *
 * @module
 */
import { RateMeter } from '../rate-meter.ts'
import type { LineStats } from '../stats.ts'
import { isControl, isRetransmitted, sequenceNumber } from '../wire/packet.ts'
import { TokenBucket } from '../../timing/token-bucket.ts'
import type { RemoteAddress } from './group-ids.ts'
import { ACKED_PACKETS, encodeSrtlaAck, type SenderReport } from './packet.ts'

/** Silence after which a line is gone, and time after its last line when a group is gone. */
const SILENCE_US = 10_000_000

const MAX_LINES = 8

/** Max rate of KEEPALIVEs echoed on a line: senders send about one a second, and a few to probe. */
const KEEPALIVES_PER_SEC = 20

export class Line {
  readonly group: LineGroup
  /** 1 to 8: the lowest that is free in the group. */
  readonly number: number
  readonly address: string
  readonly port: number
  readonly keepalives: TokenBucket
  readonly #rate: RateMeter
  /** Sequence numbers of the data packets since the latest ACK. */
  #unacknowledged: number[] = []
  #retransmitted = 0
  packets = 0
  /** Datagrams as they came, headers of SRT included. */
  bytes = 0
  heardUs: number
  report: SenderReport | undefined

  constructor(group: LineGroup, number: number, { address, port }: RemoteAddress, nowUs: number) {
    this.group = group
    this.number = number
    this.address = address
    this.port = port
    this.heardUs = nowUs
    this.#rate = new RateMeter(nowUs)
    this.keepalives = new TokenBucket(KEEPALIVES_PER_SEC, nowUs)
  }

  /**
   * Counts a packet of SRT, with a complete header.
   *
   * @returns an ACK after every tenth data packet
   */
  count(datagram: Buffer): Buffer | undefined {
    this.bytes += datagram.length
    if (isControl(datagram)) return undefined
    this.packets++
    if (isRetransmitted(datagram)) this.#retransmitted++
    this.#unacknowledged.push(sequenceNumber(datagram))
    if (this.#unacknowledged.length < ACKED_PACKETS) return undefined
    const ack = encodeSrtlaAck(this.#unacknowledged)
    this.#unacknowledged = []
    return ack
  }

  tick(nowUs: number): void {
    this.#rate.tick(this, nowUs)
  }

  stats(): LineStats {
    return {
      line: this.number,
      remoteAddress: this.address,
      remotePort: this.port,
      mbpsRecvRate: (this.#rate.bytesPerSec * 8) / 1e6,
      byteRecvTotal: this.bytes,
      pktRecvTotal: this.packets,
      pktRcvRetransTotal: this.#retransmitted,
      ...(this.report && { msRtt: this.report.rttMs, pktSndLossTotal: this.report.naks }),
    }
  }
}

export class LineGroup {
  /** Address of the founder: proved, and the same for as long as the group lives. */
  readonly address: string
  /** Port of the founder, or the next one that no other group has at this address. */
  readonly port: number
  #lines: readonly Line[] = []
  /** Line of the latest packet of SRT; undefined without lines. */
  latest: Line | undefined
  /** Latest time at which there was a line. */
  #livedUs: number

  constructor({ address, port }: RemoteAddress, nowUs: number) {
    this.address = address
    this.port = port
    this.#livedUs = nowUs
  }

  get lines(): readonly Line[] {
    return this.#lines
  }

  /** @returns undefined if the group has all its lines */
  join(remote: RemoteAddress, nowUs: number): Line | undefined {
    const numbers = Array.from({ length: MAX_LINES }, (_, index) => index + 1)
    const number = numbers.find((each) => this.#lines.every((line) => line.number !== each))
    if (number === undefined) return undefined
    const line = new Line(this, number, remote, nowUs)
    this.#lines = [...this.#lines, line]
    this.latest ??= line
    return line
  }

  /** @returns lines that are gone, and left the group */
  tick(nowUs: number): readonly Line[] {
    if (this.#lines.length > 0) this.#livedUs = nowUs
    for (const line of this.#lines) line.tick(nowUs)
    const gone = this.#lines.filter(({ heardUs }) => nowUs - heardUs >= SILENCE_US)
    this.#lines = this.#lines.filter((line) => !gone.includes(line))
    if (gone.includes(this.latest!))
      [this.latest] = this.#lines.toSorted((a, b) => b.heardUs - a.heardUs)
    return gone
  }

  isGone(nowUs: number): boolean {
    return nowUs - this.#livedUs >= SILENCE_US
  }
}
