/**
 * Packets of SRTLA, written by hand from the table of the protocol.
 */
import * as fc from 'fast-check'
import t from 'tap'
import {
  decodeRegistration,
  decodeSenderReport,
  encodeSrtla,
  encodeSrtlaAck,
  SrtlaType,
  srtlaType,
} from '../../../src/srt/srtla/packet.ts'

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')

t.test('types are as in the table', async (t) => {
  const table = {
    9000: SrtlaType.KEEPALIVE,
    9100: SrtlaType.ACK,
    9200: SrtlaType.REG1,
    9201: SrtlaType.REG2,
    9202: SrtlaType.REG3,
    9210: SrtlaType.ERR,
    9211: SrtlaType.NGP,
  }
  for (const [digits, type] of Object.entries(table)) {
    t.equal(srtlaType(hex(digits)), type, digits)
    t.same(encodeSrtla(type), hex(digits), digits)
  }
})

t.test('packets of SRT, and fragments, are none of SRTLA', async (t) => {
  for (const digits of ['', '90', '8000 0000', '8002 0000', 'ffff', '0000 0001', '7fff ffff']) {
    t.equal(srtlaType(hex(digits)), undefined, digits)
  }
})

t.test('an ACK has ten sequence numbers in 44 bytes', async (t) => {
  const sequences = [1, 2, 3, 0x7fffffff, 0, 6, 7, 8, 9, 10]
  const words =
    '00000001 00000002 00000003 7fffffff 00000000 00000006 00000007 00000008 00000009 0000000a'
  const ack = encodeSrtlaAck(sequences)
  t.same(ack, hex(`9100 0000 ${words}`))
  t.equal(ack.length, 44)
})

t.test('a registration has 258 bytes', async (t) => {
  const id = Buffer.from(Array.from({ length: 256 }, (_, index) => index))
  const reg2 = encodeSrtla(SrtlaType.REG2, id)
  t.same(reg2, Buffer.concat([hex('9201'), id]))
  t.same(decodeRegistration(reg2), id)
  t.equal(decodeRegistration(reg2.subarray(0, 257)), undefined)
  t.equal(decodeRegistration(Buffer.concat([reg2, hex('00')])), undefined)
})

t.test('a KEEPALIVE of 38 bytes reports RTT and NAKs of its line', async (t) => {
  const report = hex(
    '9000 0000019abcdef012 c01f 0001 00000003 00004e20 00000011 000000c8 0000002a 0003d090',
  )
  t.equal(report.length, 38)
  t.same(decodeSenderReport(report), { rttMs: 200, naks: 42 })
  t.equal(decodeSenderReport(hex('9000')), undefined)
  t.equal(decodeSenderReport(report.subarray(0, 10)), undefined)
  const other = Buffer.from(report)
  other[13] = 2
  t.equal(decodeSenderReport(other), undefined, 'another version')
})

t.test('no datagram makes the decoders throw', async () => {
  const starts = fc.constantFrom('', '9000', '9100', '9200', '9201', '9000c01f0001')
  const datagrams = fc
    .tuple(starts, fc.uint8Array({ maxLength: 300 }))
    .map(([start, rest]) => Buffer.concat([hex(start), rest]))
  fc.assert(
    fc.property(datagrams, (datagram) => {
      srtlaType(datagram)
      decodeRegistration(datagram)
      decodeSenderReport(datagram)
    }),
  )
})
