/**
 * A flood on the port of a publisher, on a simulated clock and without a socket, so without drops by the kernel.
 */
import t from 'tap'
import { Call } from '../../../src/srt/connection/call.ts'
import { Endpoint } from '../../../src/srt/connection/endpoint.ts'
import type { Attempt } from '../../../src/srt/handshake/attempt.ts'
import { encodeHsExtension, ExtensionType, LIVE_FLAGS } from '../../../src/srt/wire/extension.ts'
import { encodeHandshake, HandshakeType, type Handshake } from '../../../src/srt/wire/handshake.ts'
import { createRandom } from '../../support/random.ts'
import { ENDPOINT_OPTIONS } from '../endpoint-options.ts'
import { wholeDatagram } from '../whole-datagram.ts'

const ATTACKER = { address: '198.51.100.66', port: 6666 }
const PUBLISHER = { address: '192.0.2.1', port: 40_000 }
const SECONDS = 2
const INDUCTIONS_PER_SEC = 20_000
const WRONG_COOKIES_PER_SEC = 5000
const PACKETS_PER_SEC = 500

function forge(handshake: Partial<Handshake>, blocks: Buffer[] = []): Buffer {
  const whole: Handshake = {
    version: 5,
    encryptionField: 0,
    extensionField: 1,
    initialSequenceNumber: 1000,
    mtuBytes: 1500,
    flowWindowPackets: 8192,
    type: HandshakeType.CONCLUSION,
    socketId: 666,
    cookie: 0,
    ...handshake,
  }
  const { address: peerAddress } = ATTACKER
  return encodeHandshake(whole, { socketId: 0, timestampUs: 0, peerAddress, blocks })
}

t.test(
  'a publisher loses nothing at 20,000 inductions and 5000 wrong cookies a second',
  async (t) => {
    const random = createRandom(1)
    const received: number[] = []
    const attempts: Attempt[] = []
    let answers = 0
    /** Delivers responses after the call that sent them. */
    const toPublisher: Buffer[] = []
    let nowUs = 0

    const endpoint = new Endpoint({
      ...ENDPOINT_OPTIONS,
      random: random.bytes,
      nowUs,
      host: {
        transmit: (datagram, port) => {
          if (port === PUBLISHER.port) toPublisher.push(wholeDatagram(datagram))
          else answers++
        },
        request: (attempt) => attempts.push(attempt),
        expire: () => {},
        fail: (error) => t.fail(String(error)),
      },
    })
    const call = new Call({
      remoteAddress: '192.0.2.2',
      remotePort: 10_080,
      socketId: 77,
      streamId: 'mode=publish',
      latencyMs: 120,
      peerLatencyMs: 120,
      initialSequenceNumber: 0,
      startTimestampUs: 0,
      sendBufferPackets: 8192,
      maxBandwidthBps: 1e9,
      connectTimeoutUs: 3_000_000,
      idleTimeoutUs: 5_000_000,
      host: {
        transmit: (datagram) =>
          endpoint.handleDatagram(
            wholeDatagram(datagram),
            PUBLISHER.port,
            PUBLISHER.address,
            nowUs,
          ),
        connected: () => {},
        refused: (error) => t.fail(error.message),
        ended: (reason) => t.fail(reason),
        fail: (error) => t.fail(String(error)),
      },
    })
    const deliver = () => {
      for (const datagram of toPublisher.splice(0)) call.handleDatagram(datagram, nowUs)
    }
    call.start(nowUs)
    deliver()
    const sink = {
      open: () => {},
      push: (payload: Buffer) => received.push(payload.readUInt32BE()),
      gap: (lostPackets: number) => t.fail(`${lostPackets} packets lost`),
      end: (reason: string) => t.fail(reason),
    }
    endpoint.decide(attempts[0]!, { sink }, nowUs)
    deliver()

    const hs = { srtVersion: 0x010501, flags: LIVE_FLAGS, receiverDelayMs: 120, senderDelayMs: 0 }
    const block = encodeHsExtension(ExtensionType.HSREQ, hs)
    const flood = (datagram: Buffer) =>
      endpoint.handleDatagram(datagram, ATTACKER.port, ATTACKER.address, nowUs)
    const packets = SECONDS * PACKETS_PER_SEC
    for (let number = 0; number < packets; number++) {
      nowUs += 1e6 / PACKETS_PER_SEC
      for (let i = 0; i < INDUCTIONS_PER_SEC / PACKETS_PER_SEC; i++) {
        flood(forge({ version: 4, type: HandshakeType.INDUCTION, socketId: 1 + random.below(1e9) }))
      }
      for (let i = 0; i < WRONG_COOKIES_PER_SEC / PACKETS_PER_SEC; i++) {
        flood(forge({ socketId: 1 + random.below(1e9), cookie: random.below(2 ** 31) }, [block]))
      }
      const payload = Buffer.alloc(1316)
      payload.writeUInt32BE(number)
      if (!call.send(payload, nowUs)) t.fail('the send buffer is full')
      if (number % 5 === 0) {
        call.tick(nowUs)
        endpoint.tick(nowUs)
      }
      deliver()
    }

    t.equal(received.length, packets)
    t.ok(received.every((number, index) => number === index))
    t.match(endpoint.stats, {
      inductions: SECONDS * INDUCTIONS_PER_SEC + 1,
      badCookies: SECONDS * WRONG_COOKIES_PER_SEC,
      accepted: 1,
    })
    const answered = 1000 * (SECONDS + 1)
    t.ok(answers <= answered, `${answers} answers, a second’s worth ahead at most`)
    t.equal(attempts.length, 1, 'no other caller')
    t.equal(endpoint.connectionCount, 1)
  },
)
