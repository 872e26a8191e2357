/**
 * Wire formats against datagrams captured from libsrt 1.5.1 (ffmpeg, srt-live-transmit), and against noise.
 */
import * as fc from 'fast-check'
import t from 'tap'
import { addToSequence, MAX_SEQUENCE_NUMBER } from '../../../src/srt/wire/counters.ts'
import { decodeAck, writeFullAck, writeLightAck } from '../../../src/srt/wire/ack.ts'
import { decodeDropRequest, encodeDropRequest } from '../../../src/srt/wire/drop-request.ts'
import {
  decodeExtensions,
  encodeHsExtension,
  encodeStreamIdExtension,
  ExtensionType,
  formatSrtVersion,
  LIVE_FLAGS,
} from '../../../src/srt/wire/extension.ts'
import {
  decodeHandshake,
  encodeHandshake,
  encodePeerAddress,
  type Handshake,
  HandshakeType,
  UDT_DATAGRAM,
} from '../../../src/srt/wire/handshake.ts'
import { decodeLossList, encodeLossList, MAX_LOSS_RANGES } from '../../../src/srt/wire/loss-list.ts'
import {
  ControlType,
  controlType,
  destinationSocketId,
  encryptionKeyFlag,
  HEADER_BYTES,
  isControl,
  isRetransmitted,
  markRetransmitted,
  MAX_DATAGRAM_BYTES,
  messageNumber,
  sequenceNumber,
  timestampUs,
  typeSpecificInformation,
  writeControlHeader,
  writeDataHeader,
} from '../../../src/srt/wire/packet.ts'

const hex = (text: string) => Buffer.from(text.replaceAll(/[\s|]/g, ''), 'hex')
const behindHeader = (contents: Buffer) => Buffer.concat([Buffer.alloc(HEADER_BYTES), contents])
const behindHandshake = (blocks: Buffer) => Buffer.concat([Buffer.alloc(64), blocks])
const u32 = () => fc.integer({ min: 0, max: 0xffffffff })
const sequences = () => fc.integer({ min: 0, max: MAX_SEQUENCE_NUMBER })

/** Random bytes, from the size of a header to more than a datagram. */
const noise = () =>
  fc
    .uint8Array({ minLength: HEADER_BYTES, maxLength: MAX_DATAGRAM_BYTES + 30 })
    .map((bytes) => Buffer.from(bytes))

t.test('decodes the data header that it encodes (draft 3.1)', async (t) => {
  const headers = fc.record({
    sequence: sequences(),
    message: fc.integer({ min: 1, max: 0x03ffffff }),
    timestampUs: u32(),
    socketId: fc.integer({ min: 1, max: 0x7fffffff }),
  })
  fc.assert(
    fc.property(headers, (header) => {
      const datagram = Buffer.alloc(HEADER_BYTES)
      writeDataHeader(datagram, header)
      t.notOk(isControl(datagram))
      t.equal(datagram[4]! >> 6, 3, 'PP: a packet is a whole message')
      t.equal(sequenceNumber(datagram), header.sequence)
      t.equal(messageNumber(datagram), header.message)
      t.equal(encryptionKeyFlag(datagram), 0)
      t.equal(timestampUs(datagram), header.timestampUs)
      t.equal(destinationSocketId(datagram), header.socketId)
      t.notOk(isRetransmitted(datagram))
      markRetransmitted(datagram)
      t.ok(isRetransmitted(datagram))
      t.equal(messageNumber(datagram), header.message)
    }),
    { numRuns: 50 },
  )
})

t.test('the KK flag lies between the order and retransmission flags (draft 3.1)', async (t) => {
  for (const [word, flag] of [
    ['c0000001', 0],
    ['c8000001', 1],
    ['f4000001', 2],
  ] as const) {
    t.equal(encryptionKeyFlag(hex(`00000000 ${word} 00000000 00000000`)), flag)
  }
})

t.test(
  'a control header has type and information, and timestamps modulo 2^32 (draft 3.2)',
  async (t) => {
    const datagram = Buffer.alloc(HEADER_BYTES)
    writeControlHeader(datagram, {
      type: ControlType.USER_DEFINED,
      information: 0xfffffffe,
      timestampUs: 2 ** 32 + 17.9,
      socketId: 0x12345678,
    })
    t.strictSame(datagram, hex('ffff0000 fffffffe 00000011 12345678'))
    t.ok(isControl(datagram))
    t.equal(controlType(datagram), ControlType.USER_DEFINED)
    t.equal(typeSpecificInformation(datagram), 0xfffffffe)
  },
)

t.test('decodes the induction of a libsrt caller', async (t) => {
  const datagram = hex(`
    80000000 00000000 0000002a 00000000
    00000004 00000002 1a2b3c4d 000005dc 00002000 00000001 2468ace0 00000000
    0100007f 00000000 00000000 00000000`)
  const handshake: Handshake = {
    version: 4,
    encryptionField: 0,
    extensionField: UDT_DATAGRAM,
    initialSequenceNumber: 0x1a2b3c4d,
    mtuBytes: 1500,
    flowWindowPackets: 8192,
    type: HandshakeType.INDUCTION,
    socketId: 0x2468ace0,
    cookie: 0,
  }
  t.strictSame(decodeHandshake(datagram), handshake)
  const packet = { socketId: 0, timestampUs: 42, peerAddress: '127.0.0.1' }
  t.strictSame(encodeHandshake(handshake, packet), datagram)
})

t.test('encodes peer addresses with the bytes of each word reversed, as libsrt does', async (t) => {
  const zeros = '00000000'
  t.equal(encodePeerAddress('127.0.0.1').toString('hex'), `0100007f${zeros.repeat(3)}`)
  t.equal(encodePeerAddress('2001:db8::1').toString('hex'), `b80d0120${zeros.repeat(2)}01000000`)
  t.equal(encodePeerAddress('::').toString('hex'), zeros.repeat(4))
  t.equal(
    encodePeerAddress('::ffff:192.0.2.1').toString('hex'),
    `${zeros.repeat(2)}ffff0000010200c0`,
  )
  t.equal(encodePeerAddress('fe80::1%eth0').toString('hex'), `000080fe${zeros.repeat(2)}01000000`)
  t.equal(encodePeerAddress('localhost').toString('hex'), zeros.repeat(4))
})

t.test('decodes HSREQ and StreamID of srt-live-transmit', async (t) => {
  const blocks = hex(`
    00010003 00010501 000000bf 015e015e
    00050006 3a3a2123 696c3d72 612f6576 6d2c6362 6275703d 6873696c`)
  const hs = {
    srtVersion: 0x010501,
    flags: LIVE_FLAGS,
    receiverDelayMs: 350,
    senderDelayMs: 350,
  }
  const streamId = '#!::r=live/abc,m=publish'
  t.strictSame(decodeExtensions(behindHandshake(blocks)), { hs, streamId })
  t.strictSame(
    Buffer.concat([encodeHsExtension(ExtensionType.HSREQ, hs), encodeStreamIdExtension(streamId)]),
    blocks,
  )
  t.equal(formatSrtVersion(0x010501), '1.5.1')
})

t.test('pads a StreamID to whole words (draft 3.2.1.3)', async (t) => {
  const block = hex('00050001 00636261')
  t.strictSame(encodeStreamIdExtension('abc'), block)
  t.equal(decodeExtensions(behindHandshake(block))?.streamId, 'abc')
})

t.test('decodes texts of the maximum length, and rejects longer ones', async (t) => {
  const text = fc.string({ unit: 'grapheme', maxLength: 120 })
  fc.assert(
    fc.property(text, (streamId) => {
      fc.pre(!streamId.endsWith('\0'))
      return (
        decodeExtensions(behindHandshake(encodeStreamIdExtension(streamId)))?.streamId === streamId
      )
    }),
  )
  const filter = Buffer.concat([hex('00070010'), Buffer.alloc(64)])
  t.equal(decodeExtensions(behindHandshake(filter))?.filter?.length, 64)
  const congestion = Buffer.concat([hex('00060004'), Buffer.alloc(16)])
  t.equal(decodeExtensions(behindHandshake(congestion))?.congestion, '')
  const longest = encodeStreamIdExtension('x'.repeat(512))
  t.equal(decodeExtensions(behindHandshake(longest))?.streamId?.length, 512)
  t.equal(decodeExtensions(behindHandshake(encodeStreamIdExtension('x'.repeat(513)))), undefined)
})

t.test('decodes extension blocks in any order, and skips unknown ones', async (t) => {
  const filter = '2c636566 736c6f63 2c30313a 73776f72 0000353a'
  const blocks = hex(`
    00070005 ${filter}
    7abc0002 11111111 22222222
    00060001 6576696c
    00080002 40000001 01000001
    00030001 12202901`)
  t.strictSame(decodeExtensions(behindHandshake(blocks)), {
    congestion: 'live',
    filter: hex(filter),
    keyMaterial: hex('12202901'),
    group: { groupId: 0x40000001, type: 1, weight: 1 },
  })
  t.strictSame(decodeExtensions(behindHandshake(Buffer.alloc(0))), {})
})

t.test('rejects blocks that overrun, remain, repeat or have the wrong size', async (t) => {
  const hs = '00010003 00010501 000000bf 00780000'
  for (const [name, blocks] of Object.entries({
    'one stray byte': `${hs} 00`,
    'two stray bytes': `${hs} 0005`,
    'three stray bytes': `${hs} 000500`,
    'a length that overruns': `${hs} 00050002 00636261`,
    'a block twice': `${hs} ${hs}`,
    'an unknown block twice': '7abc0000 7abc0000',
    'a short HSREQ': '00010002 00010501 000000bf',
    'a long HSREQ': '00010004 00010501 000000bf 00780000 00000000',
    'CONGESTION of 20 bytes': `00060005 ${'6576696c'.repeat(5)}`,
    'FILTER of 68 bytes': `00070011 ${'2c636566'.repeat(17)}`,
    '17 blocks': Array.from({ length: 17 }, (_, i) => (0x70000000 + i * 65536).toString(16)).join(),
  })) {
    t.equal(decodeExtensions(behindHandshake(hex(blocks.replaceAll(',', '')))), undefined, name)
  }
})

t.test('decodes light, small and full ACKs (draft 3.2.4)', async (t) => {
  const light = Buffer.alloc(HEADER_BYTES + 4)
  writeLightAck(light, 0x7ffffff0)
  t.strictSame(decodeAck(light), { nextExpected: 0x7ffffff0 })

  const full = Buffer.alloc(HEADER_BYTES + 28)
  const report = { rttUs: 100_000, rttVarianceUs: 50_000, freePackets: 8192 }
  writeFullAck(full, 5, report, { packetsPerSec: 475.2, bytesPerSec: 625_000 })
  t.strictSame(
    full.subarray(HEADER_BYTES),
    hex('00000005 000186a0 0000c350 00002000 000001db 000003e8 00098968'),
  )
  t.strictSame(decodeAck(full), { nextExpected: 5, report })
  t.strictSame(decodeAck(full.subarray(0, HEADER_BYTES + 16)), { nextExpected: 5, report })

  for (const length of [0, 1, 3, 5, 17, 27]) {
    t.equal(decodeAck(full.subarray(0, HEADER_BYTES + length)), undefined, `${length} bytes`)
  }
})

t.test(
  'encodes and decodes single packets and ranges in loss lists (draft appendix A)',
  async (t) => {
    const ranges = [
      { first: 7, last: 7 },
      { first: 10, last: 11 },
      { first: 0x7fffffff, last: 2 },
      { first: 0, last: 0 },
    ]
    const encoded = hex('00000007 8000000a 0000000b ffffffff 00000002 00000000')
    t.strictSame(encodeLossList(ranges), encoded)
    t.strictSame(decodeLossList(behindHeader(encoded)), ranges)
  },
)

t.test('leaves a range out of a loss list with room for one word only', async (t) => {
  const single = (sequence: number) => ({ first: sequence, last: sequence })
  const singles = Array.from({ length: 363 }, (_, number) => single(number * 2))
  const ranges = [...singles, { first: 1000, last: 1001 }, single(2000)]
  t.strictSame(decodeLossList(behindHeader(encodeLossList(ranges))), singles)
})

t.test('rejects loss lists with invalid ranges', async (t) => {
  for (const [name, words] of Object.entries({
    'nothing listed': '',
    'half a word': '0000',
    'a range without its end': '00000007 8000000a',
    'a range that ends before it begins': '8000000b 0000000a',
    'a range that ends in a range': '8000000a 8000000b',
  })) {
    t.equal(decodeLossList(behindHeader(hex(words))), undefined, name)
  }
})

t.test('encodes a loss list into one datagram, and decodes it', async (t) => {
  const run = fc.tuple(sequences(), fc.integer({ min: 0, max: 5000 }))
  fc.assert(
    fc.property(fc.array(run, { minLength: 1, maxLength: 400 }), (runs) => {
      const ranges = runs.map(([first, more]) => ({ first, last: addToSequence(first, more) }))
      const encoded = encodeLossList(ranges)
      const decoded = decodeLossList(behindHeader(encoded)) ?? []
      t.ok(encoded.length + HEADER_BYTES <= MAX_DATAGRAM_BYTES)
      t.ok(decoded.length >= Math.min(ranges.length, MAX_LOSS_RANGES))
      t.strictSame(decoded, ranges.slice(0, decoded.length))
    }),
    { numRuns: 50 },
  )
})

t.test(
  'rejects drop requests that are reversed or shorter than two words (draft 3.2.9)',
  async (t) => {
    const range = hex('7ffffffe 00000003')
    t.strictSame(decodeDropRequest(behindHeader(range)), { first: 0x7ffffffe, last: 3 })
    const single = hex('00000000 00000000')
    t.strictSame(decodeDropRequest(behindHeader(single)), { first: 0, last: 0 })
    t.equal(decodeDropRequest(behindHeader(range.subarray(0, 7))), undefined)
    t.equal(decodeDropRequest(behindHeader(hex('00000004 00000003'))), undefined)
    t.equal(decodeDropRequest(behindHeader(hex('80000004 80000005'))), undefined)
    t.equal(decodeDropRequest(behindHeader(hex('00000004 80000005'))), undefined)
  },
)

t.test('decodes drop requests of libsrt and its own', async (t) => {
  // srt-live-transmit 1.5.1 (libsrt 1.5.1), after a NAK for five packets that it had sent more than a second before.
  const captured = hex('80070000 00000000 002da31a 13b3591c 689de6f6 689de6fa')
  t.equal(controlType(captured), ControlType.DROPREQ)
  const range = { first: 0x689de6f6, last: 0x689de6fa }
  t.strictSame(decodeDropRequest(captured), range)
  t.strictSame(encodeDropRequest(range), captured.subarray(HEADER_BYTES))
  fc.assert(
    fc.property(sequences(), fc.nat(2 ** 30 - 1), (first, more) => {
      const range = { first, last: addToSequence(first, more) }
      t.strictSame(decodeDropRequest(behindHeader(encodeDropRequest(range))), range)
    }),
  )
})

t.test('no decoder throws on random bytes', async (t) => {
  fc.assert(
    fc.property(noise(), (datagram) => {
      decodeHandshake(datagram)
      decodeExtensions(datagram)
      decodeAck(datagram)
      decodeLossList(datagram)
      decodeDropRequest(datagram)
    }),
    { numRuns: 2000 },
  )
  t.pass()
})

t.test(
  'decodes or rejects a valid conclusion cut at any byte or with any block length',
  async (t) => {
    const good = Buffer.concat([
      Buffer.alloc(64),
      encodeHsExtension(ExtensionType.HSREQ, {
        srtVersion: 0x010501,
        flags: LIVE_FLAGS,
        receiverDelayMs: 120,
        senderDelayMs: 0,
      }),
      encodeStreamIdExtension('mode=publish'),
    ])
    for (let length = 65; length < good.length; length++) {
      const whole = length === 80
      t.equal(decodeExtensions(good.subarray(0, length)) === undefined, !whole, `${length} bytes`)
    }
    for (const offset of [66, 82]) {
      for (const words of [0, 1, 2, 4, 5, 0xffff]) {
        const bent = Buffer.from(good)
        bent.writeUInt16BE(words, offset)
        t.equal(decodeExtensions(bent), undefined, `${words} words at ${offset}`)
      }
    }
  },
)
