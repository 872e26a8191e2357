import t from 'tap'
import { decodeAdtsHeader } from '../../src/codec/adts.ts'
import { AdtsChannels } from '../../src/codec/adts-channels.ts'
import { readProgramConfig } from '../../src/codec/program-config.ts'
import { adtsFrames } from '../support/access-units.ts'
import { BitWriter, pieces } from './nal-builder.ts'
import { programConfig } from './program-config-builder.ts'

const FRAME_BYTES = 64

const NOTHING = Buffer.alloc(0)

/** Frames whose channels are not in their headers; the first one begins with a program_config_element. */
function frames(count: number, element: Buffer): Buffer {
  const bytes = adtsFrames(count, FRAME_BYTES)
  for (let at = 0; at < bytes.length; at += FRAME_BYTES) {
    bytes[at + 2]! &= 0xfe
    bytes[at + 3]! &= 0x3f
  }
  element.copy(bytes, 7)
  return bytes
}

const channelsOf = (bytes: Buffer) =>
  Array.from(
    { length: bytes.length / FRAME_BYTES },
    (_, index) => decodeAdtsHeader(bytes, index * FRAME_BYTES)?.parameters.channels,
  )

t.test(
  'a program_config_element has a channel configuration (ISO/IEC 14496-3 Table 1.19)',
  async (t) => {
    const elements = ['1', '2', '12', '12 1', '12 2', '12 2L', '122 2L']
    t.strictSame(
      elements.map((each) => readProgramConfig(programConfig(each))),
      [1, 2, 3, 4, 5, 6, 7].map((configuration) => ({ configuration, element: undefined })),
    )
    const side = readProgramConfig(programConfig('12', { side: '2' }))
    t.strictSame(side, { configuration: 5, element: undefined }, 'side speakers')
  },
)

t.test('other elements or another order have the configuration of as many channels', async (t) => {
  const orders: [elements: string, side: string, configuration: number][] = [
    ['21', '12', 6],
    ['1 2', '', 3],
    ['2L', '', 3],
    ['11', '', 2],
    ['222 2', '', 7],
    ['12 22L', '', 7],
    ['12 2L', '2', 7],
    ['122L', '', 6],
  ]
  for (const [elements, side, configuration] of orders) {
    const block = programConfig(elements, { side })
    const found = readProgramConfig(Buffer.concat([block.subarray(0, -1), Buffer.from('\x04Lavc')]))
    t.strictSame(found, { configuration, element: block }, `${elements} ${side}`)
  }
})

t.test('a program_config_element without a channel configuration', async (t) => {
  for (const element of [programConfig('12 2222'), programConfig('12', { coupling: 1 })])
    t.match(readProgramConfig(element), { configuration: 0 })
  t.equal(readProgramConfig(programConfig('12 2L').subarray(0, 6)), undefined, 'cut off')
  t.equal(readProgramConfig(new BitWriter().u(32, 0).bytes), undefined, 'of one channel')
})

t.test(
  'headers of ADTS tell the channels of a program_config_element that is sent once',
  async (t) => {
    const sent = frames(20, programConfig('12 2L'))
    const expected = Buffer.from(sent)
    // channel_configuration 6
    for (let at = 0; at < expected.length; at += FRAME_BYTES) {
      expected[at + 2]! |= 1
      expected[at + 3]! |= 0x80
    }
    t.strictSame(
      channelsOf(expected),
      Array.from({ length: 20 }, () => 6),
    )
    for (let length = 2 * FRAME_BYTES + 7; length < 3 * FRAME_BYTES + 7; length++) {
      const channels = new AdtsChannels({ triedHeaders: 0 })
      const told = [...pieces(sent, length), NOTHING].map((payload) => channels.push(payload))
      t.ok(Buffer.concat(told).equals(expected), `PES packets of ${length} bytes`)
    }
    t.strictSame(channelsOf(sent), Array.from({ length: 20 }), 'the input is as it was')
  },
)

t.test('each frame gets a program_config_element of another order', async (t) => {
  const element = programConfig('21', { side: '12' })
  const sent = frames(20, element)
  const expected: Buffer[] = []
  for (let at = 0; at < sent.length; at += FRAME_BYTES) {
    const added = at === 0 ? NOTHING : element
    const header = Buffer.from(sent.subarray(at, at + 7))
    header.writeUInt32BE(header.readUInt32BE(2) | 0x01_80_00_00, 2)
    header[4] = (FRAME_BYTES + added.length) >> 3
    header[5] = (header[5]! & 0x1f) | (((FRAME_BYTES + added.length) & 7) << 5)
    expected.push(header, added, sent.subarray(at + 7, at + FRAME_BYTES))
  }
  for (let length = 2 * FRAME_BYTES + 7; length < 3 * FRAME_BYTES + 7; length++) {
    const channels = new AdtsChannels({ triedHeaders: 0 })
    const told = [...pieces(sent, length), NOTHING].map((payload) => channels.push(payload))
    t.ok(Buffer.concat(told).equals(Buffer.concat(expected)), `PES packets of ${length} bytes`)
  }
})

t.test('headers are found again behind a loss', async (t) => {
  const sent = frames(12, programConfig('2'))
  const channels = new AdtsChannels({ triedHeaders: 0 })
  channels.push(sent.subarray(0, 4 * FRAME_BYTES + 3))
  channels.restart()
  const told = channels.push(sent.subarray(6 * FRAME_BYTES - 20))
  t.strictSame(
    channelsOf(told.subarray(20)),
    Array.from({ length: 6 }, () => 2),
  )
})

t.test('ADTS stays as it is', async (t) => {
  const isSame = (bytes: Buffer) => new AdtsChannels({ triedHeaders: 0 }).push(bytes) === bytes
  t.ok(isSame(frames(3, programConfig('12 2222'))), 'without a channel configuration')
  t.ok(isSame(frames(3, Buffer.alloc(0))), 'without a program_config_element')
  t.ok(isSame(adtsFrames(3, FRAME_BYTES)), 'with channels')
  const checked = frames(3, programConfig('2'))
  for (let at = 0; at < checked.length; at += FRAME_BYTES) checked[at + 1] = 0xf0
  t.ok(isSame(checked), 'with a CRC')
})
