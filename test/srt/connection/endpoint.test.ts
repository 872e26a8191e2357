/**
 * The listener's side without a socket: responses to handshakes, packets of connections, and drops.
 */
import * as fc from 'fast-check'
import t from 'tap'
import { RejectCode } from '../../../src/srt/wire/reject-code.ts'
import { Endpoint } from '../../../src/srt/connection/endpoint.ts'
import type { Attempt } from '../../../src/srt/handshake/attempt.ts'
import type { CloseReason, PayloadSink, SrtConnection } from '../../../src/srt/types.ts'
import {
  decodeExtensions,
  encodeBlock,
  encodeHsExtension,
  encodeStreamIdExtension,
  ExtensionType,
  HsFlag,
  LIVE_FLAGS,
} from '../../../src/srt/wire/extension.ts'
import {
  decodeHandshake,
  encodeHandshake,
  HandshakeType,
  SRT_MAGIC,
  type Handshake,
} from '../../../src/srt/wire/handshake.ts'
import {
  ControlType,
  controlType,
  destinationSocketId,
  HEADER_BYTES,
  isControl,
  timestampUs,
  typeSpecificInformation,
  writeControlHeader,
  writeDataHeader,
} from '../../../src/srt/wire/packet.ts'
import { createRandom } from '../../support/random.ts'
import { ENDPOINT_OPTIONS } from '../endpoint-options.ts'
import { wholeDatagram } from '../whole-datagram.ts'

const ADDRESS = '192.0.2.7'
const PORT = 40_000
const CALLER_ID = 0x1234567
const FIRST = 1000

const INDUCTION: Handshake = {
  version: 4,
  encryptionField: 0,
  extensionField: 2,
  initialSequenceNumber: FIRST,
  mtuBytes: 1500,
  flowWindowPackets: 8192,
  type: HandshakeType.INDUCTION,
  socketId: CALLER_ID,
  cookie: 0,
}
const CONCLUSION: Handshake = {
  ...INDUCTION,
  version: 5,
  extensionField: 5,
  type: HandshakeType.CONCLUSION,
}
const HS = { srtVersion: 0x010501, flags: LIVE_FLAGS, receiverDelayMs: 120, senderDelayMs: 0 }

/** Endpoint with its sent datagrams, attempts, expired attempts and failures. */
function createEndpoint() {
  const sent: { datagram: Buffer; port: number; address: string }[] = []
  const attempts: Attempt[] = []
  const expired: Attempt[] = []
  const failures: unknown[] = []
  const endpoint = new Endpoint({
    ...ENDPOINT_OPTIONS,
    latencyMs: 200,
    random: createRandom(1).bytes,
    nowUs: 0,
    host: {
      transmit: (datagram, port, address) =>
        sent.push({ datagram: wholeDatagram(datagram), port, address }),
      request: (attempt) => attempts.push(attempt),
      expire: (attempt) => expired.push(attempt),
      fail: (error) => failures.push(error),
    },
  })
  const send = (datagram: Buffer, nowUs = 0, port = PORT, address = ADDRESS): Buffer[] => {
    endpoint.handleDatagram(datagram, port, address, nowUs)
    return sent.splice(0).map((one) => one.datagram)
  }
  /** @returns the cookie for a caller at this place */
  const induce = (handshake = INDUCTION, nowUs = 0, port = PORT, address = ADDRESS) => {
    const [answer] = send(encode(handshake), nowUs, port, address)
    return decodeHandshake(answer!)!.cookie
  }
  return {
    endpoint,
    attempts,
    expired,
    failures,
    send,
    induce,
    take: () => sent.splice(0).map(({ datagram }) => datagram),
    /** Sends a conclusion with a valid cookie. */
    conclude(
      handshake: Partial<Handshake> = {},
      blocks = [hsBlock()],
      nowUs = 0,
      address = ADDRESS,
    ): Buffer[] {
      const conclusion = { ...CONCLUSION, ...handshake }
      const cookie = induce({ ...INDUCTION, socketId: conclusion.socketId }, nowUs, PORT, address)
      return send(encode({ ...conclusion, cookie }, blocks), nowUs, PORT, address)
    },
    /** Ticks every 10 ms until `nowUs`. */
    waitUntil(nowUs: number, fromUs = 0): Buffer[] {
      for (let at = fromUs; at <= nowUs; at += 10_000) endpoint.tick(at)
      return sent.splice(0).map(({ datagram }) => datagram)
    },
  }
}

const hsBlock = (hs = HS) => encodeHsExtension(ExtensionType.HSREQ, hs)

function encode(handshake: Handshake, blocks: Buffer[] = [], sentUs = 7000): Buffer {
  return encodeHandshake(handshake, {
    socketId: 0,
    timestampUs: sentUs,
    peerAddress: '192.0.2.1',
    blocks,
  })
}

function dataPacket(socketId: number, sequence: number, payload = 'data'): Buffer {
  const datagram = Buffer.alloc(HEADER_BYTES + payload.length)
  writeDataHeader(datagram, { sequence, message: 1, timestampUs: 8000, socketId })
  datagram.write(payload, HEADER_BYTES)
  return datagram
}

function control(type: ControlType, socketId: number, bytes = 4, information = 0): Buffer {
  const datagram = Buffer.alloc(HEADER_BYTES + bytes)
  writeControlHeader(datagram, { type, information, timestampUs: 0, socketId })
  return datagram
}

/** Sink that records its calls. */
function createSink() {
  const events: string[] = []
  const sink = {
    connection: undefined as SrtConnection | undefined,
    open: (connection: SrtConnection) => {
      sink.connection = connection
      events.push('open')
    },
    push: (payload: Buffer) => events.push(payload.toString()),
    gap: (lostPackets: number) => events.push(`gap ${lostPackets}`),
    end: (reason: CloseReason) => events.push(`end ${reason}`),
  }
  return { sink, events }
}

/** An endpoint with one connection. @param sends  whether payloads are sent to the caller */
function connect(sends = false) {
  const harness = createEndpoint()
  const { sink, events } = createSink()
  harness.conclude()
  harness.endpoint.decide(harness.attempts[0]!, { sink, sends }, 0)
  const [answer] = harness.take()
  return { ...harness, sink, events, answer: answer!, id: decodeHandshake(answer!)!.socketId }
}

const rejectOf = ([answer]: Buffer[]) => decodeHandshake(answer!)?.type

t.test('responds to an induction with magic and cookie, in the same size (4.3.1.1)', async (t) => {
  const { endpoint, send } = createEndpoint()
  const request = encode(INDUCTION)
  const [answer, ...more] = send(request)
  t.strictSame(more, [])
  t.equal(answer!.length, request.length, 'no amplification')
  t.equal(destinationSocketId(answer!), CALLER_ID)
  const { cookie, ...rest } = decodeHandshake(answer!)!
  t.strictSame(rest, { ...rest, version: 5, extensionField: SRT_MAGIC, encryptionField: 0 })
  t.not(cookie, 0)
  t.notOk(endpoint.busy, 'nothing is kept')
})

t.test('a cookie is valid for its owner only, and for a limited time', async (t) => {
  const { send, attempts, induce, endpoint } = createEndpoint()
  const cookie = induce()
  const conclusion = encode({ ...CONCLUSION, cookie }, [hsBlock()])
  t.strictSame(send(conclusion, 0, PORT + 1), [], 'another port')
  t.strictSame(send(conclusion, 0, PORT, '192.0.2.8'), [], 'another address')
  t.strictSame(send(encode({ ...CONCLUSION, cookie, socketId: 5 }, [hsBlock()])), [], 'another id')
  t.strictSame(send(encode({ ...CONCLUSION, cookie: cookie + 1 }, [hsBlock()])), [], 'made up')
  t.strictSame(send(encode(CONCLUSION, [hsBlock()])), [], 'none')
  t.strictSame(send(conclusion, 61_000_000), [], 'a minute old')
  t.equal(endpoint.stats.badCookies, 6)
  t.strictSame(attempts, [])

  const late = createEndpoint()
  const lateCookie = late.induce(INDUCTION, 29_999_999)
  late.send(encode({ ...CONCLUSION, cookie: lateCookie }, [hsBlock()]), 33_000_000)
  t.equal(late.attempts.length, 1, 'across the rotation of the secret')
})

t.test('requests one decision per caller, which may come later (4.3.1.2)', async (t) => {
  const { endpoint, conclude, attempts, take } = createEndpoint()
  const { sink, events } = createSink()
  const streamId = 'mode=publish,rid=demo,token=x'
  const blocks = [hsBlock(), encodeStreamIdExtension(streamId)]
  t.strictSame(conclude({}, blocks, 1_000_000), [])
  t.strictSame(conclude({}, blocks, 1_250_000), [], 'a repetition waits too')
  t.equal(attempts.length, 1)
  t.match(attempts[0], {
    remoteAddress: ADDRESS,
    remotePort: PORT,
    streamId,
    peerVersion: '1.5.1',
  })
  endpoint.decide(attempts[0]!, { sink }, 1_250_000)
  const [answer, ...more] = take()
  t.strictSame(more, [])
  t.strictSame(events, ['open'])
  t.equal(endpoint.connectionCount, 1)
  t.equal(destinationSocketId(answer!), CALLER_ID)
  t.equal(timestampUs(answer!), 250_000)
  const handshake = decodeHandshake(answer!)!
  t.match(handshake, {
    version: 5,
    type: HandshakeType.CONCLUSION,
    initialSequenceNumber: FIRST,
    mtuBytes: 1500,
    flowWindowPackets: 16_384,
    extensionField: 1,
  })
  t.ok(handshake.socketId > 0 && handshake.socketId < 2 ** 30)
  t.strictSame(decodeExtensions(answer!)?.hs, {
    srtVersion: 0x010501,
    flags: LIVE_FLAGS,
    receiverDelayMs: 200,
    senderDelayMs: 120,
  })
})

t.test('negotiates the longer latency up to the limit, and a window to match (4.4)', async (t) => {
  for (const [attempts, agreed, windowPackets] of [
    [0, 200, 16_384],
    [350, 350, 16_384],
    [4000, 4000, 40_000],
    [65_535, 8000, 65_536],
  ] as const) {
    const harness = createEndpoint()
    const { sink } = createSink()
    harness.conclude({}, [hsBlock({ ...HS, senderDelayMs: attempts })])
    harness.endpoint.decide(harness.attempts[0]!, { sink }, 0)
    const [answer] = harness.take()
    t.equal(decodeExtensions(answer!)?.hs?.receiverDelayMs, agreed)
    t.equal(decodeHandshake(answer!)?.flowWindowPackets, windowPackets)
    t.equal(sink.connection?.latencyMs, agreed)
  }
})

t.test('negotiates with the latency that the accept hook returns', async (t) => {
  for (const [latencyMs, proposedMs, agreed] of [
    [40, 20, 40],
    [40, 350, 350],
    [4000, 350, 4000],
  ] as const) {
    const harness = createEndpoint()
    const { sink } = createSink()
    harness.conclude({}, [hsBlock({ ...HS, senderDelayMs: proposedMs })])
    harness.endpoint.decide(harness.attempts[0]!, { sink, latencyMs }, 0)
    const [answer] = harness.take()
    t.equal(decodeExtensions(answer!)?.hs?.receiverDelayMs, agreed)
    t.equal(sink.connection?.latencyMs, agreed)
  }
})

t.test('a repeated conclusion gets the same response, also after data packets', async (t) => {
  const { endpoint, conclude, answer, send, id, events } = connect()
  t.strictSame(conclude(), [answer])
  send(dataPacket(id, FIRST))
  t.strictSame(conclude({}, [hsBlock()], 900_000), [answer])
  send(dataPacket(id, FIRST + 1))
  t.strictSame(events, ['open', 'data', 'data'])
  t.match(endpoint.stats, { accepted: 1, duplicateHandshakes: 2 })
})

t.test('another socket id or sequence number from one port is another caller', async (t) => {
  const { attempts, conclude } = connect()
  conclude({ socketId: CALLER_ID + 1 })
  conclude({ initialSequenceNumber: FIRST + 1 })
  t.equal(attempts.length, 3)
})

t.test('a rejection has the code of the host, also for repeated conclusions', async (t) => {
  const { endpoint, conclude, attempts, take, waitUntil } = createEndpoint()
  conclude()
  endpoint.decide(attempts[0]!, { reject: RejectCode.BADSECRET }, 0)
  const [answer] = take()
  t.equal(answer!.length, 64, 'no extensions')
  t.match(decodeHandshake(answer!), { version: 5, type: 1010, socketId: CALLER_ID })
  t.equal(destinationSocketId(answer!), CALLER_ID)
  waitUntil(2_000_000)
  t.strictSame(conclude({}, [hsBlock()], 2_000_000), [answer])
  t.equal(attempts.length, 1)
  t.strictSame(endpoint.stats.rejects, { 1010: 1 })
  t.equal(endpoint.stats.inductions, 2)
  conclude({ socketId: 8 }, [hsBlock()], 2_000_000)
  t.ok(endpoint.busy, 'one waits, one is remembered')
  endpoint.decide(attempts.pop()!, { reject: RejectCode.BADSECRET }, 0)
  waitUntil(3_300_000, 2_000_000)
  t.notOk(endpoint.busy, 'forgotten in the end')
  conclude({}, [hsBlock()], 4_000_000)
  t.equal(attempts.length, 2)
})

t.test('a verdict with a code below 1000 is sent as 1006', async (t) => {
  const { endpoint, conclude, attempts, take } = createEndpoint()
  conclude()
  endpoint.decide(attempts[0]!, { reject: -1 }, 0)
  t.equal(rejectOf(take()), RejectCode.INTERNAL)
})

t.test('rejects conclusions that live ingest does not support, each with its code', async (t) => {
  const noise = Buffer.alloc(56)
  const gcm = Buffer.alloc(56)
  gcm.write('12202901000000000401020000000404', 'hex')
  const cases: [string, number, Partial<Handshake>, Buffer[]][] = [
    ['no HSREQ', 1004, {}, []],
    ['no flags', 1004, {}, [hsBlock({ ...HS, flags: 0 })]],
    ['an impossible sequence number', 1004, { initialSequenceNumber: 0x80000000 }, [hsBlock()]],
    ['an MTU that holds nothing', 1004, { mtuBytes: 75 }, [hsBlock()]],
    ['no socket id', 1004, { socketId: 0 }, [hsBlock()]],
    ['no flow window', 1004, { flowWindowPackets: 1 }, [hsBlock()]],
    ['a negative socket id', 1004, { socketId: -5 }, [hsBlock()]],
    ['SRT 1.2', 1008, {}, [hsBlock({ ...HS, srtVersion: 0x010205 })]],
    ['keys that are none', 1004, {}, [hsBlock(), encodeBlock(ExtensionType.KMREQ, noise)]],
    ['AES-GCM', 1017, {}, [hsBlock(), encodeBlock(ExtensionType.KMREQ, gcm)]],
    ['stream mode', 1012, {}, [hsBlock({ ...HS, flags: LIVE_FLAGS | HsFlag.STREAM })]],
    [
      'file congestion control',
      1013,
      {},
      [hsBlock(), encodeBlock(ExtensionType.CONGESTION, Buffer.from('elif'))],
    ],
    ['bonding', 1015, {}, [hsBlock(), encodeBlock(ExtensionType.GROUP, Buffer.alloc(8))]],
  ]
  for (const [name, code, handshake, blocks] of cases) {
    const { conclude, attempts, endpoint } = createEndpoint()
    t.equal(rejectOf(conclude(handshake, blocks)), code, name)
    t.strictSame(attempts, [], 'without asking the host')
    t.strictSame(endpoint.stats.rejects, { [code]: 1 })
  }
})

t.test(
  'accepts live congestion control, missing flags and small windows of old hardware',
  async (t) => {
    const { conclude, attempts } = createEndpoint()
    const live = encodeBlock(ExtensionType.CONGESTION, Buffer.from('evil'))
    const flags = HsFlag.TSBPD_SENDER | HsFlag.TSBPD_RECEIVER
    const small = { mtuBytes: 76, flowWindowPackets: 2 }
    conclude(small, [live, hsBlock({ ...HS, srtVersion: 0x010300, flags })])
    t.equal(attempts[0]?.agreement.mtuBytes, 76)
    conclude({ socketId: 2, mtuBytes: 9000 })
    t.equal(attempts[1]?.agreement.mtuBytes, 1500, 'no more than we can take')
  },
)

t.test('rejects handshake version 4 with a code and a SHUTDOWN', async (t) => {
  const { conclude } = createEndpoint()
  const answers = conclude({ version: 4 }, [])
  t.equal(rejectOf(answers), RejectCode.VERSION)
  t.strictSame(answers.map(controlType), [ControlType.HANDSHAKE, ControlType.SHUTDOWN])
  t.equal(destinationSocketId(answers[1]!), CALLER_ID)
})

t.test('repeats the packet filter of a caller byte for byte', async (t) => {
  const { endpoint, conclude, attempts, take } = createEndpoint()
  const filter = Buffer.from('2c636566736c6f632c30313a73776f720000353a', 'hex')
  conclude({}, [hsBlock(), encodeBlock(ExtensionType.FILTER, filter)])
  endpoint.decide(attempts[0]!, { sink: createSink().sink }, 0)
  const [answer] = take()
  t.strictSame(decodeExtensions(answer!)?.filter, filter)
  t.equal(decodeHandshake(answer!)?.extensionField, 5)
})

t.test('expires an attempt without a decision in time', async (t) => {
  const { endpoint, conclude, attempts, expired, waitUntil } = createEndpoint()
  const { sink, events } = createSink()
  conclude({}, [hsBlock()], 1_000_000)
  t.ok(endpoint.busy)
  t.strictSame(waitUntil(3_490_000, 1_000_000), [])
  const answers = waitUntil(3_760_000, 3_500_000)
  t.equal(rejectOf(answers), RejectCode.TIMEOUT)
  t.strictSame(expired, attempts)
  endpoint.decide(attempts[0]!, { sink }, 3_800_000)
  t.strictSame(events, [])
  t.equal(endpoint.connectionCount, 0)
})

t.test('does not count stalls of the process as time for the decision', async (t) => {
  const { endpoint, conclude, attempts, expired, take } = createEndpoint()
  const { sink, events } = createSink()
  const tickLate = (fromUs: number, ticks: number) => {
    for (let tick = 1; tick <= ticks; tick++) endpoint.tick(fromUs + tick * 500_000)
  }
  conclude({}, [hsBlock()], 1_000_000)
  tickLate(1_000_000, 12)
  t.strictSame(take(), [])
  endpoint.decide(attempts[0]!, { sink }, 7_000_000)
  t.strictSame(events, ['open'])
  take()
  conclude({ socketId: 2 }, [hsBlock()], 7_000_000)
  tickLate(7_000_000, 24)
  t.strictSame(expired, [attempts[1]], 'even if every tick is late')
})

t.test('limits the callers that wait for a decision', async (t) => {
  const { conclude, attempts, endpoint } = createEndpoint()
  const concludeFrom = (address: string, socketId: number) =>
    conclude({ socketId }, [hsBlock()], 0, address)
  for (let id = 1; id <= 128; id++) t.strictSame(concludeFrom(`192.0.2.${id}`, id), [])
  t.equal(rejectOf(concludeFrom('192.0.2.1', 200)), RejectCode.BACKLOG, 'half for one network')
  for (let id = 1; id <= 128; id++) t.strictSame(concludeFrom(`2001:db8:${id}::1`, id), [])
  t.equal(rejectOf(concludeFrom('198.51.100.1', 300)), RejectCode.BACKLOG)
  endpoint.decide(attempts[0]!, { reject: 1010 }, 0)
  t.strictSame(concludeFrom('198.51.100.1', 301), [], 'one went, one more may come')
})

t.test('limits the rejections kept for repeated conclusions', async (t) => {
  const { conclude, send } = createEndpoint()
  const concludeAs = (socketId: number, blocks: Buffer[], nowUs: number) =>
    conclude({ socketId }, blocks, nowUs, `10.0.${socketId % 100}.1`)
  for (let socketId = 1; socketId <= 1100; socketId++) concludeAs(socketId, [], socketId * 1000)
  const repeated = concludeAs(1, [hsBlock()], 1_101_000)
  t.strictSame(repeated, [], 'the oldest is forgotten, and judged anew')
  t.equal(rejectOf(concludeAs(1100, [hsBlock()], 1_102_000)), RejectCode.ROGUE)
  t.strictSame(send(Buffer.alloc(3)), [])
})

t.test('limits the share of one network in the backlog', async (t) => {
  const { conclude, attempts } = createEndpoint()
  const waiting = (network: string) => {
    const before = attempts.length
    for (let id = 1; id <= 250; id++) {
      conclude({ socketId: id }, [hsBlock()], 0, `${network}.${id}`)
    }
    return attempts.length - before
  }
  t.strictSame(
    ['192.0.2', '198.51.100', '203.0.113'].map(waiting),
    [128, 64, 32],
    'each no more than it leaves free',
  )
  for (let id = 1; id <= 8; id++) conclude({ socketId: id }, [hsBlock()], 0, `10.0.${id}.1`)
  t.equal(attempts.length, 128 + 64 + 32 + 8, 'callers of eight other networks')
})

t.test(
  'limits conclusions with a valid cookie, before the host is requested to decide',
  async (t) => {
    const { endpoint, conclude, attempts, induce, send } = createEndpoint()
    const cookie = induce()
    for (let sequence = 0; sequence < 1000; sequence++) {
      send(encode({ ...CONCLUSION, cookie, initialSequenceNumber: sequence }, [hsBlock()]))
      const attempt = attempts[sequence]
      if (attempt !== undefined) endpoint.decide(attempt, { reject: RejectCode.BADSECRET }, 0)
    }
    t.equal(attempts.length, 150, 'of one address')
    t.equal(endpoint.stats.conclusionsDropped, 850)
    t.strictSame(conclude({ socketId: 5 }), [], 'no answer, for another socket id neither')
    conclude({ socketId: 6 }, [hsBlock()], 0, '192.0.2.8')
    conclude({ socketId: 7 }, [hsBlock()], 0, '198.51.100.1')
    t.equal(attempts.length, 152, 'the host decides about a neighbor and a stranger')
  },
)

t.test('repeated conclusions use up nothing of the limit of their address', async (t) => {
  const { endpoint, conclude, attempts, take } = createEndpoint()
  const concludeAs = (firstId: number, callers: number, nowUs: number) => {
    for (let id = firstId; id < firstId + callers; id++) {
      conclude({ socketId: id }, [hsBlock()], nowUs)
    }
  }
  for (let repeat = 0; repeat < 12; repeat++) concludeAs(1, 60, repeat * 250_000)
  concludeAs(101, 60, 2_900_000)
  t.equal(attempts.length, 120, 'the host decides about each')
  for (const attempt of attempts)
    endpoint.decide(attempt, { reject: RejectCode.BADSECRET }, 2_900_000)
  take()
  for (let repeat = 0; repeat < 10; repeat++) concludeAs(101, 59, 2_900_000)
  t.equal(rejectOf(conclude({ socketId: 160 }, [hsBlock()], 2_900_000)), RejectCode.BADSECRET)
  t.match(endpoint.stats, { conclusionsDropped: 0, duplicateHandshakes: 11 * 60 + 590 + 1 })
})

t.test(
  'conclusions from forged sources use up nothing of the limits of these addresses',
  async (t) => {
    const { endpoint, conclude, attempts, send } = createEndpoint()
    for (let i = 0; i < 5000; i++) send(encode({ ...CONCLUSION, cookie: i }, [hsBlock()]))
    t.match(endpoint.stats, { badCookies: 5000, conclusionsDropped: 0 })
    conclude()
    t.equal(attempts.length, 1)
  },
)

t.test(
  'responds to 1000 inductions a second from one network, and to those of others',
  async (t) => {
    const { endpoint, send } = createEndpoint()
    const answered = (count: number, nowUs: number, address: string) => {
      let answers = 0
      for (let i = 0; i < count; i++)
        answers += send(encode(INDUCTION), nowUs, PORT, address).length
      return answers
    }
    t.equal(answered(3000, 0, ADDRESS), 1000)
    t.equal(answered(10, 0, '192.0.2.200'), 0, 'a neighbor')
    t.equal(answered(10, 0, '198.51.100.1'), 10)
    t.equal(answered(10, 100_000, ADDRESS), 10, 'what is left of one second is there the next')
    t.match(endpoint.stats, { inductions: 3030, inductionsDropped: 2010 })
  },
)

t.test('responds to 5000 inductions a second in all, from any sources', async (t) => {
  const { endpoint, send } = createEndpoint()
  let answers = 0
  for (let i = 0; i < 20_000; i++) {
    answers += send(encode(INDUCTION), 0, PORT, `10.${i >> 8}.${i & 255}.1`).length
  }
  t.equal(answers, 5000)
  t.equal(endpoint.stats.inductionsDropped, 15_000)
  t.equal(send(encode(INDUCTION), 1000, PORT, ADDRESS).length, 1)
})

t.test('handles 2000 control packets a second of a connection, and all of its data', async (t) => {
  const { endpoint, send, id, events } = connect()
  for (let i = 0; i < 3000; i++) send(control(ControlType.KEEPALIVE, id))
  send(control(ControlType.SHUTDOWN, id))
  send(dataPacket(id, FIRST))
  t.strictSame(events, ['open', 'data'])
  t.equal(endpoint.stats.controlPacketsDropped, 1001)
  send(control(ControlType.SHUTDOWN, id), 1000)
  t.strictSame(events, ['open', 'data', 'end shutdown'])
})

t.test('pushes payloads to the sink, and those held on SHUTDOWN before it ends', async (t) => {
  const { send, id, events, endpoint } = connect()
  send(dataPacket(id, FIRST, 'one'))
  send(dataPacket(id, FIRST + 2, 'three'))
  send(control(ControlType.SHUTDOWN, id))
  t.strictSame(events, ['open', 'one', 'gap 1', 'three', 'end shutdown'])
  t.equal(endpoint.connectionCount, 0)
})

t.test('drops datagrams for a connection from another address', async (t) => {
  const { send, id, events, endpoint } = connect()
  send(dataPacket(id, FIRST), 0, PORT + 1)
  send(control(ControlType.SHUTDOWN, id), 0, PORT, '192.0.2.8')
  send(dataPacket(id + 1, FIRST))
  send(dataPacket(-5, FIRST))
  t.strictSame(events, ['open'])
  t.match(endpoint.stats, { wrongSources: 2, unknownSocketIds: 2 })
})

t.test('ends a connection after 5 s without any packet of the peer', async (t) => {
  const { send, id, events, waitUntil, sink } = connect()
  waitUntil(4_000_000)
  send(control(ControlType.KEEPALIVE, id), 4_000_000)
  t.equal(sink.connection?.lastReceivedUs, 4_000_000)
  waitUntil(8_900_000, 4_000_000)
  t.strictSame(events, ['open'])
  const answers = waitUntil(9_300_000, 8_900_000)
  t.strictSame(events, ['open', 'end timeout'])
  t.equal(answers.filter((a) => controlType(a) === ControlType.SHUTDOWN).length, 3)
})

t.test('sends a keepalive after a second of silence (3.2.3)', async (t) => {
  const { waitUntil } = connect()
  const answers = waitUntil(3_600_000).filter((a) => controlType(a) === ControlType.KEEPALIVE)
  t.equal(answers.length, 3)
  t.equal(answers[0]!.length, 20)
})

t.test('reads waiting datagrams after a stall before any timeout', async (t) => {
  const { endpoint, events, waitUntil, send, id } = connect()
  waitUntil(1_000_000)
  endpoint.tick(20_000_000)
  send(dataPacket(id, FIRST), 20_001_000)
  waitUntil(21_000_000, 20_010_000)
  t.strictSame(events, ['open', 'data'])
})

t.test('handles timers even if every tick is late', async (t) => {
  const { endpoint, send, id, take } = connect()
  send(dataPacket(id, FIRST), 200_000)
  for (const nowUs of [200_000, 400_000]) endpoint.tick(nowUs)
  t.equal(take().filter((a) => isControl(a) && controlType(a) === ControlType.ACK).length, 1)
})

t.test('measures no round trip with an ACKACK that may have lain unread', async (t) => {
  const { endpoint, send, id, take, sink } = connect()
  let sequence = FIRST
  /** Has a packet acknowledged at `nowUs`. @returns the ACKACK */
  const acknowledge = (nowUs: number): Buffer => {
    endpoint.tick(nowUs - 10_000)
    send(dataPacket(id, sequence++), nowUs)
    endpoint.tick(nowUs)
    const ack = take().find((each) => isControl(each) && controlType(each) === ControlType.ACK)!
    return control(ControlType.ACKACK, id, 4, typeSpecificInformation(ack))
  }
  const read = (ackAck: Buffer, nowUs: number) => {
    send(ackAck, nowUs)
    return sink.connection?.stats().msRtt
  }
  const INITIAL_MS = 100
  t.equal(read(acknowledge(20_000), 1_000_000), INITIAL_MS, 'the tick before is long ago')
  endpoint.tick(1_000_000)
  const second = acknowledge(1_020_000)
  endpoint.tick(2_000_000)
  t.equal(read(second, 2_000_001), INITIAL_MS, 'the tick before came late')
  endpoint.tick(2_010_000)
  const third = acknowledge(2_200_000)
  endpoint.tick(2_210_000, false)
  t.equal(read(third, 2_210_001), INITIAL_MS, 'the socket was not empty since the tick before')
  endpoint.tick(2_220_000)
  t.equal(read(acknowledge(2_400_000), 2_408_000), 8)
})

t.test('`close` sends SHUTDOWN three times and ends the sink before it returns', async (t) => {
  const { sink, events, take, send, id } = connect()
  sink.connection?.close()
  t.strictSame(events, ['open', 'end closed'])
  t.strictSame(take().map(controlType), [5, 5, 5])
  send(dataPacket(id, FIRST))
  sink.connection?.close()
  t.strictSame(events, ['open', 'end closed'])
  t.strictSame(take(), [])
})

t.test('discards what a caller sends to whom payloads are sent', async (t) => {
  const { sink, events, send, waitUntil, id } = connect(true)
  t.strictSame(send(dataPacket(id, FIRST)), [])
  t.strictSame(send(dataPacket(id, FIRST + 5)), [], 'no NAK')
  t.strictSame(waitUntil(900_000), [], 'no ACK')
  t.strictSame(events, ['open'])
  t.match(sink.connection?.stats(), { pktRecvTotal: 0, pktRcvBuf: 0 })
})

t.test('`finish` closes a connection once the caller has played every packet', async (t) => {
  const acked = connect(true)
  t.ok(acked.sink.connection!.send(Buffer.from('x'), 0))
  acked.sink.connection!.finish(10_000_000)
  t.notOk(acked.sink.connection!.send(Buffer.from('y'), 0), 'nothing more is taken')
  const ack = control(ControlType.ACK, acked.id)
  ack.writeUInt32BE(FIRST + 1, HEADER_BYTES)
  acked.send(ack, 50_000)
  // 120 ms of latency that the caller requested, the RTT of 100 ms, and a margin.
  acked.waitUntil(230_000, 50_000)
  t.strictSame(acked.events, ['open'])
  acked.waitUntil(250_000, 240_000)
  t.strictSame(acked.events, ['open', 'end closed'])

  const silent = connect(true)
  silent.sink.connection!.send(Buffer.from('x'), 0)
  silent.sink.connection!.finish(500_000)
  silent.sink.connection!.finish(10_000_000)
  silent.waitUntil(490_000)
  t.strictSame(silent.events, ['open'])
  silent.waitUntil(500_000, 500_000)
  t.strictSame(silent.events, ['open', 'end closed'], 'after the shorter limit at the latest')

  const publisher = connect()
  publisher.sink.connection!.finish(10_000_000)
  t.strictSame(publisher.events, ['open', 'end closed'], 'nothing is sent to it')
})

t.test('`close` lets callers have what was sent to them, if it is given time', async (t) => {
  const { endpoint, sink, events, take, waitUntil, conclude } = connect(true)
  sink.connection!.send(Buffer.from('x'), 0)
  take()
  endpoint.close(0, 600_000)
  t.equal(rejectOf(conclude({ socketId: 3 })), RejectCode.CLOSE)
  t.equal(endpoint.connectionCount, 1)
  waitUntil(600_000)
  t.strictSame(events, ['open', 'end closed'])
})

t.test('a sink may close its connection from `push`', async (t) => {
  for (const moment of ['open', 'push', 'gap'] as const) {
    const harness = createEndpoint()
    const { sink, events } = createSink()
    const closeAt = (now: string) => {
      if (now === moment) sink.connection?.close()
    }
    const closing: PayloadSink = {
      open: (connection) => {
        sink.open(connection)
        closeAt('open')
      },
      push: (payload) => {
        sink.push(payload)
        closeAt('push')
      },
      gap: (lostPackets) => {
        sink.gap(lostPackets)
        closeAt('gap')
      },
      end: sink.end,
    }
    harness.conclude()
    harness.endpoint.decide(harness.attempts[0]!, { sink: closing }, 0)
    const { socketId } = decodeHandshake(harness.take()[0]!)!
    for (const ahead of [0, 2, 4]) harness.send(dataPacket(socketId, FIRST + ahead), 10_000)
    harness.waitUntil(1_000_000)
    const last = { open: 'open', push: 'data', gap: 'gap 1' }[moment]
    t.strictSame(events.slice(-2), [last, 'end closed'], moment)
    t.strictSame(harness.failures, [])
  }
})

t.test('a sink that closes its connection during SHUTDOWN ends once', async (t) => {
  const harness = createEndpoint()
  const { sink, events } = createSink()
  const gap = (lostPackets: number) => {
    sink.gap(lostPackets)
    sink.connection?.close()
  }
  harness.conclude()
  harness.endpoint.decide(harness.attempts[0]!, { sink: { ...sink, open: sink.open, gap } }, 0)
  const { socketId } = decodeHandshake(harness.take()[0]!)!
  harness.send(dataPacket(socketId, FIRST + 1))
  harness.send(control(ControlType.SHUTDOWN, socketId))
  t.strictSame(events, ['open', 'gap 1', 'end closed'])
})

t.test('accepts datagrams of the minimum and maximum size', async (t) => {
  const { endpoint, send, id, events } = connect()
  send(control(ControlType.KEEPALIVE, id, 0))
  send(dataPacket(id, FIRST, 'x'.repeat(1456)))
  t.equal(events[1]?.length, 1456)
  t.equal(endpoint.stats.malformed, 0)
})

t.test('an exception of a sink closes its connection and no other', async (t) => {
  for (const moment of ['open', 'push', 'gap', 'end'] as const) {
    const harness = connect()
    const { sink, events } = createSink()
    const throwing = {
      ...sink,
      [moment]: () => {
        throw new Error(`in ${moment}`)
      },
    }
    harness.conclude({ socketId: 9 })
    harness.endpoint.decide(harness.attempts[1]!, { sink: throwing }, 0)
    const { socketId } = decodeHandshake(harness.take()[0]!)!
    for (const ahead of [0, 2]) harness.send(dataPacket(socketId, FIRST + ahead), 10_000)
    harness.waitUntil(1_000_000)
    harness.send(control(ControlType.SHUTDOWN, socketId))
    t.match(harness.failures, [{ message: `in ${moment}` }])
    if (moment !== 'end') t.equal(events.at(-1), 'end closed')
    t.equal(harness.endpoint.stats.failures, 1)
    t.equal(harness.endpoint.connectionCount, 1)
    t.strictSame(harness.events, ['open'])
  }
})

t.test('a closed connection does not reopen until its identity expires', async (t) => {
  const { endpoint, sink, attempts, conclude, take, waitUntil } = connect()
  sink.connection?.close()
  take()
  t.strictSame(conclude(), [], 'a late repetition brings nothing back')
  waitUntil(2_000_000)
  t.strictSame(conclude({}, [hsBlock()], 2_000_000), [])
  waitUntil(3_600_000, 2_000_000)
  t.notOk(endpoint.busy)
  conclude({}, [hsBlock()], 4_000_000)
  t.equal(attempts.length, 2)
})

t.test('`close` ends every connection, and rejects waiting and later callers', async (t) => {
  const { endpoint, events, conclude, attempts, expired, take, failures } = connect()
  conclude({ socketId: 2 })
  endpoint.close(0)
  t.strictSame(events, ['open', 'end closed'])
  t.strictSame(expired, [attempts[1]])
  const types = take().map((answer) =>
    controlType(answer) === ControlType.HANDSHAKE ? decodeHandshake(answer)!.type : 'shutdown',
  )
  t.strictSame(types, [RejectCode.CLOSE, 'shutdown', 'shutdown', 'shutdown'])
  t.equal(rejectOf(conclude({ socketId: 3 })), RejectCode.CLOSE)
  t.strictSame(failures, [])
})

t.test('socket ids of many connections are random and distinct', async (t) => {
  const harness = createEndpoint()
  const sinks = Array.from({ length: 300 }, () => createSink())
  const ids = sinks.map(({ sink }, index) => {
    // The rate that one address may connect at.
    const nowUs = index * 50_000
    harness.conclude({ socketId: index + 1 }, [hsBlock()], nowUs)
    harness.endpoint.decide(harness.attempts.at(-1)!, { sink }, nowUs)
    return decodeHandshake(harness.take()[0]!)!.socketId
  })
  t.equal(new Set(ids).size, 300)
  ids.forEach((id, index) => harness.send(dataPacket(id, FIRST, `for ${index}`), 15_000_000))
  t.ok(sinks.every(({ events }, index) => events[1] === `for ${index}`))
})

t.test(
  'counts handshakes of 49, 50 or 51 bytes, and those with 1 to 3 stray bytes, as malformed',
  async (t) => {
    for (const stray of [1, 2, 3]) {
      for (const blocks of [[], [hsBlock()]]) {
        const { endpoint, conclude, attempts } = createEndpoint()
        t.strictSame(conclude({}, [...blocks, Buffer.alloc(stray)]), [])
        t.equal(endpoint.stats.malformed, 1)
        t.strictSame(attempts, [])
      }
    }
  },
)

t.test('counts datagrams that are no SRT packets as malformed', async (t) => {
  const { endpoint, send } = createEndpoint()
  for (let length = 0; length < 16; length++) t.strictSame(send(Buffer.alloc(length)), [])
  t.strictSame(send(Buffer.alloc(1473)), [])
  t.strictSame(send(encode(INDUCTION), 0, 0), [], 'port 0 cannot be answered')
  t.strictSame(send(encode(INDUCTION).subarray(0, 63)), [])
  t.strictSame(send(control(ControlType.KEEPALIVE, 0)), [])
  t.strictSame(send(dataPacket(0, 1)), [])
  t.strictSame(send(encode({ ...CONCLUSION, type: HandshakeType.WAVEAHAND })), [])
  t.equal(endpoint.stats.malformed, 22)
})

t.test('counts malformed control packets, which change nothing', async (t) => {
  const { send, id, events, endpoint } = connect()
  for (const type of [ControlType.ACK, ControlType.NAK, ControlType.DROPREQ]) {
    send(control(type, id, 3))
  }
  for (const type of [8, 4, 1234, ControlType.USER_DEFINED] as ControlType[]) {
    send(control(type, id))
  }
  send(dataPacket(id, FIRST))
  t.strictSame(events, ['open', 'data'])
  t.equal(endpoint.stats.malformed, 3)
})

t.test('random datagrams throw nothing, and leave no state without a cookie', async (t) => {
  const noise = fc.uint8Array({ maxLength: 1500 }).map((bytes) => Buffer.from(bytes))
  const bent = fc
    .record({ at: fc.nat(200), value: fc.nat(255), cut: fc.nat(120), stray: fc.nat(3) })
    .map(({ at, value, cut, stray }) => {
      const blocks = [hsBlock(), encodeStreamIdExtension('mode=publish'), Buffer.alloc(stray)]
      const datagram = encode(CONCLUSION, blocks)
      if (at < datagram.length) datagram[at] = value
      return datagram.subarray(0, Math.max(0, datagram.length - Math.max(0, cut - 60)))
    })
  const { endpoint, send, failures } = createEndpoint()
  fc.assert(
    fc.property(fc.oneof(noise, bent), (datagram) => {
      send(datagram)
      return !endpoint.busy
    }),
    { numRuns: 3000 },
  )
  t.strictSame(failures, [])
})

t.test('conclusions with a valid cookie and random blocks throw nothing', async (t) => {
  const { endpoint, induce, send, failures, attempts } = createEndpoint()
  const cookie = induce()
  const good = encode({ ...CONCLUSION, cookie }, [hsBlock(), encodeStreamIdExtension('x=y')])
  const edits = fc.array(fc.tuple(fc.integer({ min: 64, max: 95 }), fc.nat(255)), { maxLength: 4 })
  const flight = fc.tuple(edits, fc.nat(40), fc.nat(3))
  let nowUs = 0
  fc.assert(
    fc.property(flight, ([changes, cut, stray]) => {
      const datagram = Buffer.from(good)
      for (const [at, value] of changes) if (at < datagram.length) datagram[at] = value
      const length = Math.max(64, datagram.length - cut)
      // The rate that one address may connect at, while the cookie is valid.
      nowUs += 50_000
      send(Buffer.concat([datagram.subarray(0, length), Buffer.alloc(stray)]), nowUs)
      for (const attempt of attempts.splice(0)) endpoint.decide(attempt, { reject: 1010 }, nowUs)
      endpoint.tick(nowUs)
    }),
    { numRuns: 1000 },
  )
  t.strictSame(failures, [])
  t.equal(endpoint.stats.conclusionsDropped, 0, 'all were looked at')
})

t.test('an established connection survives random packets with its socket id', async (t) => {
  const { id, send, failures, waitUntil } = connect()
  const noise = fc.uint8Array({ minLength: 16, maxLength: 100 })
  let nowUs = 0
  fc.assert(
    fc.property(noise, fc.boolean(), fc.nat(8), (bytes, isData, type) => {
      const datagram = Buffer.from(bytes)
      datagram.writeInt32BE(id, 12)
      if (isData) datagram[0]! &= 0x7f
      else datagram.writeUInt16BE(0x8000 | (type === 5 ? 6 : type), 0)
      nowUs += 1000
      send(datagram, nowUs)
      waitUntil(nowUs, nowUs)
    }),
    { numRuns: 3000 },
  )
  t.strictSame(failures, [])
})
