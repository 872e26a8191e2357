/**
 * The memory for segments, when there is not enough of it.
 */
import t from 'tap'
import { SegmentCache } from '../../src/hls/segment-cache.ts'
import { createLogger } from '../../src/logger.ts'
import { publish } from '../../src/publisher/publisher.ts'
import { pesPacket, TsBuilder } from '../mpegts/ts-builder.ts'
import { h264AccessUnit } from '../support/access-units.ts'
import { startService } from '../support/service.ts'
import { StreamCrowd, type StreamPlan } from '../support/stream-crowd.ts'
import { until } from '../support/until.ts'

const MIB = 1024 * 1024

function setUp(maxMib: number, plans: readonly StreamPlan[]) {
  const cache = new SegmentCache({ maxBytes: maxMib * MIB })
  return { cache, crowd: new StreamCrowd(cache, plans) }
}

for (const [how, spreadSec] of Object.entries({ 'one after the other': 0.02, 'at once': 0 })) {
  t.test(`100 streams of 5 Mbit/s that cut ${how} have no gap in 512 MiB`, async (t) => {
    const plans = Array.from({ length: 100 }, (_, n) => ({ mbps: 5, fromSec: n * spreadSec }))
    const { cache, crowd } = setUp(512, plans)
    crowd.run(120)
    t.equal(crowd.count('gaps'), 0)
    for (const stream of crowd.streams) {
      const listed = stream.listed()
      t.equal(listed.length, 3)
      t.ok(listed.every(({ uri }) => stream.presentation.segment(uri)))
    }
    const { bytes, maxBytes, neededBytes, releasedEarly } = cache.stats
    t.ok(bytes <= maxBytes)
    t.ok(bytes > maxBytes * 0.99, 'what is not needed for lists is used to retain')
    t.ok(releasedEarly > 0, 'what it cost is counted')
    t.equal(neededBytes, (100 * 6 * 1_250_000) / 0.4)
  })
}

t.test('renditions of a stream give in step', async (t) => {
  const renditions = ['main', 'video-2', 'audio-2'] as const
  const plans = Array.from({ length: 30 }, (_, n) => ({ mbps: 5, renditions, fromSec: n * 0.06 }))
  const { crowd } = setUp(512, plans)
  crowd.run(120, {
    onCut(stream) {
      const [main, ...others] = renditions.map((name) => stream.listed(name).map(numberOf).join())
      if (others.some((numbers) => numbers !== main)) t.fail(`${main}, and ${others.join(' and ')}`)
    },
  })
  t.equal(crowd.count('gaps'), 0)
  t.equal(crowd.streams[0]!.listed().length, 3)
})

t.test('one stream of 60 Mbit/s costs 20 of 5 Mbit/s no gap, and no window', async (t) => {
  const small = Array.from({ length: 20 }, (_, n) => ({ mbps: 5, fromSec: n * 0.1 }))
  // Whole windows of all need 573 MiB, those of the 20 alone 358; in 376 the 21st part is enough for each of the 20.
  for (const maxMib of [376, 384, 448, 512, 573]) {
    const { cache, crowd } = setUp(maxMib, [...small, { mbps: 60, fromSec: 30 }])
    const of20 = crowd.streams.slice(0, 20)
    const large = crowd.streams[20]!
    crowd.run(180)
    t.equal(crowd.count('gaps'), 0, `${maxMib} MiB`)
    t.equal(Math.min(...of20.map((stream) => stream.listed().length)), 6)
    t.ok(large.listed().length >= 3)
    t.equal(cache.shortageOf(large.presentation).unlistedEarly > 0, maxMib < 573, 'it shrinks')
    for (const { presentation } of of20) t.equal(cache.shortageOf(presentation).unlistedEarly, 0)
  }
})

t.test('where not even its shortest window fits, only the large stream has gaps', async (t) => {
  const small = Array.from({ length: 20 }, (_, n) => ({ mbps: 5, fromSec: n * 0.1 }))
  const { crowd } = setUp(100, [...small, { mbps: 60, fromSec: 30 }])
  crowd.run(180)
  t.equal(crowd.count('gaps', crowd.streams.slice(0, 20)), 0)
  t.ok(crowd.streams[20]!.gaps > 0)
  t.ok(crowd.streams[20]!.gaps < crowd.streams[20]!.segments, 'it has its share')
})

t.test('pressure that ends is forgotten: windows grow back by themselves', async (t) => {
  const plans = Array.from({ length: 100 }, (_, n) => ({
    ...{ mbps: 5, fromSec: n * 0.02 },
    ...(n >= 25 && { untilSec: 60 }),
  }))
  const { cache, crowd } = setUp(512, plans)
  crowd.run(60)
  t.equal(crowd.streams[0]!.listed().length, 3)
  crowd.run(80)
  const before = cache.stats
  crowd.run(120)
  t.ok(crowd.running.every((stream) => stream.listed().length === 6))
  const { unlistedEarly, releasedEarly } = before
  t.match(cache.stats, { unlistedEarly, releasedEarly, refused: 0 }, 'nothing is short any more')
})

t.test('a stream that arrives when the memory is full gets its share of it', async (t) => {
  const plans = Array.from({ length: 130 }, (_, n) => ({ mbps: 5, fromSec: n < 120 ? 0 : 60 + n }))
  const { crowd } = setUp(512, plans)
  crowd.run(300)
  t.equal(crowd.count('gaps'), 0)
})

t.test('a service says what is short, for as long as it is, and mends it by itself', async (t) => {
  const lines: { msg: string; level: number }[] = []
  const logger = createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) })
  const { server, url } = await startService(t, {
    ...{ logger, cache: { maxMib: 16 }, hls: { segmentSec: 1, lingerSec: 1 } },
  })
  const file = oneSecond(1_000_000)
  const stops = new Map<string, AbortController>()
  for (const streamId of ['one', 'two', 'three']) {
    const stop = new AbortController()
    t.teardown(() => stop.abort())
    stops.set(streamId, stop)
    const { srtUrl } = await server.startStream({ streamId })
    void publish({ file, url: srtUrl, loop: true, signal: stop.signal }).catch(t.fail)
  }
  const warnings = (id: string) => server.status(id).warnings.map(({ code }) => code)
  for (const id of stops.keys()) {
    await until(`${id} is short`, () => warnings(id).includes('CACHE_TOO_SMALL'))
  }
  await until('a segment released early', () => server.status('one').playlist.releasedEarly > 0)
  for (const id of stops.keys()) {
    t.match(server.status(id).playlist, { listedSegments: 3, wantedSegments: 6, gaps: 0 })
  }
  const playlist = await (await fetch(`${url}/video/one/playlist.m3u8`)).text()
  t.notMatch(playlist, 'GAP')

  for (const id of ['two', 'three']) {
    stops.get(id)!.abort()
    await server.stopStream(id)
  }
  await until('a whole window', () => server.status('one').playlist.listedSegments === 6)
  t.equal(server.status('one').playlist.gaps, 0)
  const told = lines.filter(({ msg }) => /memory/i.test(msg))
  t.match(told, [{ msg: /^Memory for segments is short: 16 of \d+ MiB\. Viewers lack / }])
  t.equal(told.length, 1, 'one line for all streams')
  t.ok(lines.some(({ msg }) => msg.startsWith('cache of 16 MiB holds about 8 Mbit/s of streams')))
})

/** A second of video of 25 frames a second and about this many bytes, that begins with a key frame. */
function oneSecond(sizeBytes: number): Buffer {
  const ts = new TsBuilder()
  for (let frame = 0; frame < 25; frame++) {
    if (frame % 5 === 0) ts.program([{ pid: 0x100, streamType: 0x1b }])
    const ticks = frame * 3600
    const pcr = Buffer.alloc(6)
    pcr.writeUIntBE(ticks * 2 ** 15, 0, 6)
    const unit = h264AccessUnit({ key: frame === 0, sizeBytes: sizeBytes / 25 })
    const pes = pesPacket(unit, { ptsTicks: ticks + 9000, length: 'none' })
    ts.unit(0x100, pes, { adaptationFlags: 0x10, adaptation: pcr })
  }
  return ts.bytes
}

function numberOf({ uri }: { uri: string }): string | undefined {
  return /(\d+)\.ts$/.exec(uri)?.[1]
}
