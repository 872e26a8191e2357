/**
 * Shortage of memory for segments.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { readDatagrams, type MediaFile } from '../../src/cli/publisher/paced-file.ts'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import type { Server } from '../../src/service/server.ts'
import { createLogger } from '../../src/logger.ts'
import { systemClock } from '../../src/timing/clock.ts'
import { PUBLISHER_REPORT } from '../stream/publisher-report.ts'
import { startService } from '../support/service.ts'
import { StreamCrowd, type StreamPlan } from '../support/stream-crowd.ts'
import { until } from '../support/until.ts'
import { largeVideo } from './attacks/large-streams.ts'

const CLIP = new URL('../../fixtures/demo.mpegts', import.meta.url)

const MIB = 1024 * 1024

/** Interval of pushing media that is due. */
const FEED_MS = 20

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
      t.ok(listed.every(({ uri }) => stream.presentation.files.get(uri)))
    }
    const { bytes, maxBytes, neededBytes, releasedEarly } = cache.stats
    t.ok(bytes <= maxBytes)
    t.ok(bytes > maxBytes * 0.99, 'what is not needed for lists is used to retain')
    t.ok(releasedEarly > 0, 'what it cost is counted')
    t.equal(neededBytes, (100 * 6 * 1_250_000) / 0.4)
  })
}

t.test('renditions of a stream shrink together', async (t) => {
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

t.test('20 streams of 5 Mbit/s keep their windows beside one of 60 Mbit/s', async (t) => {
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

t.test('only a large stream has gaps where its shortest window does not fit', async (t) => {
  const small = Array.from({ length: 20 }, (_, n) => ({ mbps: 5, fromSec: n * 0.1 }))
  const { crowd } = setUp(100, [...small, { mbps: 60, fromSec: 30 }])
  crowd.run(180)
  t.equal(crowd.count('gaps', crowd.streams.slice(0, 20)), 0)
  t.ok(crowd.streams[20]!.gaps > 0)
  t.ok(crowd.streams[20]!.gaps < crowd.streams[20]!.segments, 'it has its share')
})

t.test('interrupted streams cause no gap in a live one', async (t) => {
  const gone = Array.from({ length: 18 }, (_, n) => ({
    ...{ mbps: 26, segmentSec: 1, fromSec: n * 0.5, untilSec: 1.1 + n * 0.5, lingers: true },
  }))
  const { cache, crowd } = setUp(64, [...gone, { mbps: 5, fromSec: 12 }])
  const live = crowd.streams.at(-1)!
  crowd.run(78)
  t.equal(live.segments, 33)
  t.equal(live.gaps, 0)
  t.equal(live.listed().length, 6)
  t.ok(live.listed().every(({ uri }) => live.presentation.files.get(uri)))
  const dropped = crowd.streams.filter(({ presentation }) => cache.shortageOf(presentation).yielded)
  t.ok(dropped.length > 0, 'what was given is counted')
  for (const stream of dropped) t.match(stream.listed(), [{ gap: true }])
})

t.test('windows grow back when memory pressure ends', async (t) => {
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

t.test('a stream that starts with a full cache gets its share', async (t) => {
  const plans = Array.from({ length: 130 }, (_, n) => ({ mbps: 5, fromSec: n < 120 ? 0 : n - 60 }))
  const { crowd } = setUp(512, plans)
  crowd.run(120)
  t.equal(crowd.count('gaps'), 0)
})

/**
 * Publishes a file in a loop in real time until the signal. Without a link: a busy machine is late, but loses nothing, and each
 * stream has the same media.
 */
async function feed(server: Server, streamId: string, file: MediaFile, signal: AbortSignal) {
  const publication = server.findStream(streamId)!.publish({
    get lastPacketUs() {
      return systemClock.nowUs()
    },
    report: () => PUBLISHER_REPORT,
    close: () => undefined,
  })
  const startUs = systemClock.nowUs()
  for await (const datagrams of readDatagrams(file, { loop: true })) {
    for (const { payload, dueUs } of datagrams) {
      while (!signal.aborted && systemClock.nowUs() < startUs + dueUs) await sleep(FEED_MS)
      if (signal.aborted) return
      publication.push(payload)
    }
  }
}

t.test(
  'large streams leave a small one intact, and get a warning when they are short',
  async (t) => {
    const lines: { msg: string }[] = []
    const logger = createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) })
    const { server } = await startService(t, {
      ...{ logger, cache: { maxMib: 16 }, hls: { formats: 'ts', segmentSec: 1, lingerSec: 1 } },
    })
    const end = new AbortController()
    t.teardown(() => end.abort())
    const others = ['large-0', 'large-1']
    const large = ['large', ...others]
    for (const streamId of ['small', ...large]) {
      await server.startStream({ streamId })
      void feed(server, streamId, streamId === 'small' ? CLIP : largeVideo(7), end.signal)
    }
    const playlist = (id: string) => server.status(id).playlist
    const codes = (id: string) => server.status(id).warnings.map(({ code }) => code)
    await until('nothing left to shrink', () => playlist('large').releasedEarly > 0)
    t.match(playlist('large'), { listedSegments: 3, wantedSegments: 6, gaps: 0 })
    for (const id of large) {
      await until(`a warning of ${id}`, () => codes(id).includes('CACHE_TOO_SMALL'))
    }
    await until('a whole window', () => playlist('small').listedSegments === 6)
    t.notOk(codes('small').includes('CACHE_TOO_SMALL'))
    for (const id of others) {
      const { listedSegments, gaps } = playlist(id)
      t.equal(gaps, 0)
      t.ok(listedSegments >= 3 && listedSegments < 6, `${listedSegments} listed`)
    }

    for (const id of others) await server.stopStream(id)
    await until('a window that grew back', () => playlist('large').listedSegments === 6)
    t.equal(playlist('large').gaps, 0)
    t.match(playlist('small'), { gaps: 0, releasedEarly: 0 })
    const memoryLines = lines.filter(({ msg }) => /memory/i.test(msg))
    t.match(memoryLines, [
      { msg: /^Memory is short: \d+ segments unlisted, .* \(now 16, \d+ in queues\)\.$/ },
    ])
    t.equal(memoryLines.length, 1, 'one line for all streams')
    t.ok(
      lines.some(({ msg }) =>
        msg.startsWith('CACHE_MAX_MIB is 16: enough for encoders of 8 Mbit/s in all.'),
      ),
    )
  },
)

function numberOf({ uri }: { uri: string }): string | undefined {
  return /(\d+)\.ts$/.exec(uri)?.[1]
}
