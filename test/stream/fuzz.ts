/**
 * Fuzzing of a stream: encoders connect and leave, the network loses, repeats, swaps and alters packets,
 * tables are random and timestamps jump. Reproducible from a seed.
 *
 *   fixtures ─► harm ─► LiveStream ─► every segment and every version of every playlist is read back
 *
 * @module
 */
import { readFileSync } from 'node:fs'
import { TIME_MODULUS } from '../../src/mpegts/timestamps.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import type { Segment } from '../../src/hls/store/segment.ts'
import { PACKET_BYTES } from '../../src/mpegts/packet.ts'
import { movePcr, movePesTimes } from '../../src/pace/packet-times.ts'
import { PacedStream } from '../../src/pace/paced-stream.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import type { Publication } from '../../src/stream/publication.ts'
import { COSTLY_STREAMS, payloadsOf } from '../hostile/attacks/costly-streams.ts'
import { patSection, pmtSection, TsBuilder } from '../mpegts/ts-builder.ts'
import { parseM3u8 } from '../support/m3u8.ts'
import { createRandom, type Random } from '../support/random.ts'
import { StreamJudge } from '../support/stream-judge.ts'
import { readPackets, readPat, readPmt } from '../support/ts-reader.ts'
import { PUBLISHER_REPORT } from './publisher-report.ts'

export interface FuzzOutcome {
  /** Violated invariants. */
  readonly violations: readonly string[]
  readonly payloads: number
  /** The first of all renditions that are no gaps. */
  readonly segments: readonly Segment[]
}

/** Seen from where `npm run` starts a script. */
const CLIPS = [
  ...['demo', 'eac3', 'gstreamer', 'h264-aac', 'h264-aac-nulls', 'h264-aac-wrap', 'h264-ac3-192'],
  ...['h264-bounded-pes', 'h264-intra-refresh', 'h264-mp2-nit', 'h264-open-gop', 'h264-two-audio'],
  ...['h265-aac', 'mp3', 'two-programs'],
].map((name) => readFileSync(`fixtures/${name}.mpegts`))

const COSTLY = Object.values(COSTLY_STREAMS).map((make) => make())

const PAYLOAD_BYTES = 7 * PACKET_BYTES
const PAYLOAD_US = 10_000
const ENOUGH_VIOLATIONS = 10
const ENOUGH_SEGMENTS = 200
const PIDS = [0x100, 0x101, 0x102, 0x103, 0x104]
const STREAM_TYPES = [0x02, 0x03, 0x06, 0x0f, 0x11, 0x15, 0x1b, 0x1b, 0x24, 0x81, 0x86, 0x87]

export function fuzz(seed: number, steps: number): FuzzOutcome {
  const random = createRandom(seed)
  const pick = <Value>(values: readonly Value[]): Value => values[random.below(values.length)]!
  let nowUs = 0
  let wallStepMs = 0
  const cache = new SegmentCache({ maxBytes: pick([200_000, 2_000_000, 20_000_000]) })
  const stream = new LiveStream('fuzz', {
    clock: { nowUs: () => nowUs, wallMs: () => 1e12 + wallStepMs + nowUs / 1000 },
    cache,
    epoch: 'e',
    segmentSec: pick([0.5, 1, 2]),
    maxSegmentSec: pick([2, 4, 10]),
    playlistSegments: 3 + random.below(4),
    program: pick(['first', 'all', 1, 2] as const),
    tracks: pick(['compatible', 'all'] as const),
    ...{ lingerSec: 60, reconnectGraceSec: 1e6 },
  })
  const judge = new Judge(stream)
  let payloads = 0

  /** Factor of the defects of network and encoder during this connection; 0: none. */
  let severity = 0
  let publication: Publication | undefined
  let source: Iterator<Buffer> | undefined
  const connect = () => {
    severity = pick([0, 0.2, 1, 5])
    source = random.chance(0.7) ? loop(pick(CLIPS), random) : repeat(pick(CLIPS))
    if (random.chance(0.2)) source = payloadsOf(pick(COSTLY))
    publication = stream.publish({
      lastPacketUs: 0,
      report: () => PUBLISHER_REPORT,
      close: () => publication?.end('replaced'),
    })
  }
  const send = (payload: Buffer) => {
    payloads++
    publication?.push(payload)
  }
  /** Loses (with or without a report), truncates or repeats a payload. */
  const hurt = (payload: Buffer) => {
    const way = random.below(4)
    if (way === 0) publication?.gap(1 + random.below(3))
    else if (way === 1) send(payload.subarray(0, random.below(payload.length)))
    else if (way === 2) for (let times = 0; times < 2; times++) send(Buffer.from(payload))
  }
  const harms = (probability: number) => random.chance(probability * severity)

  connect()
  try {
    for (let step = 0; step < steps && judge.violations.length < ENOUGH_VIOLATIONS; step++) {
      nowUs += PAYLOAD_US
      if (random.chance(0.0005)) {
        publication?.end(pick(['shutdown', 'timeout'] as const))
        nowUs += random.below(5_000_000)
        connect()
      }
      if (random.chance(0.0005)) source = loop(pick(CLIPS), random)
      if (harms(0.0002)) wallStepMs += (random.next() - 0.5) * 7_200_000
      if (harms(0.0005)) nowUs += random.below(20_000_000)
      const payload = source!.next().value as Buffer
      if (harms(0.002)) moveTimes(payload, random)
      if (harms(0.001)) send(tables(random))
      if (harms(0.002)) send(random.bytes(1 + random.below(400)))
      if (harms(0.005)) alterHeader(payload, random)
      if (harms(0.005)) payload[random.below(payload.length)] = random.below(256)
      if (harms(0.015)) hurt(payload)
      else send(payload)
      stream.tick()
      judge.readPlaylists()
    }
    stream.stop('api')
    judge.readPlaylists()
  } catch (error) {
    judge.violations.push(error instanceof Error ? String(error.stack) : String(error))
  }
  const { bytes, maxBytes } = cache.stats
  if (bytes > maxBytes) judge.violations.push(`${bytes} bytes in a cache of ${maxBytes}`)
  return { violations: judge.violations, payloads, segments: judge.segments }
}

/** Reads the output of a stream, as a player of every rendition would. */
class Judge {
  readonly violations: string[] = []
  readonly segments: Segment[] = []
  readonly #stream: LiveStream
  /** Codec and channels of tracks without parameters are unknown. */
  readonly #rules = new StreamJudge({ except: ['CODECS_MISSING', 'CHANNELS_MISSING'] })
  readonly #playlists = new Set(['playlist.m3u8'])
  /** Versions of files by URI. */
  readonly #versions = new Map<string, string>()
  /** Latest continuity counter by rendition and PID. */
  readonly #counters = new Map<string, number>()
  #changed = false

  constructor(stream: LiveStream) {
    this.#stream = stream
    stream.on('segment', (segment) => this.#guard(segment.uri, () => this.#readSegment(segment)))
  }

  /** Every playlist, where one has changed. */
  readPlaylists(): void {
    if (!this.#changed && this.#stream.status !== 'STOPPED') return
    this.#changed = false
    const master = this.#readChanged('master.m3u8')
    if (master !== undefined) {
      const broken = this.#rules.multivariant(master)
      this.#complain('master.m3u8', [...broken, ...parseM3u8(master).complaints])
      for (const [, uri] of master.matchAll(/([a-z0-9-]+\.m3u8)/g)) this.#playlists.add(uri!)
    }
    for (const uri of this.#playlists) this.#readPlaylist(uri)
  }

  /** @returns text of a file; undefined if it is the same as the last time */
  #readChanged(uri: string): string | undefined {
    const file = this.#stream.files.get(uri)
    if (file === undefined || file.version === this.#versions.get(uri)) return undefined
    this.#versions.set(uri, file.version)
    return file.chunks.join('')
  }

  #readPlaylist(uri: string): void {
    const text = this.#readChanged(uri)
    if (text === undefined) return
    this.#complain(uri, [...this.#rules.playlist(uri, text), ...parseM3u8(text).complaints])
    for (const entry of text.split(/(?<=\.ts)\n/)) {
      const name = /^\S+\.ts$/m.exec(entry)?.[0]
      const gone = name !== undefined && this.#stream.files.get(name) === undefined
      if (gone && !entry.includes('#EXT-X-GAP')) this.#complain(uri, [`${name} is gone`])
    }
  }

  #readSegment(segment: Segment): void {
    this.#changed = true
    const { rendition, bytes } = segment
    // A gap.
    if (bytes.length === 0 && rendition !== 'main') return
    if (this.segments.length < ENOUGH_SEGMENTS) this.segments.push(segment)
    const packets = readPackets(bytes)
    const [association] = readPat(packets[0]!)
    if (packets[0]!.pid !== 0) throw new Error('it does not begin with a PAT')
    if (packets[1]!.pid !== association!.pmtPid) throw new Error('no PMT follows the PAT')
    const { pcrPid, streams } = readPmt(packets[1]!)
    const announced = new Set([0, association!.pmtPid, pcrPid, ...streams.map(({ pid }) => pid)])
    const begun = new Set<number>()
    for (const { pid, unitStart, hasPayload, counter } of packets) {
      if (!announced.has(pid)) throw new Error(`PID ${pid} is not announced`)
      if (unitStart) begun.add(pid)
      if (hasPayload && !begun.has(pid)) throw new Error(`a PES packet of PID ${pid} is torn`)
      const key = `${rendition} ${pid}`
      const before = this.#counters.get(key)
      const expected = before === undefined ? counter : (before + (hasPayload ? 1 : 0)) & 0x0f
      if (counter !== expected) throw new Error(`PID ${pid} counts ${counter}, not ${expected}`)
      this.#counters.set(key, counter)
    }
  }

  #guard(uri: string, read: () => void): void {
    try {
      read()
    } catch (error) {
      this.#complain(uri, [(error as Error).message])
    }
  }

  #complain(uri: string, complaints: readonly string[]): void {
    this.violations.push(...complaints.map((complaint) => `${uri}: ${complaint}`))
  }
}

/** The clip in an endless loop without a discontinuity, from any timestamp on. */
function* loop(clip: Buffer, random: Random): Generator<Buffer, never> {
  const shift = Math.floor(random.next() * TIME_MODULUS)
  const stream = new PacedStream()
  for (;;) {
    for (const { payload } of [...stream.push(clip), ...stream.rewind()]) {
      for (let at = 0; at < payload.length; at += PACKET_BYTES) {
        movePcr(payload, at, shift)
        movePesTimes(payload, at, shift)
      }
      yield payload
    }
  }
}

/** Endless repetition of the clip, whose timestamps and counters jump back at each end. */
function* repeat(clip: Buffer): Generator<Buffer, never> {
  for (;;) {
    for (let at = 0; at < clip.length; at += PAYLOAD_BYTES) {
      yield Buffer.from(clip.subarray(at, at + PAYLOAD_BYTES))
    }
  }
}

function moveTimes(payload: Buffer, random: Random): void {
  const most = [3000, 90_000, 900_000, TIME_MODULUS][random.below(4)]!
  const ticks = Math.floor(random.next() * most)
  for (let at = 0; at + PACKET_BYTES <= payload.length; at += PACKET_BYTES) {
    movePcr(payload, at, ticks)
    movePesTimes(payload, at, ticks)
  }
}

/** Alters a byte near the headers of TS and PES, where it has the most effect. */
function alterHeader(payload: Buffer, random: Random): void {
  const at = random.below(Math.ceil(payload.length / PACKET_BYTES)) * PACKET_BYTES
  const offset = Math.min(at + random.below(24), payload.length - 1)
  payload[offset] = random.chance(0.5)
    ? random.below(256)
    : payload[offset]! ^ (1 << random.below(8))
}

/** PAT and PMT with a valid checksum that announce anything. */
function tables(random: Random): Buffer {
  const programs = Array.from({ length: 1 + random.below(3) }, (_, index) => index + 1)
  const ts = new TsBuilder().sections(
    0,
    patSection(programs.map((number) => [number, 0x1000 + number - 1])),
  )
  for (const number of programs) {
    const streams = Array.from({ length: random.below(6) }, () => ({
      pid: PIDS[random.below(PIDS.length)]!,
      streamType: STREAM_TYPES[random.below(STREAM_TYPES.length)]!,
      descriptors: random.bytes(random.chance(0.5) ? 0 : random.below(40)),
    }))
    const section = pmtSection(number, PIDS[random.below(PIDS.length)]!, streams, {
      version: random.below(32),
    })
    ts.sections(0x1000 + number - 1, section)
  }
  return ts.bytes
}
