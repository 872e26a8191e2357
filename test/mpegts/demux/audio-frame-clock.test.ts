/** Audio in PES packets that are cut anywhere and have a PTS now and then, against the times of its frames. */
import * as fc from 'fast-check'
import t from 'tap'
import { MAX_FRAME_BYTES } from '../../../src/codec/adts.ts'
import { AUDIO_DECODERS } from '../../../src/codec/audio-decoders.ts'
import { Demuxer } from '../../../src/mpegts/demux/demuxer.ts'
import type { PesUnit } from '../../../src/mpegts/pes-unit.ts'
import { decodePesHeader, pesBytes } from '../../../src/mpegts/pes.ts'
import { StreamType } from '../../../src/mpegts/psi/stream-type.ts'
import { demux, payloadOf, readFixture, unitsOf } from '../demux.ts'
import { pesPacket, TsBuilder } from '../ts-builder.ts'

const PID = 0x101

/** Size of the first PES packet, in which the first frames are found. */
const FIRST_BYTES = 5000

interface Source {
  readonly streamType: number
  readonly bytes: Buffer
  /** Time of each frame by its offset. */
  readonly frames: ReadonlyMap<number, number>
}

/** Audio of a fixture, by frames from 10 s on. */
function audioOf(name: string): Source {
  const units = unitsOf(demux(readFixture(name))).filter(({ track }) => track.kind === 'audio')
  const { pid, streamType, codec } = units[0]!.track
  const bytes = Buffer.concat(units.filter(({ track }) => track.pid === pid).map(payloadOf))
  const frames = new Map<number, number>()
  let ticks = 900_000
  for (let at = 0; ;) {
    const header = AUDIO_DECODERS[codec]!(bytes, at)
    if (header === undefined) return { streamType, bytes, frames }
    frames.set(at, Math.round(ticks))
    ticks += (header.samples * 90_000) / header.parameters.sampleRate
    at += header.sizeBytes
  }
}

interface SentPes {
  readonly packets: Buffer
  readonly stampTicks: number | undefined
  /** Time of the first frame that begins in it. */
  readonly beginTicks: number | undefined
  /** Whether a frame can have been found so far: by two headers since the PTS from which frames are counted. */
  readonly isCounted: boolean
}

/** Largest header of a frame that is read. */
const HEADER_BYTES = 16

/**
 * @param sizes  elementary stream bytes of each PES packet, used in turn
 * @param stamps  whether each PES packet in which a frame begins has a PTS, used in turn; the first always has
 */
function cut({ bytes, frames }: Source, sizes: readonly number[], stamps: readonly boolean[]) {
  const ts = new TsBuilder()
  const sent: SentPes[] = []
  const starts = [...frames.keys()]
  let [isCounting, isCounted, countedFrom] = [false, false, 0]
  for (let at = 0; at < bytes.length;) {
    const sizeBytes = sent.length === 0 ? FIRST_BYTES : sizes[sent.length % sizes.length]!
    const end = Math.min(bytes.length, at + sizeBytes)
    const begin = starts.find((start) => start >= at && start < end)
    const beginTicks = begin === undefined ? undefined : frames.get(begin)
    const isStamped = sent.length === 0 || stamps[sent.length % stamps.length] === true
    const stampTicks = isStamped ? beginTicks : undefined
    isCounting ||= stampTicks === undefined
    if (stampTicks !== undefined && !isCounted) countedFrom = at
    const isWhole = (start: number) => start >= countedFrom && start + HEADER_BYTES <= end
    isCounted ||= isCounting && starts.filter(isWhole).length >= 2
    const from = ts.packets.length
    ts.unit(PID, pesPacket(bytes.subarray(at, end), { ptsTicks: stampTicks, streamId: 0xc0 }))
    sent.push({ packets: Buffer.concat(ts.packets.slice(from)), stampTicks, beginTicks, isCounted })
    at = end
  }
  return sent
}

/** @throws unless each PES packet in which a frame begins has its time, and those with a PTS are as sent */
function check(source: Source, sent: readonly SentPes[]): void {
  const demuxer = new Demuxer()
  const tables = new TsBuilder().program([{ pid: PID, streamType: source.streamType }]).bytes
  const bytes = Buffer.concat([tables, ...sent.map(({ packets }) => packets)])
  const units = unitsOf(demux(bytes, undefined, demuxer))
  if (source.streamType === StreamType.AAC_ADTS) {
    checkFrames(source, sent, units)
    return
  }
  if (units.length !== sent.length) throw new Error(`${units.length} PES packets`)
  for (const [index, { chunks, payload, ptsTicks }] of units.entries()) {
    const { packets, stampTicks, beginTicks, isCounted } = sent[index]!
    const header = decodePesHeader(pesBytes(chunks))!
    if (stampTicks !== undefined || beginTicks === undefined) {
      if (!Buffer.concat(chunks).equals(packets)) throw new Error(`PES packet ${index} differs`)
    } else if (isCounted && header.ptsTicks !== ptsTicks)
      throw new Error(`PES packet ${index} has no PTS`)
    if (!payloadOf(units[index]!).equals(payload)) throw new Error(`payload ${index} differs`)
    if (beginTicks === undefined || (stampTicks === undefined && !isCounted)) continue
    const driftTicks = Math.abs(ptsTicks - beginTicks)
    if (driftTicks > 1) throw new Error(`PES packet ${index} is off by ${driftTicks} ticks`)
  }
  const unstamped = sent.filter(({ stampTicks }) => stampTicks === undefined)
  const untimed = unstamped.filter(({ beginTicks }) => beginTicks === undefined)
  const uncounted = unstamped.filter((it) => it.beginTicks === undefined || !it.isCounted)
  const { pesWithoutPts } = demuxer.stats
  if (pesWithoutPts < untimed.length || pesWithoutPts > uncounted.length)
    throw new Error(`${pesWithoutPts} without times`)
}

/** @throws unless each PES packet has whole frames, at their time once there can be one */
function checkFrames(
  { bytes, frames }: Source,
  sent: readonly SentPes[],
  units: readonly PesUnit[],
): void {
  const counted = sent.filter(({ isCounted }) => isCounted).length
  let at = 0
  for (const [index, unit] of units.entries()) {
    const beginTicks = frames.get(at)
    if (beginTicks === undefined) throw new Error(`PES packet ${index} begins within a frame`)
    if (!payloadOf(unit).equals(unit.payload)) throw new Error(`payload ${index} differs`)
    if (!bytes.subarray(at).subarray(0, unit.payload.length).equals(unit.payload))
      throw new Error(`the frames of PES packet ${index} differ`)
    at += unit.payload.length
    // One more may wait for the next.
    const isCounted = index > sent.length - counted
    const driftTicks = Math.abs(unit.ptsTicks - beginTicks)
    if (isCounted && driftTicks > 1)
      throw new Error(`PES packet ${index} is off by ${driftTicks} ticks`)
  }
  if (bytes.length - at > 2 * MAX_FRAME_BYTES)
    throw new Error(`${bytes.length - at} bytes are gone`)
}

for (const name of ['demo', 'mp3', 'ac3-dvb', 'eac3', 'h264-mp2-nit']) {
  t.test(`${name}: PES packets without a PTS go on by the frames that were counted`, async () => {
    const source = audioOf(name)
    const sizes = fc.array(fc.integer({ min: 100, max: 5000 }), { minLength: 1, maxLength: 8 })
    const stamps = fc.array(fc.boolean(), { minLength: 1, maxLength: 12 })
    fc.assert(
      fc.property(sizes, stamps, (sizes, stamps) => {
        check(source, cut(source, sizes, stamps))
      }),
      { numRuns: 40 },
    )
  })
}
