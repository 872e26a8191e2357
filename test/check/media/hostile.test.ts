/**
 * Inspection of hostile bytes: nothing is thrown, and work and memory stay in proportion to the bytes.
 */
import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import t from 'tap'
import { inspectMedia } from '../../../src/check/media/inspect.ts'
import { fields, makeBox, makeInit, makeSegment } from './box-builder.ts'
import { SEGMENT_OF_VIDEO, VIDEO_INIT } from './video-file.ts'

const PLAIN = { encryption: undefined, init: undefined }
const INIT = makeInit([
  { id: 1, handler: 'vide', ticksPerSec: 90_000, entry: 'avc1' },
  { id: 2, handler: 'soun', ticksPerSec: 48_000, entry: 'mp4a' },
])
const SEGMENT = makeSegment([
  { id: 1, decodeTicks: 0, samples: [3000, 3000, 3000] },
  { id: 2, decodeTicks: 0, samples: [1024, 1024] },
])
const TS = ['h264-aac', 'h265-aac', 'eac3', 'two-programs'].map((name) =>
  readFileSync(new URL(`../../../fixtures/${name}.mpegts`, import.meta.url)).subarray(0, 18_800),
)

/** Flips bytes, drops a range, and cuts off the end. */
const mutation = fc.record({
  flips: fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 20 }),
  dropped: fc.tuple(fc.nat(), fc.nat(400)),
  cut: fc.nat(100),
})

function mutate(
  bytes: Buffer,
  { flips, dropped: [at, count], cut }: typeof mutation extends fc.Arbitrary<infer T> ? T : never,
): Buffer {
  const start = at % bytes.length
  const kept = [bytes.subarray(0, start), bytes.subarray(start + count, bytes.length - cut)]
  const mutated = Buffer.concat(kept)
  for (const [at, value] of flips) mutated[at % mutated.length] = value
  return mutated
}

/** Every fact is a figure or a sentence that can be printed. */
function inspect(bytes: Buffer, init?: Buffer): boolean {
  const { tracks, faults, sizeBytes } = inspectMedia(bytes, { encryption: undefined, init })
  return (
    sizeBytes === bytes.length &&
    faults.every(({ text }) => /^[\x20-\x7e]{1,200}$/.test(text)) &&
    tracks.every(({ frames, keyFrames }) => frames >= 0 && keyFrames <= frames)
  )
}

t.test('accepts any bytes', async () => {
  const bytes = fc.uint8Array({ maxLength: 3000 }).map((array) => Buffer.from(array))
  fc.assert(fc.property(bytes, (bytes) => inspect(bytes)))
  fc.assert(fc.property(bytes, (bytes) => inspect(bytes, bytes)))
  const starts = ['ftyp', 'moof', 'mdat', 'ID3', 'WEBVTT', 'G'].map((text) => Buffer.from(text))
  fc.assert(
    fc.property(fc.constantFrom(...starts), bytes, (start, rest) =>
      inspect(Buffer.concat([Buffer.from([0, 0, 4, 0]), start, rest]), INIT),
    ),
  )
})

t.test('accepts mutated transport streams', async () => {
  fc.assert(
    fc.property(fc.constantFrom(...TS), mutation, (bytes, edit) => inspect(mutate(bytes, edit))),
    { numRuns: 300 },
  )
})

t.test('accepts mutated fMP4 segments and init segments', async (t) => {
  t.match(inspectMedia(SEGMENT, { ...PLAIN, init: INIT }), {
    faults: [],
    tracks: [{ frames: 3 }, { frames: 2 }],
  })
  fc.assert(
    fc.property(mutation, mutation, (segment, init) =>
      inspect(mutate(SEGMENT, segment), mutate(INIT, init)),
    ),
    { numRuns: 2000 },
  )
})

t.test('accepts mutated samples of NAL units', async (t) => {
  t.match(inspectMedia(SEGMENT_OF_VIDEO, { ...PLAIN, init: VIDEO_INIT }), { faults: [] })
  fc.assert(
    fc.property(mutation, mutation, (segment, init) =>
      inspect(mutate(SEGMENT_OF_VIDEO, segment), mutate(VIDEO_INIT, init)),
    ),
    { numRuns: 1000 },
  )
})

t.test('accepts boxes of any size and depth', async () => {
  const types = ['moof', 'traf', 'trun', 'tfhd', 'tfdt', 'moov', 'trak', 'stsd', 'mdat', 'avcC']
  const { box } = fc.letrec<{ box: Buffer; payload: Buffer }>((tie) => ({
    box: fc
      .tuple(fc.constantFrom(...types), tie('payload'), fc.option(fc.nat(0xffffffff)))
      .map(([type, payload, size]) => makeBox(type, payload, size ?? undefined)),
    payload: fc.oneof(
      { depthSize: 'large' },
      fc.uint8Array({ maxLength: 60 }).map((array) => Buffer.from(array)),
      fc.array(tie('box'), { maxLength: 4 }).map((boxes) => Buffer.concat(boxes)),
    ),
  }))
  fc.assert(
    fc.property(fc.array(box, { maxLength: 6 }), (boxes) => {
      const bytes = Buffer.concat([makeBox('styp', Buffer.alloc(8)), ...boxes])
      return inspect(bytes, INIT) && inspect(bytes, bytes)
    }),
  )
})

/** Inputs of 1 MiB that promise more work than they have bytes. */
const COSTLY: Readonly<Record<string, Buffer>> = {
  'a run of 2^32 samples without fields': makeSegment([
    { id: 1, decodeTicks: 0, count: 2 ** 32 - 1 },
  ]),
  'boxes without payload': Buffer.concat(Array<Buffer>(131_072).fill(makeBox('free'))),
  'boxes in boxes': Buffer.concat(
    Array.from({ length: 131_072 }, (_, depth) =>
      makeBox('moof', undefined, (131_072 - depth) * 8),
    ),
  ),
  'packets of all PIDs': Buffer.concat(
    Array.from({ length: 5577 }, (_, index) => {
      const packet = Buffer.alloc(188, 0x47)
      packet.writeUInt16BE(0x4000 | (8191 - (index % 8191)), 1)
      packet[3] = 0x10
      return packet
    }),
  ),
  'sync bytes': Buffer.alloc(1 << 20, 0x47),
  'samples that are all of the media each, with NAL units without bytes': Buffer.concat([
    makeBox(
      'moof',
      makeBox(
        'traf',
        Buffer.concat([
          makeBox('tfhd', fields(0x020010, 1, 1 << 19)),
          makeBox('tfdt', fields(0, 0)),
          ...Array<Buffer>(9_000).fill(makeBox('trun', fields(1, 1, 300_000))),
        ]),
      ),
    ),
    makeBox('mdat', Buffer.alloc(1 << 20)),
  ]),
  'headers of audio frames': Buffer.alloc(1 << 20, Buffer.from('fff14c8001000000', 'hex')),
}

for (const [title, bytes] of Object.entries(COSTLY)) {
  t.test(`spends less than 5 s of CPU on 1 MiB: ${title}`, async (t) => {
    const started = process.cpuUsage()
    t.ok(inspect(bytes, INIT))
    t.ok(inspect(bytes, VIDEO_INIT))
    t.ok(process.cpuUsage(started).user < 5e6)
  })
}
