/**
 * The caller's side without a socket: its requests, the responses it accepts, and its timeouts.
 */
import t from 'tap'
import { Call } from '../../../src/srt/connection/call.ts'
import { Encryption } from '../../../src/srt/crypto/encryption.ts'
import { deriveKey } from '../../../src/srt/crypto/key-encryption.ts'
import { FULL_ACK_BYTES, writeFullAck } from '../../../src/srt/wire/ack.ts'
import {
  decodeExtensions,
  encodeBlock,
  encodeHsExtension,
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
  sequenceNumber,
  timestampUs,
  writeControlHeader,
  writeDataHeader,
} from '../../../src/srt/wire/packet.ts'
import { wholeDatagram } from '../whole-datagram.ts'

const CALLER_ID = 77
const LISTENER_ID = 1234
const FIRST = 0x7ffffff0
const COOKIE = -123456

function createCall(options: Partial<ConstructorParameters<typeof Call>[0]> = {}) {
  const sent: Buffer[] = []
  const events: string[] = []
  const call = new Call({
    remoteAddress: '192.0.2.2',
    remotePort: 10_080,
    socketId: CALLER_ID,
    streamId: 'mode=publish',
    latencyMs: 350,
    peerLatencyMs: 400,
    initialSequenceNumber: FIRST,
    startTimestampUs: 2 ** 32 - 1000,
    sendBufferPackets: 8192,
    maxBandwidthBps: 1e9,
    connectTimeoutUs: 3_000_000,
    idleTimeoutUs: 5_000_000,
    host: {
      transmit: (datagram) => sent.push(wholeDatagram(datagram)),
      connected: () => events.push('connected'),
      refused: (error) => events.push(`${error.code}: ${error.message}`),
      ended: (reason) => events.push(`ended ${reason}`),
      fail: (error) => events.push(`failed: ${String(error)}`),
    },
    ...options,
  })
  return { call, events, take: () => sent.splice(0) }
}

/** Ticks twice, since the call skips the first tick after a pause. */
function tick(call: Call, nowUs: number): void {
  call.tick(nowUs)
  call.tick(nowUs)
}

const ANSWER: Handshake = {
  version: 5,
  encryptionField: 0,
  extensionField: SRT_MAGIC,
  initialSequenceNumber: FIRST,
  mtuBytes: 1500,
  flowWindowPackets: 16_384,
  type: HandshakeType.INDUCTION,
  socketId: CALLER_ID,
  cookie: COOKIE,
}

function encode(answer: Partial<Handshake>, blocks: Buffer[] = [], socketId = CALLER_ID): Buffer {
  const packet = { socketId, timestampUs: 0, peerAddress: '192.0.2.1', blocks }
  return encodeHandshake({ ...ANSWER, ...answer }, packet)
}

const DELAYS = { receiverDelayMs: 500, senderDelayMs: 350 }
const hsResponse = encodeHsExtension(ExtensionType.HSRSP, DELAYS)
const ACCEPTANCE: Partial<Handshake> = {
  extensionField: 1,
  type: HandshakeType.CONCLUSION,
  socketId: LISTENER_ID,
}

function control(type: ControlType, bytes: number): Buffer {
  const datagram = Buffer.alloc(HEADER_BYTES + bytes)
  writeControlHeader(datagram, { type, information: 1, timestampUs: 0, socketId: CALLER_ID })
  return datagram
}

const shutdown = () => control(ControlType.SHUTDOWN, 0)

function ackUntil(nextExpected: number): Buffer {
  const datagram = control(ControlType.ACK, FULL_ACK_BYTES)
  const report = { rttUs: 80_000, rttVarianceUs: 1000, freePackets: 8192 }
  writeFullAck(datagram, nextExpected, report, { packetsPerSec: 0, bytesPerSec: 0 })
  return datagram
}

function connect(response = hsResponse) {
  const harness = createCall()
  harness.call.start(1000)
  harness.call.handleDatagram(encode({}), 2000)
  harness.call.handleDatagram(encode(ACCEPTANCE, [response]), 3000)
  harness.take()
  harness.events.splice(0)
  return harness
}

t.test('sends an induction, then a conclusion with the cookie (4.3.1)', async (t) => {
  const { call, take, events } = createCall()
  call.start(1000)
  const [induction] = take()
  t.strictSame(decodeHandshake(induction!), {
    ...ANSWER,
    version: 4,
    extensionField: 2,
    cookie: 0,
  })
  t.equal(destinationSocketId(induction!), 0)
  t.equal(induction!.length, 64)
  t.equal(timestampUs(induction!), 2 ** 32 - 1000)

  call.handleDatagram(encode({}), 3000)
  const [conclusion, ...more] = take()
  t.strictSame(more, [])
  t.strictSame(decodeHandshake(conclusion!), {
    ...ANSWER,
    extensionField: 5,
    type: HandshakeType.CONCLUSION,
  })
  t.equal(timestampUs(conclusion!), 1000, 'a time of its own, past the wrap')
  t.strictSame(decodeExtensions(conclusion!), {
    hs: { srtVersion: 0x010501, flags: LIVE_FLAGS, receiverDelayMs: 350, senderDelayMs: 400 },
    streamId: 'mode=publish',
  })
  t.strictSame(events, [])
  call.handleDatagram(encode(ACCEPTANCE, [hsResponse]), 4000)
  t.strictSame(events, ['connected'])
})

t.test('sends no StreamID block for an empty StreamID', async (t) => {
  const { call, take } = createCall({ streamId: '' })
  call.start(0)
  call.handleDatagram(encode({}), 1000)
  const [, conclusion] = take()
  t.equal(decodeHandshake(conclusion!)?.extensionField, 1)
  t.notOk('streamId' in decodeExtensions(conclusion!)!)
})

t.test(
  'repeats a request every 250 ms with a new timestamp, and times out after 3 s',
  async (t) => {
    const { call, take, events } = createCall()
    call.start(0)
    take()
    tick(call, 249_000)
    t.strictSame(take(), [])
    tick(call, 250_000)
    t.strictSame(take().map(timestampUs), [249_000])
    call.handleDatagram(encode({}), 300_000)
    take()
    tick(call, 540_000)
    t.strictSame(take(), [])
    tick(call, 550_000)
    t.strictSame(
      take().map((again) => decodeHandshake(again)?.type),
      [HandshakeType.CONCLUSION],
    )
    tick(call, 2_999_000)
    t.strictSame(events, [])
    tick(call, 3_000_000)
    t.strictSame(events, [
      'SRT_TIMEOUT: no SRT peer answered at 192.0.2.2:10080 within 3 s: check address, UDP port and firewall',
    ])
    take()
    tick(call, 4_000_000)
    t.strictSame(take(), [])
    t.notOk(call.send(Buffer.alloc(1), 4_000_000))
  },
)

t.test('reads waiting datagrams after a stall before it times out', async (t) => {
  const { call, events } = createCall()
  call.start(0)
  call.tick(10_000)
  call.tick(4_000_000)
  call.handleDatagram(encode({}), 4_001_000)
  call.handleDatagram(encode(ACCEPTANCE, [hsResponse]), 4_002_000)
  call.tick(4_010_000)
  t.strictSame(events, ['connected'])
})

t.test('reports a rejection once, with code and name', async (t) => {
  for (const [type, message] of [
    [1000, '1000 (UNKNOWN); its log has the reason'],
    [1010, '1010 (BADSECRET); it does not take the passphrase or the stream id'],
    [1011, '1011 (UNSECURE); set the passphrase on both sides, or on neither'],
    [2404, '2404; its log has the reason'],
  ] as const) {
    const { call, events } = createCall()
    call.start(0)
    call.handleDatagram(encode({}), 1000)
    call.handleDatagram(encode({ type }), 2000)
    call.handleDatagram(encode({ type }), 2000)
    call.handleDatagram(encode(ACCEPTANCE, [hsResponse]), 3000)
    t.strictSame(events, [`SRT_REJECTED: the SRT peer refused the connection: ${message}`])
  }
})

t.test('refuses a listener of handshake version 4', async (t) => {
  for (const answer of [{ version: 4 }, { extensionField: 2 }]) {
    const { call, events } = createCall()
    call.start(0)
    call.handleDatagram(encode(answer), 1000)
    t.match(events, [/^SRT_REJECTED: the SRT peer speaks handshake version \d, not 5: update it$/])
  }
})

t.test('ignores datagrams that are no response to the current request', async (t) => {
  const { call, take, events } = createCall()
  call.start(0)
  take()
  const inductions = [
    Buffer.alloc(0),
    Buffer.alloc(15),
    encode({}).subarray(0, 63),
    encode({}, [], CALLER_ID + 1),
    encode({}, [Buffer.alloc(1472 - 63)]),
    encode(ACCEPTANCE, [hsResponse]),
    shutdown(),
  ]
  for (const datagram of inductions) call.handleDatagram(datagram, 1000)
  t.strictSame(take(), [])
  call.handleDatagram(encode({}), 1000)
  take()
  const conclusions = [
    encode({}),
    encode(ACCEPTANCE),
    encode(ACCEPTANCE, [hsResponse, Buffer.alloc(1)]),
    encode({ ...ACCEPTANCE, initialSequenceNumber: FIRST + 1 }, [hsResponse]),
    encode({ ...ACCEPTANCE, flowWindowPackets: 1 }, [hsResponse]),
    encode({ ...ACCEPTANCE, socketId: 0 }, [hsResponse]),
  ]
  for (const datagram of conclusions) call.handleDatagram(datagram, 2000)
  t.strictSame(take(), [])
  t.strictSame(events, [])
})

t.test('sends from the initial sequence number, to the socket id of the listener', async (t) => {
  const { call, take } = connect()
  t.ok(call.send(Buffer.from('x'), 5000))
  const [packet] = take()
  t.equal(sequenceNumber(packet!), FIRST)
  t.equal(destinationSocketId(packet!), LISTENER_ID)
  t.equal(timestampUs(packet!), 3000)
})

t.test('keeps packets for the latency of the listener', async (t) => {
  const idle = connect()
  idle.call.close()
  tick(idle.call, 10_000)
  t.strictSame(idle.events, ['ended closed'], 'without payloads, without waiting')
  const late = connect()
  late.call.send(Buffer.from('x'), 10_000)
  late.call.close()
  t.notOk(late.call.send(Buffer.from('y'), 10_000), 'nothing more is taken')
  tick(late.call, 900_000)
  t.strictSame(late.events, [])
  tick(late.call, 1_030_000)
  t.strictSame(late.events, ['ended closed'], 'ended after a second without an ACK')
  const goodbyes = late.take().filter((datagram) => isControl(datagram))
  t.strictSame(goodbyes.map(controlType).slice(-3), [5, 5, 5])
})

t.test('sends SHUTDOWN once the listener has played every packet', async (t) => {
  const { call, events } = connect()
  call.send(Buffer.from('x'), 10_000)
  call.close()
  call.handleDatagram(ackUntil(FIRST + 1), 90_000)
  tick(call, 609_000)
  t.strictSame(events, [])
  // 500 ms of latency that the listener requested, the RTT, and a margin.
  tick(call, 610_000)
  t.strictSame(events, ['ended closed'])
})

t.test('retransmits the whole flight to a listener without periodic NAKs', async (t) => {
  const patient = { ...DELAYS, flags: LIVE_FLAGS & ~HsFlag.PERIODIC_NAK }
  for (const [response, again] of [
    [encodeHsExtension(ExtensionType.HSRSP, patient), [FIRST + 1, FIRST + 2]],
    [hsResponse, [FIRST + 2]],
  ] as const) {
    const { call, take } = connect(response)
    for (const text of 'abc') call.send(Buffer.from(text), 10_000)
    call.handleDatagram(ackUntil(FIRST + 1), 90_000)
    take()
    tick(call, 300_000)
    t.strictSame(take().map(sequenceNumber), again)
  }
})

t.test('ends once, by SHUTDOWN or by silence', async (t) => {
  const left = connect()
  left.call.handleDatagram(shutdown(), 5000)
  left.call.handleDatagram(shutdown(), 5000)
  left.call.close()
  tick(left.call, 10_000)
  t.strictSame(left.events, ['ended shutdown'])

  const silent = connect()
  tick(silent.call, 5_002_000)
  t.strictSame(silent.events, [])
  tick(silent.call, 5_003_000)
  tick(silent.call, 5_013_000)
  t.strictSame(silent.events, ['ended timeout'])
})

t.test('acknowledges and discards data from a listener', async (t) => {
  const { call, take, events } = connect()
  const data = Buffer.alloc(HEADER_BYTES + 10)
  data.writeInt32BE(FIRST, 0)
  data.writeUInt32BE(0xc0000001, 4)
  data.writeInt32BE(CALLER_ID, 12)
  call.handleDatagram(data, 5000)
  tick(call, 10_000)
  t.strictSame(take().map(controlType), [ControlType.ACK])
  t.strictSame(events, [])
})

t.test('neither sends nor reports anything before it starts', async (t) => {
  const { call, events, take } = createCall()
  t.notOk(call.send(Buffer.alloc(1), 0))
  t.equal(call.stats(), undefined)
  call.close()
  tick(call, 0)
  t.strictSame(events, [])
  t.strictSame(take(), [])
})

/** A call whose listener sends, and what its sink gets. */
function createReceiver(options: Parameters<typeof createCall>[0] = {}) {
  const got: string[] = []
  const harness = createCall({
    sink: {
      open: ({ latencyMs, remoteAddress }) => got.push(`open ${latencyMs} ${remoteAddress}`),
      push: (payload) => got.push(payload.toString()),
      gap: (lostPackets) => got.push(`gap ${lostPackets}`),
      end: (reason) => got.push(`end ${reason}`),
    },
    ...options,
  })
  return { ...harness, got }
}

function data(index: number, text: string): Buffer {
  const datagram = Buffer.alloc(HEADER_BYTES + text.length)
  const sequence = (FIRST + index) % 2 ** 31
  writeDataHeader(datagram, { sequence, message: 1 + index, timestampUs: 0, socketId: CALLER_ID })
  datagram.write(text, HEADER_BYTES)
  return datagram
}

t.test('gives what the listener sends to the sink, in order', async (t) => {
  const { call, events, got } = createReceiver()
  call.start(1000)
  call.handleDatagram(encode({}), 2000)
  call.handleDatagram(encode(ACCEPTANCE, [hsResponse]), 3000)
  t.strictSame(got, ['open 350 192.0.2.2'])
  for (const [index, text] of ['a', 'b', 'd', 'c', 'e'].entries()) {
    const sequence = text.charCodeAt(0) - 97
    call.handleDatagram(data(sequence, text), 4000 + index)
  }
  t.strictSame(got.splice(0), ['open 350 192.0.2.2', 'a', 'b', 'c', 'd', 'e'])
  call.handleDatagram(data(7, 'h'), 10_000)
  for (let nowUs = 20_000; nowUs < 500_000; nowUs += 10_000) call.tick(nowUs)
  t.strictSame(got.splice(0), ['gap 2', 'h'], 'a packet that is too late is dropped (4.6)')
  call.handleDatagram(shutdown(), 510_000)
  t.strictSame(got, ['end shutdown'])
  t.strictSame(events, ['connected', 'ended shutdown'])
})

t.test('discards what the listener sends, if told to', async (t) => {
  const { call, got, take } = createReceiver({ receives: false })
  call.start(1000)
  call.handleDatagram(encode({}), 2000)
  call.handleDatagram(encode(ACCEPTANCE, [hsResponse]), 3000)
  take()
  call.handleDatagram(data(0, 'a'), 4000)
  call.handleDatagram(data(7, 'h'), 4000)
  for (let nowUs = 10_000; nowUs < 900_000; nowUs += 10_000) call.tick(nowUs)
  t.strictSame(got, ['open 350 192.0.2.2'])
  t.strictSame(take(), [], 'neither ACK nor NAK')
})

t.test('receives with the latency that the listener wants, up to 8 s', async (t) => {
  for (const [wantedMs, latencyMs] of [
    [0, 350],
    [900, 900],
    [65_535, 8000],
  ]) {
    const { call, got } = createReceiver()
    call.start(1000)
    call.handleDatagram(encode({}), 2000)
    const delays = { receiverDelayMs: 120, senderDelayMs: wantedMs! }
    const response = encodeHsExtension(ExtensionType.HSRSP, delays)
    call.handleDatagram(encode(ACCEPTANCE, [response]), 3000)
    t.strictSame(got, [`open ${latencyMs} 192.0.2.2`])
  }
})

t.test('decrypts with the key that it has announced itself (6.1.5)', async (t) => {
  const encryption = new Encryption({
    keyEncryptionKey: await deriveKey('correct horse', Buffer.alloc(16, 7), 16),
    refreshPackets: 2 ** 24,
    preannouncePackets: 2 ** 12,
    random: (bytes) => Buffer.alloc(bytes, 3),
  })
  const { call, got } = createReceiver({ encryption })
  call.start(1000)
  call.handleDatagram(encode({}), 2000)
  const response = encodeBlock(ExtensionType.KMRSP, encryption.keyMaterial)
  call.handleDatagram(encode({ ...ACCEPTANCE, extensionField: 3 }, [hsResponse, response]), 3000)
  const sealed = data(0, 'secret')
  sealed.set(encryption.seal(sealed, sealed.subarray(HEADER_BYTES)), HEADER_BYTES)
  t.not(sealed.toString('latin1', HEADER_BYTES), 'secret')
  call.handleDatagram(sealed, 4000)
  t.strictSame(got.splice(0), ['open 350 192.0.2.2', 'secret'])
  call.handleDatagram(data(1, 'in clear'), 5000)
  t.strictSame(got, [], 'nothing in clear')
})

t.test('a sink that throws ends its connection, and the host learns of it', async (t) => {
  const { call, events } = createCall({
    sink: {
      open: () => {},
      push: () => {
        throw new Error('no room')
      },
      gap: () => {},
      end: () => {},
    },
  })
  call.start(1000)
  call.handleDatagram(encode({}), 2000)
  call.handleDatagram(encode(ACCEPTANCE, [hsResponse]), 3000)
  call.handleDatagram(data(0, 'a'), 4000)
  t.strictSame(events, ['connected', 'failed: Error: no room', 'ended closed'])
})
