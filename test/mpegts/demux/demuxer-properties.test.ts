/** Properties of the demuxer for any input in any pieces. */
import * as fc from 'fast-check'
import t from 'tap'
import { Demuxer, type DemuxerOutput } from '../../../src/mpegts/demux/demuxer.ts'
import type { PesUnit } from '../../../src/mpegts/pes-unit.ts'
import { frame, loas } from '../../codec/latm-builder.ts'
import { h264AccessUnit } from '../../support/access-units.ts'
import { cut, demux, payloadOf, readFixture, unitsOf } from '../demux.ts'
import { patSection, pesPacket, pmtSection, psiSection, TsBuilder } from '../ts-builder.ts'

const START_CODE = Buffer.from([0, 0, 0, 1])

const CLIPS = [
  'h264-aac',
  'h264-mp2-nit',
  'h264-aac-nulls',
  'h264-ac3-192',
  'h265-aac',
  'eac3',
  'gstreamer',
]
/** Codecs whose units depend on earlier units. */
const BUILT = ['h264 without sets and delimiters', 'latm']
const clips = new Map([
  ...CLIPS.map((name) => [name, readFixture(name)] as const),
  [BUILT[0]!, bareKeyFrames()],
  [BUILT[1]!, latm()],
])
const clip = fc.constantFrom(...CLIPS, ...BUILT)
const encoded = fc.constantFrom(...CLIPS)

/** Outputs in a form that does not depend on the pieces of the input. */
const uncut = (outputs: readonly DemuxerOutput[]) =>
  JSON.stringify(outputs, (_, value: unknown) =>
    Array.isArray(value) && Buffer.isBuffer(value[0])
      ? Buffer.concat(value as Buffer[]).toString('base64')
      : value,
  )

t.test('outputs are the same for any pieces of the input', async () => {
  const expected = new Map([...clips].map(([name, bytes]) => [name, uncut(demux(bytes))]))
  const sizes = fc.array(fc.integer({ min: 1, max: 3000 }), { minLength: 1, maxLength: 20 })
  fc.assert(
    fc.property(clip, sizes, (name, sizes) => {
      return uncut(demux(clips.get(name)!, sizes)) === expected.get(name)
    }),
    { numRuns: 60 },
  )
})

t.test('a demuxer that joins at any byte puts out units of the whole stream', async () => {
  fc.assert(
    fc.property(encoded, fc.nat(20_000), (name, offset) => {
      const bytes = clips.get(name)!
      const whole = new Set(unitsOf(demux(bytes)).map(describe))
      const units = unitsOf(demux(bytes.subarray(offset % bytes.length))).map(describe)
      return units.every((unit) => whole.has(unit))
    }),
    { numRuns: 60 },
  )
})

t.test(
  'a lost SRT packet damages the units it held, and no incomplete unit is called intact',
  async () => {
    fc.assert(
      fc.property(encoded, fc.nat(1000), (name, lost) => {
        const bytes = clips.get(name)!
        const whole = new Set(unitsOf(demux(bytes)).map(describe))
        const demuxer = new Demuxer()
        const outputs: DemuxerOutput[] = []
        for (const [index, piece] of [...cut(bytes, [1316])].entries()) {
          if (index === lost % Math.floor(bytes.length / 1316)) demuxer.gap(1)
          else outputs.push(...demuxer.push(piece))
        }
        const units = unitsOf(outputs.concat(demuxer.end()))
        return units.every((unit) => unit.damaged || whole.has(describe(unit)))
      }),
      // The end of a PES lost, and after it nothing of its PID, or a PCR alone.
      {
        numRuns: 100,
        examples: [
          ['h264-mp2-nit', 418],
          ['h264-aac-nulls', 808],
        ],
      },
    )
  },
)

/** A mutation of bytes. */
type Mutation = (bytes: Buffer) => Buffer

const place = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const splice = (at: number, remove: number, insert: Uint8Array): Mutation => {
  return (bytes) => {
    const begin = Math.floor(at * bytes.length)
    return Buffer.concat([bytes.subarray(0, begin), insert, bytes.subarray(begin + remove)])
  }
}
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.tuple(place, fc.nat(255)).map(([at, value]) => splice(at, 1, Buffer.from([value]))),
  fc.tuple(place, fc.nat(1000)).map(([at, length]) => splice(at, length, Buffer.alloc(0))),
  fc
    .tuple(place, fc.uint8Array({ minLength: 1, maxLength: 400 }))
    .map(([at, junk]) => splice(at, 0, junk)),
  // The header of a packet, where one byte does the most.
  fc.tuple(place, fc.nat(20), fc.nat(255)).map(([at, offset, value]): Mutation => {
    return (bytes) => {
      const changed = Buffer.from(bytes)
      const packet = Math.floor((at * bytes.length) / 188) * 188
      if (packet + offset < changed.length) changed[packet + offset] = value
      return changed
    }
  }),
)

t.test('mutated streams never throw, and their outputs are well formed', async () => {
  fc.assert(
    fc.property(
      clip,
      fc.array(mutation, { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: 4000 }),
      (name, mutations, size) => {
        const mutated = mutations.reduce((bytes, mutate) => mutate(bytes), clips.get(name)!)
        return demux(mutated, [size]).every(isWellFormed)
      },
    ),
    { numRuns: 300 },
  )
})

/** Packets of a few PIDs with random header bits, and sections of random content with a valid CRC_32. */
const pid = fc.constantFrom(0, 0x100, 0x101, 0x102, 0x1000, 0x1fff)
const packet = fc.record({
  pid,
  counter: fc.option(fc.nat(15), { nil: undefined }),
  payload: fc.uint8Array({ maxLength: 184 }),
  unitStart: fc.boolean(),
  discontinuity: fc.boolean(),
  scrambling: fc.constantFrom(0, 0, 0, 1),
})
const start = fc.tuple(fc.constantFrom(0x100, 0x101, 0x102), fc.uint8Array({ maxLength: 600 }))
const tableBody = fc.uint8Array({ maxLength: 300 })
const streamEntry = fc.record({
  pid: fc.integer({ min: 0xff, max: 0x103 }),
  streamType: fc.constantFrom(0x03, 0x06, 0x0f, 0x11, 0x1b, 0x24, 0x81, 0x86, 0x87),
  descriptors: fc.uint8Array({ maxLength: 20 }),
})
const step = fc.oneof(
  packet.map((fields) => (ts: TsBuilder) => {
    const { counter, ...rest } = fields
    return counter === undefined ? ts.packet(rest) : ts.packet({ ...rest, counter })
  }),
  start.map(([pid, bytes]) => (ts: TsBuilder) => {
    const head = [0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5, 0x21, 0, 1, 0, 1, 0, 0, 1]
    return ts.unit(pid, Buffer.concat([Buffer.from(head), bytes]))
  }),
  tableBody.map((body) => (ts: TsBuilder) => ts.sections(0, psiSection(0, 1, body))),
  tableBody.map((body) => (ts: TsBuilder) => ts.sections(0x1000, psiSection(2, 1, body))),
  fc.array(streamEntry, { maxLength: 5 }).map((streams) => (ts: TsBuilder) => {
    return ts.sections(0, patSection([[1, 0x1000]])).sections(0x1000, pmtSection(1, 0x100, streams))
  }),
)

t.test('generated streams never throw, and their outputs are well formed', async () => {
  fc.assert(
    fc.property(
      fc.array(step, { minLength: 5, maxLength: 60 }),
      fc.integer({ min: 1, max: 2000 }),
      (steps, size) => {
        const ts = new TsBuilder().program([
          { pid: 0x100, streamType: 0x1b },
          { pid: 0x101, streamType: 0x0f },
        ])
        for (const take of steps) take(ts)
        return demux(ts.bytes, [size]).every(isWellFormed)
      },
    ),
    { numRuns: 300 },
  )
})

t.test('random bytes give no outputs', async () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 20_000 }), (bytes) => {
      const demuxer = new Demuxer()
      return demux(Buffer.from(bytes), [1316], demuxer).length === 0
    }),
    { numRuns: 50 },
  )
})

/** Video with every fifth frame a key frame, parameter sets in the first only, and no delimiters. */
function bareKeyFrames(): Buffer {
  const ts = new TsBuilder().program([{ pid: 0x100, streamType: 0x1b }])
  for (let index = 0; index < 40; index++) {
    const key = index % 5 === 0
    const unit = h264AccessUnit({ key, sizeBytes: 200 + 97 * index })
    const bytes = unit.subarray(key && index > 0 ? unit.lastIndexOf(START_CODE) : 6)
    const length = index % 2 === 0 ? 'none' : 'true'
    ts.unit(0x100, pesPacket(bytes, { ptsTicks: 3000 * index, length }))
  }
  return ts.bytes
}

/** LATM with a StreamMuxConfig in every fourth PES packet. */
function latm(): Buffer {
  const ts = new TsBuilder().program([{ pid: 0x100, streamType: 0x11 }])
  for (let index = 0; index < 40; index++) {
    const first = loas(
      index % 4 === 0 ? { version: index % 8 === 0 ? 0 : 1 } : undefined,
      frame(index, 50),
    )
    const bytes = Buffer.concat([first, loas(undefined, frame(index, 10 * index))])
    ts.unit(0x100, pesPacket(bytes, { ptsTicks: 3840 * index, streamId: 0xc0 }))
  }
  return ts.bytes
}

/** A unit without its packets, since a lost PCR-only packet loses no media. */
function describe(unit: PesUnit): string {
  const bytes = payloadOf(unit).toString('base64')
  return `${unit.track.pid} ${unit.ptsTicks} ${unit.dtsTicks} ${unit.randomAccess} ${bytes}`
}

function isWellFormed(output: DemuxerOutput): boolean {
  if (output.type === 'program') {
    const pids = output.program.tracks.map(({ pid }) => pid)
    return new Set(pids).size === pids.length
  }
  if (output.type === 'header') return Number.isSafeInteger(output.times.dtsTicks)
  if (output.type === 'packets') return isPackets(output.chunks)
  if (output.type === 'splice') return Number.isSafeInteger(output.splice.ptsTicks ?? 0)
  const { chunks, sizeBytes, ptsTicks, dtsTicks } = output.unit
  const sum = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  return (
    isPackets(chunks) &&
    sum === sizeBytes &&
    Number.isSafeInteger(ptsTicks) &&
    Number.isSafeInteger(dtsTicks)
  )
}

function isPackets(chunks: readonly Buffer[]): boolean {
  return chunks.every((chunk) => {
    for (let at = 0; at < chunk.length; at += 188) if (chunk[at] !== 0x47) return false
    return chunk.length > 0 && chunk.length % 188 === 0
  })
}
