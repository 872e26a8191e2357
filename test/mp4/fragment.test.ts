import * as fc from 'fast-check'
import t from 'tap'
import { FragmentWriter } from '../../src/mp4/fragment.ts'
import type { Sample } from '../../src/mp4/sample.ts'
import { listBoxes, payloadsOf, readSamples } from './box-tree.ts'
import { ChunkMemory } from './chunk-memory.ts'

function sample(decodeTicks: number, bytes: Buffer, fields: Partial<Sample<string>> = {}) {
  return {
    format: 'any',
    chunks: [bytes],
    sizeBytes: bytes.length,
    decodeTicks,
    compositionOffset: 0,
    sync: true,
    continues: false,
    ...fields,
  }
}

t.test('the boxes of a fragment stand in the order of CMAF (23000-19 7.3.2.3)', async (t) => {
  const writer = new FragmentWriter({ trackId: 1, memory: new ChunkMemory() })
  const types = (fields: object) => {
    writer.push(sample(0, Buffer.from('a')))
    const { chunks } = writer.end({ untilTicks: 1, startsSegment: false, ...fields })!
    return listBoxes(Buffer.concat(chunks)).map(({ path }) => path)
  }
  const fragment = ['moof', 'moof/mfhd', 'moof/traf', 'moof/traf/tfhd', 'moof/traf/tfdt']
  const rest = [...fragment, 'moof/traf/trun', 'mdat']
  t.strictSame(types({}), rest)
  const events = [{ id: 1, ptsTicks: 5, tag: Buffer.from('ID3') }]
  t.strictSame(types({ startsSegment: true, events }), [...['styp', 'emsg'], ...rest])
})

t.test('a fragment keeps the memory alone that it is given, its boxes included', async (t) => {
  const given: Buffer[] = []
  const memory = new ChunkMemory(() => {
    given.push(Buffer.allocUnsafeSlow(100))
    return given.at(-1)!
  })
  const writer = new FragmentWriter({ trackId: 1, memory })
  for (let number = 0; number < 10; number++) {
    writer.push(sample(number, Buffer.alloc(70)))
    const { chunks } = writer.end({ untilTicks: number + 1, startsSegment: true })!
    t.ok(chunks.every(({ buffer }) => given.some((it) => it.buffer === buffer)))
  }
})

t.test('sequence numbers grow by one, and a fragment without samples has none', async (t) => {
  const writer = new FragmentWriter({ trackId: 7, memory: new ChunkMemory() })
  t.equal(writer.end({ untilTicks: 0, startsSegment: true }), undefined)
  for (const number of [1, 2]) {
    writer.push(sample(number, Buffer.from('a')))
    const { chunks } = writer.end({ untilTicks: number + 1, startsSegment: false })!
    t.strictSame(payloadsOf(Buffer.concat(chunks), 'moof/mfhd'), [`000000000000000${number}`])
    t.match(payloadsOf(Buffer.concat(chunks), 'moof/traf/tfhd')[0], /^00020028 ?00000007/)
  }
})

t.test('tfdt has 64 bits, exact to 2^53 (14496-12 8.8.12)', async (t) => {
  const writer = new FragmentWriter({ trackId: 1, memory: new ChunkMemory() })
  for (const ticks of [0, 2 ** 32, Number.MAX_SAFE_INTEGER - 1]) {
    writer.push(sample(ticks, Buffer.from('a')))
    const { chunks } = writer.end({ untilTicks: ticks + 1, startsSegment: false })!
    const hex = `01000000${ticks.toString(16).padStart(16, '0')}`
    t.strictSame(payloadsOf(Buffer.concat(chunks), 'moof/traf/tfdt'), [hex])
  }
})

t.test('what all samples share is in tfhd, the rest in trun', async (t) => {
  const writer = new FragmentWriter({ trackId: 1, memory: new ChunkMemory() })
  const run = (samples: readonly Sample<string>[], untilTicks: number) => {
    for (const each of samples) writer.push(each)
    const bytes = Buffer.concat(writer.end({ untilTicks, startsSegment: false })!.chunks)
    const flags = (path: string) => Number.parseInt(payloadsOf(bytes, path)[0]!.slice(2, 8), 16)
    return [flags('moof/traf/tfhd'), flags('moof/traf/trun')]
  }
  const [a, b] = [Buffer.from('a'), Buffer.from('bb')]
  t.strictSame(run([sample(0, a), sample(1024, b)], 2048), [0x20028, 0x201])
  t.strictSame(run([sample(0, a), sample(1024, b)], 2049), [0x20020, 0x301])
  t.strictSame(run([sample(0, a), sample(5, b, { sync: false })], 10), [0x20008, 0x601])
  t.strictSame(run([sample(0, a, { compositionOffset: -1 })], 5), [0x20028, 0xa01])
})

t.test('samples come back byte for byte with their times, across chunks of memory', async () => {
  const input = fc.record({
    bytes: fc.uint8Array({ minLength: 1, maxLength: 40 }).map((each) => Buffer.from(each)),
    step: fc.integer({ min: 1, max: 2 ** 20 }),
    offset: fc.integer({ min: -(2 ** 31) + 1, max: 2 ** 31 - 1 }),
    sync: fc.boolean(),
    ends: fc.boolean(),
    continues: fc.boolean(),
  })
  fc.assert(
    fc.property(
      fc.array(input, { minLength: 1, maxLength: 30 }),
      fc.integer({ min: 1, max: 50 }),
      fc.nat(2 ** 40),
      (inputs, chunkBytes, startTicks) => {
        const memory = new ChunkMemory(() => Buffer.alloc(chunkBytes))
        const writer = new FragmentWriter({ trackId: 1, memory })
        const expected: [number, number, boolean, string][] = []
        const chunks: Buffer[] = []
        let ticks = startTicks
        let durations = 0
        let open = false
        for (const { bytes, step, offset, sync, ends, continues } of inputs) {
          const joins = continues && open
          if (!joins && ends) {
            const written = writer.end({ untilTicks: ticks, startsSegment: false })
            chunks.push(...(written?.chunks ?? []))
            durations += written?.durationTicks ?? 0
          }
          const fields = { compositionOffset: offset, sync, continues: joins }
          writer.push(sample(ticks, bytes, fields))
          const hex = bytes.toString('hex')
          if (joins) expected.at(-1)![3] += hex
          else {
            expected.push([ticks, offset, sync, hex])
            ticks += step
          }
          open = true
        }
        const last = writer.end({ untilTicks: ticks, startsSegment: false })!
        const samples = readSamples(Buffer.concat([...chunks, ...last.chunks]))
        const found = samples.map(({ decodeTicks, compositionOffset, flags, bytes }) => [
          decodeTicks,
          compositionOffset,
          flags === 0x2000000,
          bytes.toString('hex'),
        ])
        return (
          JSON.stringify(found) === JSON.stringify(expected) &&
          durations + last.durationTicks === ticks - startTicks
        )
      },
    ),
    { numRuns: 300 },
  )
})

t.test('bytes of the input are copied: it may be reused after push', async (t) => {
  const writer = new FragmentWriter({ trackId: 1, memory: new ChunkMemory() })
  const bytes = Buffer.from('media')
  writer.push(sample(0, bytes))
  bytes.fill(0)
  const first = writer.end({ untilTicks: 1, startsSegment: false })!
  writer.push(sample(1, Buffer.from('later')))
  writer.end({ untilTicks: 2, startsSegment: false })
  t.equal(first.chunks.at(-1)!.toString(), 'media')
})

t.test('samples beyond the limit, and a continuation of nothing, are dropped', async (t) => {
  const writer = new FragmentWriter({ trackId: 1, memory: new ChunkMemory(), maxBytes: 4 })
  t.notOk(writer.push(sample(0, Buffer.from('ab'), { continues: true })))
  t.ok(writer.push(sample(0, Buffer.from('abc'))))
  t.notOk(writer.push(sample(1, Buffer.from('de'))))
  t.match(writer.end({ untilTicks: 1, startsSegment: false }), { samples: 1, durationTicks: 1 })
})

t.test('the continuation of a dropped sample is dropped, too', async (t) => {
  const writer = new FragmentWriter({ trackId: 1, memory: new ChunkMemory(), maxBytes: 4 })
  writer.push(sample(0, Buffer.from('abc')))
  writer.push(sample(1, Buffer.from('de')))
  t.notOk(writer.push(sample(1, Buffer.from('f'), { continues: true })))
  t.equal(writer.mediaBytes, 3)
})

t.test('a fragment that ends before its last sample gives that sample 1 tick', async (t) => {
  const writer = new FragmentWriter({ trackId: 1, memory: new ChunkMemory() })
  writer.push(sample(10, Buffer.from('a')))
  t.match(writer.end({ untilTicks: 5, startsSegment: false }), { durationTicks: 1 })
})

t.test('ID3 is an event message of version 1 (23009-1 5.10.3.3)', async (t) => {
  const writer = new FragmentWriter({ trackId: 1, memory: new ChunkMemory() })
  writer.push(sample(0, Buffer.from('a')))
  const events = [{ id: 9, ptsTicks: 2 ** 33, tag: Buffer.from('ID3...') }]
  const { chunks } = writer.end({ untilTicks: 1, startsSegment: false, events })!
  const [emsg] = payloadsOf(Buffer.concat(chunks), 'emsg')
  const scheme = Buffer.from('https://aomedia.org/emsg/ID3\0\0ID3...').toString('hex')
  t.equal(emsg, `0100000000015f900000000200000000ffffffff00000009${scheme}`)
})
