/** Continuity counters on packets without payload, as multiplexers send them. */
import t from 'tap'
import { Demuxer } from '../../src/mpegts/demux/demuxer.ts'
import { payloadOf, unitsOf } from './demux.ts'
import { patSection, pesPacket, pmtSection, TsBuilder, tsPacket } from './ts-builder.ts'

const VIDEO_PID = 0x100
const AUDIO_PID = 0x101
const MAP_PID = 0x1000
const FRAMES = 30

/** PES packets of both tracks, and a program map of several packets before each pair. */
function source(pcrPid: number): Buffer[] {
  const ts = new TsBuilder()
  const streams = [
    { pid: VIDEO_PID, streamType: 0x1b, descriptors: registration(150) },
    { pid: AUDIO_PID, streamType: 0x06, descriptors: registration(150) },
  ]
  for (let index = 0; index < FRAMES; index++) {
    ts.sections(0, patSection([[1, MAP_PID]]))
    ts.sections(MAP_PID, pmtSection(1, pcrPid, streams))
    const fields = { ptsTicks: 90_000 + index * 3000 }
    const slice = Buffer.from([0, 0, 0, 1, 0x09, 0xf0, 0, 0, 0, 1, 0x41, 0x9a])
    const frame = Buffer.concat([slice, Buffer.alloc(700, index + 1)])
    ts.unit(VIDEO_PID, pesPacket(frame, { ...fields, length: 'none' }))
    ts.unit(AUDIO_PID, pesPacket(Buffer.alloc(500, index + 1), { ...fields, streamId: 0xbd }))
  }
  return ts.packets
}

/** A registration_descriptor of private data, filled up. */
const registration = (sizeBytes: number) =>
  Buffer.concat([Buffer.from([0x05, sizeBytes]), Buffer.alloc(sizeBytes, 0x41)])

const PCR = { adaptationFlags: 0x10, adaptation: Buffer.from([0, 0, 0, 0, 0x7e, 0]) }

/** A packet without payload between two others. */
interface Empty {
  readonly hasPcr: boolean
  /** Bits of `adaptation_field_control`; default: an adaptation field alone. */
  readonly control?: number
  /** Counter relative to the packet before, or a fixed one. */
  readonly counter: 'same' | 'next' | number
  /** Whether the packet after it continues from there. */
  readonly taken?: boolean
}

/** Inserts packets behind each third packet of a PID, and numbers the PID anew. */
function insert(packets: readonly Buffer[], pid: number, empties: readonly Empty[]): Buffer[] {
  let counter = 15
  let seen = 0
  return packets.flatMap((bytes) => {
    if ((bytes.readUInt16BE(1) & 0x1fff) !== pid) return bytes
    counter = (counter + 1) & 15
    const packet = Buffer.from(bytes)
    packet[3] = (packet[3]! & 0xf0) | counter
    if (seen++ % 3 > 0) return packet
    const empty = empties[Math.floor(seen / 3) % empties.length]!
    const next = (counter + 1) & 15
    const own = empty.counter === 'same' ? counter : empty.counter === 'next' ? next : empty.counter
    if (empty.taken === true) counter = own
    const added = tsPacket({ pid, counter: own, ...(empty.hasPcr && PCR) })
    added[3] = (added[3]! & 0xcf) | (empty.control ?? 0x20)
    return [packet, added]
  })
}

const keeps: Empty = { hasPcr: true, counter: 'same' }
const increments: Empty = { hasPcr: true, counter: 'next', taken: true }
const KINDS: Record<string, readonly Empty[]> = {
  'a PCR that keeps the counter': [keeps],
  'a PCR that increments it': [increments],
  'stuffing that increments it': [{ ...increments, hasPcr: false }],
  'a PCR that keeps it and stuffing that increments it': [keeps, { ...increments, hasPcr: false }],
  'stuffing that increments it, beside many PCRs that keep it': [
    ...Array.from({ length: 20 }, () => keeps),
    { ...increments, hasPcr: false },
  ],
  'a PCR that increments it at times': [keeps, keeps, increments],
  'a PCR with the counter of the packet after it': [{ hasPcr: true, counter: 'next' }],
  'a PCR with a counter of 0': [{ hasPcr: true, counter: 0 }],
  'an announced payload of 0 bytes that increments it': [{ ...increments, control: 0x30 }],
  'an announced payload of 0 bytes that keeps it': [{ ...keeps, control: 0x30 }],
  'the reserved adaptation_field_control, which increments it': [{ ...increments, control: 0 }],
}

/** @returns payloads of the undamaged PES packets, and what the demuxer counted */
function run(packets: readonly Buffer[]) {
  const demuxer = new Demuxer()
  const outputs = demuxer.push(Buffer.concat(packets)).concat(demuxer.end())
  const intact = unitsOf(outputs).filter(({ damaged }) => !damaged)
  return { payloads: intact.map((unit) => payloadOf(unit).toString('hex')), stats: demuxer.stats }
}

const PIDS = { video: VIDEO_PID, audio: AUDIO_PID, PAT: 0, PMT: MAP_PID }

for (const [kind, empties] of Object.entries(KINDS)) {
  t.test(`nothing is lost by ${kind} in a packet without payload`, async (t) => {
    for (const [name, pid] of Object.entries(PIDS)) {
      const packets = source(pid === AUDIO_PID ? AUDIO_PID : VIDEO_PID)
      const plain = run(packets)
      const { payloads, stats } = run(insert(packets, pid, empties))
      t.equal(plain.payloads.length, 2 * FRAMES)
      t.strictSame(payloads, plain.payloads, name)
      t.match(stats, { continuityErrors: 0, damagedUnits: 0, pmtSections: FRAMES }, name)
    }
  })
}

t.test('nothing is lost by any counters on a PID of PCRs alone', async (t) => {
  const pcrPid = 0x1f0
  const packets = source(pcrPid).flatMap((packet, index) => [
    packet,
    tsPacket({ pid: pcrPid, counter: (index * 7) & 15, ...PCR }),
  ])
  const { payloads, stats } = run(packets)
  t.equal(payloads.length, 2 * FRAMES)
  t.match(stats, { continuityErrors: 0, damagedUnits: 0 })
})

t.test('a lost payload between packets without payload is found', async (t) => {
  for (const [kind, empties] of Object.entries(KINDS)) {
    const packets = insert(source(VIDEO_PID), VIDEO_PID, empties)
    const { payloads } = run(packets)
    const isVideo = (packet: Buffer | undefined) => {
      const isOnPid = packet !== undefined && (packet.readUInt16BE(1) & 0x1fff) === VIDEO_PID
      return isOnPid && (packet[3]! & 0x10) !== 0 && packet[4] !== 183
    }
    const places = packets.flatMap((_, at) =>
      packets.slice(at - 1, at + 2).filter(isVideo).length === 3 ? [at] : [],
    )
    t.ok(places.length > 10)
    for (const at of places.slice(-8)) {
      const { payloads: left, stats } = run(packets.toSpliced(at, 1))
      t.equal(stats.continuityErrors, 1, kind)
      t.ok(left.length < payloads.length, kind)
    }
  }
})

t.test(
  'a lost payload directly before a packet without payload is found where such packets keep the counter',
  async (t) => {
    const packets = insert(source(VIDEO_PID), VIDEO_PID, [keeps])
    const isEmpty = (packet: Buffer | undefined) => packet !== undefined && packet[3]! >> 4 === 2
    const places = packets.flatMap((_, at) => (isEmpty(packets[at + 1]) ? [at] : []))
    for (const at of places.slice(-8)) {
      t.match(run(packets.toSpliced(at, 1)).stats, { continuityErrors: 1 }, `packet ${at}`)
    }

    // Before the first ones of the PID, only a gap tells them from ones that increment the counter.
    const at = places[1]!
    const demuxer = new Demuxer()
    demuxer.push(Buffer.concat(packets.slice(0, at)))
    demuxer.gap(1)
    demuxer.push(Buffer.concat(packets.slice(at + 1)))
    t.equal(demuxer.stats.continuityErrors, 1)
  },
)
