/**
 * A publisher whose tables, headers and timestamps cost more than its bytes: its media is dropped, it is disconnected,
 * and other streams are not affected. Work is counted, not timed; `npm run bench -- media-cost` has the times.
 */
import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import t from 'tap'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import type { LiveStreamOptions } from '../../src/stream/live-stream-options.ts'
import type { Publication } from '../../src/stream/publication.ts'
import { WorkBudget } from '../../src/stream/work-budget.ts'
import { patSection, pesPacket, pmtSection, TsBuilder } from '../mpegts/ts-builder.ts'
import { spliceInsert } from '../mpegts/splice-builder.ts'
import { PUBLISHER_REPORT } from '../stream/publisher-report.ts'
import { adtsFrames, h264AccessUnit } from '../support/access-units.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { COSTLY_MEDIA } from './attacks/costly-media.ts'
import { COSTLY_STREAMS, payloadsOf } from './attacks/costly-streams.ts'
import { publishCostly } from './attacks/tables.ts'
import { rounds } from '../support/soak.ts'

const PAYLOAD_BYTES = 1316
const SECONDS = 2
const SECOND_US = 1_000_000
/** Work for which a balance may be exceeded: that of one payload, which may be 7 segments of 24 renditions and their init segments. */
const MAX_OVERDRAFT_US = 22_000

/** Nominal work for a packet above which no clean stream comes. */
const CLEAN_US = 2

/** Media of which most is dropped before it is read; all other costly media is paid for. */
const BOUNDED_MEDIA = new Set([
  'none: ADTS frames of 1366 bytes',
  'ADTS frames of 8 bytes, two formats in turn',
  'ADTS sync bytes alone',
  'ADTS headers alone',
  'ADTS frames of 8 bytes in PES packets of 4 MB',
  'AC-3 sync words alone',
  'LATM elements of 64 frames of 1 byte',
  'LATM elements of one frame of 1 byte',
  'NAL units of 1 byte in access units of 4 MB',
  'parameter sets before a slice in access units of 4 MB',
])

/** Work budget that records its lowest balance. */
class WatchedBudget extends WorkBudget {
  lowestUs = Infinity

  override spend(workUs: number): void {
    super.spend(workUs)
    this.lowestUs = Math.min(this.lowestUs, this.balanceUs)
  }
}

class TestStream {
  readonly budget = new WatchedBudget(0)
  readonly stream: LiveStream
  readonly leaveReasons: string[] = []
  segments = 0
  #nowUs = 0
  #nextTickUs = 0
  #publication: Publication | undefined

  constructor(options: Partial<LiveStreamOptions> = {}) {
    this.stream = new LiveStream('costly', {
      clock: { nowUs: () => this.#nowUs, wallMs: () => 1e12 + this.#nowUs / 1000 },
      cache: new SegmentCache({ maxBytes: 64e6 }),
      ...{ epoch: 'e', segmentSec: 2, maxSegmentSec: 10, playlistSegments: 6 },
      ...{ lingerSec: 60, reconnectGraceSec: 120 },
      ...{ formats: ['ts', 'cmaf'], partSec: 0.2 },
      budget: this.budget,
      ...options,
    })
    this.stream.on('segment', () => this.segments++)
    this.stream.on('interrupted', ({ reason }) => this.leaveReasons.push(reason))
    this.connect()
  }

  get connected(): boolean {
    return this.stream.encoder !== undefined
  }

  connect(): void {
    this.#publication = this.stream.publish({
      lastPacketUs: 0,
      report: () => PUBLISHER_REPORT,
      close: () => undefined,
    })
  }

  push(payload: Buffer, elapsedUs: number): void {
    this.#nowUs += elapsedUs
    this.#publication?.push(payload)
    if (this.#nowUs < this.#nextTickUs) return
    this.#nextTickUs = this.#nowUs + 250_000
    this.stream.tick()
  }
}

function payloadUs(megabitsPerSecond: number): number {
  return (PAYLOAD_BYTES * 8) / megabitsPerSecond
}

t.test('any costly stream stays within the work budget of its bytes and time', async (t) => {
  for (const [name, make] of Object.entries(COSTLY_STREAMS)) {
    const costly = make()
    const subject = new TestStream({ program: costly.program })
    const payloads = payloadsOf(costly)
    const stepUs = payloadUs(10)
    let packets = 0
    for (let sec = 0; sec < SECONDS * SECOND_US; sec += stepUs, packets += 7)
      subject.push(payloads.next().value, stepUs)
    const usPerPacket = subject.budget.spentUs / packets
    if (name in COSTLY_MEDIA)
      t.equal(
        usPerPacket > CLEAN_US,
        !BOUNDED_MEDIA.has(name),
        `${name}: ${usPerPacket} us a packet`,
      )
    t.ok(subject.budget.lowestUs > -MAX_OVERDRAFT_US, `${name}: ${subject.budget.lowestUs}`)
    t.ok(subject.segments <= 1000 + SECONDS * 280, `${name}: ${subject.segments} segments`)
    subject.stream.discard()
  }
})

t.test('any mix of media stays within the work budget', async () => {
  const names = Object.keys(COSTLY_STREAMS)
  const step = fc.record({
    name: fc.constantFrom(...names),
    payloads: fc.integer({ min: 1, max: 400 }),
    stepUs: fc.integer({ min: 0, max: 20_000 }),
    garbage: fc.option(fc.uint8Array({ minLength: 1, maxLength: 1316 })),
  })
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 8 }), (steps) => {
      const subject = new TestStream({ program: 'all', tracks: 'all' })
      let earnedUs = 100_000
      for (const { name, payloads, stepUs, garbage } of steps) {
        const source = payloadsOf(COSTLY_STREAMS[name]!())
        for (let sent = 0; sent < payloads; sent++) {
          const payload =
            garbage !== null && sent % 50 === 49 ? Buffer.from(garbage) : source.next().value
          subject.push(payload, stepUs)
          earnedUs += (payload.length * 2.7) / 188 + (stepUs * 10_000) / SECOND_US
        }
      }
      subject.stream.discard()
      return subject.budget.spentUs <= earnedUs + MAX_OVERDRAFT_US
    }),
    { numRuns: rounds(4, 100), seed: 8 },
  )
})

t.test(
  'warns of a publisher that costs too much, then disconnects it with the reason',
  async (t) => {
    const subject = new TestStream()
    const warnings: string[] = []
    subject.stream.on('warning', ({ code }) => warnings.push(code))
    const payloads = payloadsOf(
      COSTLY_STREAMS['a unit a packet, sequence parameter sets in turn']!(),
    )
    const stepUs = payloadUs(10)
    let us = 0
    for (; subject.connected && us < 60 * SECOND_US; us += stepUs)
      subject.push(payloads.next().value, stepUs)
    t.ok(us > 10 * SECOND_US && us < 15 * SECOND_US, `after ${us / SECOND_US} s`)
    t.strictSame(subject.leaveReasons, ['too-costly'])
    t.ok(warnings.includes('INGEST_TOO_COSTLY'))
    const report = subject.stream.report()
    t.equal(report.status, 'INTERRUPTED')
    const { tooCostly = 0 } = report.totals.dropped
    t.ok(tooCostly > 5000, `${tooCostly} payloads dropped`)
    t.match(
      report.warnings.find(({ code }) => code === 'INGEST_TOO_COSTLY')?.message,
      /^\d+ packets dropped/,
    )

    const spentUs = subject.budget.spentUs
    subject.connect()
    for (let index = 0; index < 500; index++) subject.push(payloads.next().value, stepUs)
    t.ok(
      subject.budget.spentUs - spentUs < 30_000,
      'who comes back finds the budget as it was left',
    )
  },
)

t.test('a stream continues after its costly media ends', async (t) => {
  const subject = new TestStream()
  const bad = payloadsOf(COSTLY_STREAMS['NAL units of 3 bytes']!())
  for (let index = 0; index < 2000; index++) subject.push(bad.next().value, payloadUs(10))
  const { dropped } = subject.budget
  t.ok(dropped > 0)
  const clip = readFileSync(new URL('../../fixtures/demo.mpegts', import.meta.url))
  for (let at = 0; at < clip.length; at += PAYLOAD_BYTES) {
    subject.push(clip.subarray(at, at + PAYLOAD_BYTES), payloadUs(1))
  }
  t.ok(subject.segments > 0, `${subject.segments} segments`)
  t.ok(subject.connected)
  t.ok(subject.budget.dropped < dropped + 300, `${subject.budget.dropped - dropped} more dropped`)
})

/** Lowest balance of the budget, of 100,000. */
function leftOver(
  packets: readonly Buffer[],
  seconds: number,
  options: Partial<LiveStreamOptions> = {},
): number {
  const subject = new TestStream(options)
  const bytes = Buffer.concat(packets)
  const stepUs = (seconds * SECOND_US * PAYLOAD_BYTES) / bytes.length
  for (let at = 0; at < bytes.length; at += PAYLOAD_BYTES) {
    subject.push(bytes.subarray(at, at + PAYLOAD_BYTES), stepUs)
  }
  subject.stream.discard()
  return subject.budget.lowestUs
}

interface Multiplex {
  readonly videos: number
  readonly audios: number
  readonly videoBytes: number
  /** Frames of AAC in a PES packet. */
  readonly framesPerPes: number
  readonly splicesPerSec?: number
  readonly seconds: number
}

/** 30 frames a second in GOPs of a second, audio of 48 kHz, PAT and PMT ten times a second. */
function multiplex({
  videos,
  audios,
  videoBytes,
  framesPerPes,
  splicesPerSec = 0,
  seconds,
}: Multiplex): Buffer[] {
  const ts = new TsBuilder()
  const streams = [
    ...Array.from({ length: videos }, (_, index) => ({ pid: 0x100 + index, streamType: 0x1b })),
    ...Array.from({ length: audios }, (_, index) => ({ pid: 0x200 + index, streamType: 0x0f })),
    { pid: 0x300, streamType: 0x86 },
  ]
  const audio = adtsFrames(framesPerPes, 120)
  const soundTicks = 1920 * framesPerPes
  let nextAudio = 0
  let splices = 0
  for (let frame = 0; frame < seconds * 30; frame++) {
    const ticks = frame * 3000
    if (frame % 3 === 0) {
      ts.sections(0, patSection([[1, 0x1000]])).sections(
        0x1000,
        pmtSection(1, streams[0]!.pid, streams),
      )
    }
    for (; splices < (frame * splicesPerSec) / 30; splices++) {
      ts.sections(
        0x300,
        spliceInsert({ eventId: splices, ptsTicks: ticks + 180_000, out: splices % 2 === 0 }),
      )
    }
    for (let index = 0; index < videos; index++) {
      const unit = h264AccessUnit({ key: frame % 30 === 0, sizeBytes: videoBytes })
      ts.unit(0x100 + index, pesPacket(unit, { ptsTicks: ticks, length: 'none' }))
    }
    for (; nextAudio <= ticks; nextAudio += soundTicks) {
      for (let index = 0; index < audios; index++) {
        ts.unit(0x200 + index, pesPacket(audio, { ptsTicks: nextAudio, streamId: 0xc0 }))
      }
    }
  }
  return ts.packets
}

t.test('usual streams stay far below the work budget', async (t) => {
  const tracks = { splicesPerSec: 1, seconds: 4 }
  const cases = {
    '60 Mbit/s of video with 10 audio tracks': multiplex({
      ...tracks,
      videos: 1,
      audios: 10,
      videoBytes: 230_000,
      framesPerPes: 1,
    }),
    'radio, each frame a PES packet': multiplex({
      ...tracks,
      videos: 0,
      audios: 1,
      videoBytes: 0,
      framesPerPes: 1,
    }),
    '8 variants and 16 audio tracks, each frame a PES packet': multiplex({
      ...tracks,
      videos: 8,
      audios: 16,
      videoBytes: 4000,
      framesPerPes: 1,
    }),
    '8 variants and 16 audio tracks at 64 kbit/s each': multiplex({
      ...tracks,
      videos: 8,
      audios: 16,
      videoBytes: 100,
      framesPerPes: 1,
    }),
    '20 splices a second': multiplex({
      ...tracks,
      videos: 1,
      audios: 1,
      videoBytes: 2000,
      framesPerPes: 4,
      splicesPerSec: 20,
    }),
  }
  for (const [name, packets] of Object.entries(cases)) {
    const leftUs = leftOver(packets, tracks.seconds, { program: 'all', segmentSec: 1 })
    t.comment(`${name}: at least ${Math.round(leftUs / 1000)} % left`)
    t.ok(leftUs > 50_000, `${name}: ${leftUs}`)
  }
})

t.test('a service drops costly media and serves other streams', async (t) => {
  const service = await startService(t)
  const target = {
    host: '127.0.0.1',
    httpPort: service.server.httpPort,
    srtPort: service.server.srtPort,
    ...service,
  }
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const attack = publishCostly(target, stop.signal, {
    stream: 'a unit a packet, sequence parameter sets in turn',
    megabitsPerSecond: 6,
    streamId: 'costly',
  })
  const warnings = () => service.server.findStream('costly')?.report().warnings ?? []
  await until('a warning', () => warnings().some(({ code }) => code === 'INGEST_TOO_COSTLY'))
  stop.abort()
  const figures = await attack
  t.ok(figures.payloads > 0)
  const { body } = await service.api('status', { stream_id: 'costly' })
  const { too_costly } = body.data['totals'].dropped
  t.ok(too_costly > 0, `${too_costly} dropped of ${figures.payloads}`)
  t.ok(body.data['warnings'].some(({ code }: { code: string }) => code === 'INGEST_TOO_COSTLY'))
})
