import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import t from 'tap'
import { Demuxer, type PesUnit } from '../../src/mpegts/index.ts'
import { PacedStream, type PacedDatagram } from '../../src/pace/paced-stream.ts'
import { readPcr } from '../../src/pace/packet-times.ts'

const fixture = (name: string) =>
  readFileSync(new URL(`../../fixtures/${name}.mpegts`, import.meta.url))
const DEMO = fixture('demo')
/** Clip whose 33-bit timestamps wrap. */
const WRAP = fixture('h264-aac-wrap')
/** Payload bytes of a datagram. */
const DATAGRAM_BYTES = 7 * 188

/** `file` repeated `passes` times. */
function play(file: Buffer, passes = 1): PacedDatagram[] {
  const stream = new PacedStream()
  const datagrams = stream.push(file)
  for (let pass = 1; pass < passes; pass++) datagrams.push(...stream.rewind(), ...stream.push(file))
  return [...datagrams, ...stream.end()]
}

const packetsOf = (bytes: Buffer) =>
  Array.from({ length: Math.floor(bytes.length / 188) }, (_, index) =>
    bytes.subarray(index * 188, (index + 1) * 188),
  )
const pidOf = (packet: Buffer) => packet.readUInt16BE(1) & 0x1fff
const bytesOf = (datagrams: readonly PacedDatagram[]) =>
  Buffer.concat(datagrams.map(({ payload }) => payload))

/** Demuxes a stream, and checks that it has no errors. */
function demux(t: { equal(a: unknown, b: unknown, message: string): unknown }, bytes: Buffer) {
  const demuxer = new Demuxer()
  const units = [...demuxer.push(bytes), ...demuxer.end()].flatMap((output) =>
    output.type === 'unit' ? [output.unit] : [],
  )
  t.equal(demuxer.stats.continuityErrors, 0, 'no continuity error')
  t.equal(demuxer.stats.duplicatePackets, 0, 'no packet twice')
  return units
}

function steps(units: readonly PesUnit[], kind: 'video' | 'audio'): number[] {
  const times = units.filter(({ track }) => track.kind === kind).map(({ dtsTicks }) => dtsTicks)
  return times.slice(1).map((ticks, index) => ticks - times[index]!)
}

t.test('one pass returns the file unchanged, seven packets per datagram', async (t) => {
  const datagrams = play(DEMO)
  t.ok(bytesOf(datagrams).equals(DEMO))
  t.ok(datagrams.slice(0, -1).every(({ payload }) => payload.length === DATAGRAM_BYTES))
  t.equal(datagrams.at(-1)!.payload.length % 188, 0)
})

t.test('datagrams are due evenly and in order, and a pass lasts as long as its PCR', async (t) => {
  const due = play(DEMO, 2).map(({ dueUs }) => dueUs)
  t.ok(due.every((us, index) => index === 0 || us >= due[index - 1]!))
  t.ok(due[0]! < 10e3)
  t.ok(Math.abs(due.at(-1)! - 16e6) < 100e3, `two passes of 8 s end at ${due.at(-1)! / 1e6} s`)
  const perSecond = Array.from({ length: 16 }, () => 0)
  for (const us of due) perSecond[Math.min(Math.floor(us / 1e6), 15)]!++
  t.ok(Math.max(...perSecond) < 1.3 * (due.length / 16), perSecond.join())
})

t.test('timestamps and counters continue across passes of a loop', async (t) => {
  for (const [name, file] of Object.entries({ demo: DEMO, wrap: WRAP })) {
    const once = demux(t, bytesOf(play(file)))
    const units = demux(t, bytesOf(play(file, 3)))
    t.equal(units.length, 3 * once.length, name)
    t.same(new Set(steps(units, 'video')), new Set([3000]), 'the frame interval is constant')
    const audio = steps(units, 'audio')
    t.ok(Math.max(...audio) < 31_000, 'no audio gap exceeds the duration of a PES packet')
    // The audio of the other clip is 2.7 ms longer than its video and the PES grid.
    t.ok(Math.min(...audio) > (file === DEMO ? 0 : -300), 'and goes on')
  }
})

t.test(
  'a pass lasts as long as the audio without video, or where audio outlasts it by far',
  async (t) => {
    const onlyAudio = fixture('mp3')
    const audio = steps(demux(t, bytesOf(play(onlyAudio, 3))), 'audio')
    t.ok(Math.min(...audio) > 0 && Math.max(...audio) < 31_000, audio.join())

    // The video ends after 2 s of 8.
    const packets = packetsOf(DEMO)
    const file = Buffer.concat(
      packets.filter((packet, index) => index < packets.length / 4 || pidOf(packet) !== 0x100),
    )
    const long = steps(demux(t, bytesOf(play(file, 2))), 'audio')
    t.ok(Math.min(...long) > 0 && Math.max(...long) < 31_000, long.join())
  },
)

t.test('the PCR continues across passes of a loop', async (t) => {
  const bytes = bytesOf(play(DEMO, 3))
  const clock = []
  for (let at = 0; at < bytes.length; at += 188) clock.push(readPcr(bytes, at) ?? [])
  const times = clock.flat()
  const gaps = times.slice(1).map((ticks, index) => ticks - times[index]!)
  t.ok(
    Math.min(...gaps) > 0 && Math.max(...gaps) <= 9000,
    'never back, and no more than 100 ms ahead',
  )
})

t.test('the result does not depend on the sizes of the chunks', async () => {
  const part = DEMO.subarray(0, 100 * 188)
  const whole = play(part)
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 4000 }), { maxLength: 20 }), (sizes) => {
      const stream = new PacedStream()
      const datagrams: PacedDatagram[] = []
      let at = 0
      for (const size of sizes) {
        datagrams.push(...stream.push(part.subarray(at, at + size)))
        at += size
      }
      datagrams.push(...stream.push(part.subarray(at)), ...stream.end())
      return JSON.stringify(datagrams) === JSON.stringify(whole)
    }),
    { numRuns: 30 },
  )
})

t.test('the DTS paces a stream without PCR', async (t) => {
  const file = Buffer.from(DEMO)
  for (let at = 0; at < file.length; at += 188) {
    if (readPcr(file, at) !== undefined) file[at + 5]! &= ~0x10
  }
  const due = play(file, 2).map(({ dueUs }) => dueUs)
  t.ok(due.every((us, index) => index === 0 || us >= due[index - 1]!))
  t.ok(Math.abs(due.at(-1)! - 16e6) < 200e3, `two passes of 8 s end at ${due.at(-1)! / 1e6} s`)
})

t.test('a jump of the clock keeps the rate from before', async (t) => {
  const seconds = (datagrams: PacedDatagram[]) => datagrams.at(-1)!.dueUs / 1e6
  const both = seconds(play(Buffer.concat([DEMO, WRAP])))
  const apart = seconds(play(DEMO)) + seconds(play(WRAP))
  t.ok(Math.abs(both - apart) < 0.2, `${both} s together, ${apart} s apart`)
})

t.test('bytes without transport packets make no datagrams', async (t) => {
  t.same(play(Buffer.alloc(0)), [])
  t.same(play(Buffer.from('a text, not a transport stream'.repeat(1000))), [])
})

t.test('a stream without PCR and DTS throws after 10 MiB', async (t) => {
  const nulls = Buffer.alloc(188 * 7 * 100, 0xff)
  for (let at = 0; at < nulls.length; at += 188) nulls.set([0x47, 0x1f, 0xff, 0x10], at)
  const stream = new PacedStream()
  t.throws(
    () => {
      for (let round = 0; round < 100; round++) stream.push(nulls)
    },
    { name: 'MillraceError', code: 'MEDIA_INVALID', message: /no PCR and no DTS/ },
  )
})
