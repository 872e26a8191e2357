/**
 * Our caller publishes to foreign listeners, over networks of several kinds. They hold everything back for the latency,
 * so each of these takes that long more than the stream.
 */
import t from 'tap'
import { decodeAck } from '../../../src/srt/wire/ack.ts'
import { sequenceDistance } from '../../../src/srt/wire/counters.ts'
import { decodeDropRequest } from '../../../src/srt/wire/drop-request.ts'
import type { LossRange } from '../../../src/srt/wire/loss-list.ts'
import {
  ControlType,
  controlType,
  encryptionKeyFlag,
  isControl,
  sequenceNumber,
} from '../../../src/srt/wire/packet.ts'
import { requireTool } from '../support/tools.ts'
import { startRelay } from '../../support/udp-relay.ts'
import { connectOptions, PAYLOAD_BYTES, publishWith, type CallEncryption } from './publishers.ts'
import { listen, RECEIVERS, type Receiver } from './receivers.ts'
import { difference, play } from './reception.ts'

/** 3 s of 2.1 Mbit/s. */
const PACKETS = 600

interface Cell {
  readonly receiver: keyof typeof RECEIVERS
  /** Loss in both directions. */
  readonly lossPercent: number
  readonly rttMs: number
  /** Length of the encryption key in bytes; a new key every 300 packets. */
  readonly keyBytes?: CallEncryption['keyBytes']
  /** The first packet lies shortly before the end of both counters (draft-sharabayko-srt 3). */
  readonly wraps?: boolean
  /** The receiver reports a loss once; a NAK that is lost is not repeated (no PERIODICNAK). */
  readonly asksOnce?: boolean
}

const CELLS: readonly Cell[] = [
  { receiver: 'srt-live-transmit', lossPercent: 0, rttMs: 600 },
  { receiver: 'srt-live-transmit', lossPercent: 10, rttMs: 100 },
  { receiver: 'srt-live-transmit', lossPercent: 1, rttMs: 1, wraps: true },
  { receiver: 'srt-live-transmit', lossPercent: 20, rttMs: 50, asksOnce: true },
  { receiver: 'ffmpeg', lossPercent: 0, rttMs: 1 },
  { receiver: 'ffmpeg', lossPercent: 5, rttMs: 300 },
  { receiver: 'ffmpeg', lossPercent: 5, rttMs: 100, wraps: true },
  { receiver: 'GStreamer', lossPercent: 10, rttMs: 1 },
  { receiver: 'GStreamer', lossPercent: 1, rttMs: 100 },
  { receiver: 'srt-live-transmit', lossPercent: 0, rttMs: 1, keyBytes: 16 },
  { receiver: 'srt-live-transmit', lossPercent: 5, rttMs: 100, keyBytes: 32 },
  { receiver: 'srt-live-transmit', lossPercent: 1, rttMs: 1, keyBytes: 32, wraps: true },
  { receiver: 'ffmpeg', lossPercent: 10, rttMs: 1, keyBytes: 24 },
  { receiver: 'ffmpeg', lossPercent: 1, rttMs: 100, keyBytes: 32 },
  { receiver: 'GStreamer', lossPercent: 5, rttMs: 1, keyBytes: 16 },
]

const PASSPHRASE = 'what-both-sides-know'

const REFRESH = [300, 140] as const

/**
 * Packets without acknowledgement. More are more than the receiver's socket holds, where a busy machine has held it up; with new
 * keys they are fewer than lie between a key and its replacement by the next but one, which ends all repairs.
 */
const MAX_AHEAD = 80
const MAX_AHEAD_REKEYED = 30

/** libsrt misses a wrap between the handshake and the first packet, which may take seconds on a busy machine. */
const BEFORE_WRAP = {
  initialSequenceNumber: 2 ** 31 - 200,
  startTimestampUs: 2 ** 32 - 4_000_000,
}

t.jobs = 4

for (const [index, cell] of CELLS.entries()) {
  const { receiver, lossPercent, rttMs, keyBytes, wraps = false, asksOnce = false } = cell
  const security = keyBytes === undefined ? 'clear' : `AES-${keyBytes * 8} rekeyed`
  const title = `to ${receiver}, ${security}, loss ${lossPercent} %, RTT ${rttMs} ms`
  const specialty = wraps ? ', across the ends of the counters' : asksOnce ? ', asking once' : ''
  t.test(`${title}${specialty}: every byte arrives`, { buffered: true }, async (t) => {
    const peer: Receiver = RECEIVERS[receiver]
    if (!requireTool(t, peer.tool)) return
    const query = asksOnce ? 'nakreport=0' : keyBytes && `passphrase=${PASSPHRASE}`
    const listener = await listen(t, peer, query)
    const keyFlags = new Set<number>()
    let firstSequence = 0
    let acknowledged = 0
    // srt-live-transmit and ffmpeg stop listening when they accept: an answer that is lost is never repeated.
    const link = { loss: lossPercent / 100, delayMs: rttMs / 2, sparesHandshakes: true }
    const relay = startRelay({
      targetPort: listener.port,
      seed: index,
      forward: link,
      backward: link,
      tap: (direction, datagram) => {
        if (direction === 'forward' && !isControl(datagram)) {
          if (keyFlags.size === 0) firstSequence = sequenceNumber(datagram)
          keyFlags.add(encryptionKeyFlag(datagram))
        } else if (direction === 'backward' && controlType(datagram) === ControlType.ACK) {
          acknowledged = sequenceDistance(firstSequence, decodeAck(datagram)!.nextExpected)
        }
      },
    })
    t.teardown(() => relay.close())
    const publication = publishWith(t, {
      host: '127.0.0.1',
      port: relay.port,
      // Time for many rounds, each of which takes longer on a busy machine.
      latencyMs: asksOnce ? 8000 : Math.min(8 * rttMs + 5000, 8000),
      ...(wraps && BEFORE_WRAP),
      ...(keyBytes && connectOptions({ passphrase: PASSPHRASE, keyBytes, refresh: REFRESH })),
    })
    const packets = wraps ? 2 * PACKETS : PACKETS
    const maxAhead = keyBytes === undefined ? MAX_AHEAD : MAX_AHEAD_REKEYED
    const arrived = (bytes: number) => listener.bytes().length >= bytes
    const stream = await play(publication, packets, arrived, (packet) => {
      return packet < acknowledged + maxAhead
    })
    t.equal(difference(listener.bytes(), stream), '')
    t.equal(publication.output(), '')
    t.strictSame(keyFlags, new Set(keyBytes === undefined ? [0] : [1, 2]))
    if (lossPercent > 0) t.ok(relay.counters('forward').lost > 0)
  })
}

t.test(
  'srt-live-transmit continues after drop requests for dropped packets',
  { buffered: true },
  async (t) => {
    if (!requireTool(t, 'srt-live-transmit')) return
    const gone = { first: 1100, last: 1104 }
    const listener = await listen(t, RECEIVERS['srt-live-transmit'], 'latency=1000')
    const dropRequests: (LossRange | undefined)[] = []
    // Half the round trip longer than we keep a packet, libsrt still asks for it.
    const link = { delayMs: 300 }
    const relay = startRelay({
      targetPort: listener.port,
      forward: link,
      backward: link,
      alter: (direction, datagram) => {
        if (direction === 'backward') return true
        if (isControl(datagram)) {
          if (controlType(datagram) === ControlType.DROPREQ) {
            dropRequests.push(decodeDropRequest(datagram))
          }
          return true
        }
        const sequence = sequenceNumber(datagram)
        return sequence < gone.first || sequence > gone.last
      },
    })
    t.teardown(() => relay.close())
    const publication = publishWith(t, {
      host: '127.0.0.1',
      port: relay.port,
      initialSequenceNumber: 1000,
    })
    const goneBytes = 5 * PAYLOAD_BYTES
    const stream = await play(
      publication,
      PACKETS,
      (bytes) => listener.bytes().length >= bytes - goneBytes,
    )
    const at = 100 * PAYLOAD_BYTES
    const rest = Buffer.concat([stream.subarray(0, at), stream.subarray(at + goneBytes)])
    t.equal(difference(listener.bytes(), rest), '')
    // How many of them a request names depends on when libsrt asks, and when it gives up by itself.
    t.ok(dropRequests.length > 0)
    t.notOk(
      dropRequests.find((range) => !range || range.first < gone.first || range.last > gone.last),
      'only what is gone is dropped',
    )
    t.equal(publication.output(), '')
  },
)
