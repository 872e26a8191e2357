import { readFileSync } from 'node:fs'
import t from 'tap'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import type { LiveStream } from '../../src/stream/live-stream.ts'
import type { Encoder } from '../../src/stream/publication.ts'
import { StreamRegistry, type RegistryOptions } from '../../src/stream/stream-registry.ts'
import { PUBLISHER_REPORT } from './publisher-report.ts'

/** H.264 with a key frame each second and AAC, 8 s. */
const CLIP = readFileSync(new URL('../../fixtures/demo.mpegts', import.meta.url))

function setUp(given: Partial<RegistryOptions> = {}) {
  let nowUs = 0
  const wall = { ms: Date.UTC(2026, 10, 22) }
  const clock = {
    nowUs: () => nowUs,
    wallMs: () => wall.ms + nowUs / 1000,
    advanceSec: (sec: number) => void (nowUs += sec * 1e6),
  }
  let epochs = 0
  const options = {
    clock,
    cache: new SegmentCache({ maxBytes: 64 * 1024 * 1024 }),
    segmentSec: 1,
    maxSegmentSec: 10,
    playlistSegments: 3,
    lingerSec: 60,
    reconnectGraceSec: 120,
    maxStreams: 3,
    createEpoch: () => `e${epochs++}`,
    ...given,
  }
  const registry = new StreamRegistry(options)
  const start = (id: string) => {
    const stream = registry.start(id)
    stream.renewKey(clock.wallMs() + 7_200_000)
    return stream
  }
  return { registry, start, options, clock, wall, epochs: () => epochs }
}

const ENCODER: Encoder = {
  lastPacketUs: 0,
  report: () => PUBLISHER_REPORT,
  close: () => undefined,
}

/** Media sequence number and discontinuity sequence number of the playlist. */
function numbers(stream: LiveStream) {
  const text = stream.files.get('playlist.m3u8')!.chunks.join('')
  const number = (tag: string) => Number(new RegExp(`^#${tag}:(\\d+)$`, 'm').exec(text)?.[1])
  return {
    media: number('EXT-X-MEDIA-SEQUENCE'),
    discontinuity: number('EXT-X-DISCONTINUITY-SEQUENCE'),
    segments: text.match(/#EXTINF/g)!.length,
  }
}

t.test('a registry starts, finds and forgets', async (t) => {
  const { registry, start, options, clock, epochs } = setUp()
  const first = start('studio')
  t.equal(registry.start('studio'), first, 'a running stream goes on')
  t.equal(registry.find('studio'), first)
  t.equal(registry.find('nobody'), undefined)
  first.publish(ENCODER).push(CLIP)
  first.stop('api')
  const second = registry.start('studio')
  t.not(second, first, 'a stopped one begins anew')
  t.equal(epochs(), 2, 'under another epoch')
  t.equal(options.cache.stats.bytes, 0, 'what it held is free again')
  second.stop('api')
  clock.advanceSec(61)
  t.equal(registry.find('studio'), undefined)
  registry.tick()
  t.strictSame([...registry], [], 'nothing is left of it')
})

t.test('an id that is started anew as its stream ends is not forgotten with it', async (t) => {
  const { registry, clock } = setUp({ lingerSec: 0 })
  const first = registry.start('studio')
  first.on('end', () => registry.start('studio').renewKey(clock.wallMs() + 1000))
  registry.tick()
  t.match(first, { status: 'STOPPED', forgotten: true })
  t.match(registry.find('studio'), { status: 'READY' })
})

t.test('time passes for streams in every state', async (t) => {
  const { registry, start, clock } = setUp()
  const interrupted = start('interrupted')
  interrupted.publish(ENCODER).end('timeout')
  const ready = start('ready')
  clock.advanceSec(120)
  registry.tick()
  t.equal(interrupted.status, 'STOPPED', 'the grace is over')
  t.equal(ready.status, 'READY')
  clock.advanceSec(7080)
  registry.tick()
  t.equal(ready.status, 'STOPPED', 'its key has expired')
  t.strictSame([...registry], [ready], 'the linger of the other is over')
})

t.test('a tick visits 100 of the streams that wait for an encoder, in turn', async (t) => {
  const { registry, start, clock } = setUp({ maxStreams: 1000 })
  const looks = new Map<string, number>()
  for (let i = 0; i < 250; i++) {
    const stream = start(`s${i}`)
    const tick = stream.tick.bind(stream)
    stream.tick = () => {
      looks.set(stream.id, (looks.get(stream.id) ?? 0) + 1)
      tick()
    }
  }
  registry.tick()
  t.equal(looks.size, 100)
  for (let i = 0; i < 4; i++) registry.tick()
  t.strictSame(new Set(looks.values()), new Set([2]), 'each twice in 5 ticks of 100')
  clock.advanceSec(7200)
  for (let i = 0; i < 3; i++) registry.tick()
  t.equal([...registry].filter(({ status }) => status === 'STOPPED').length, 250)
})

t.test('runs at most MAX_STREAMS streams in any state', async (t) => {
  const { registry, start } = setUp({ maxStreams: 3 })
  const refused = (id: string) =>
    t.throws(() => registry.start(id), { code: 'TOO_MANY_STREAMS', httpStatus: 503 })
  const [streaming] = ['a', 'b', 'c'].map(start)
  streaming!.publish(ENCODER)
  refused('d')
  t.equal(registry.start('b'), registry.find('b'), 'one that runs gets another key')
  streaming!.stop('api')
  t.equal(start('d').status, 'READY', 'one that lingers does not count')
  refused('a')
  registry.find('b')!.stop('api')
  t.equal(start('a').status, 'READY')
})

t.test('at most MAX_STREAMS linger; beyond, the first that stopped is dropped', async (t) => {
  const { registry, start, options } = setUp({ maxStreams: 2 })
  for (const id of ['a', 'b', 'c', 'd']) {
    const stream = start(id)
    stream.publish(ENCODER).push(CLIP)
    stream.stop('api')
  }
  t.strictSame(
    [...registry].map(({ id }) => id),
    ['c', 'd'],
  )
  t.equal(options.cache.stats.segments, 2 * 8, 'what the others held is free')
})

t.test('sequence numbers begin with the wall clock and never go back', async (t) => {
  // A later process shares only the clock with the previous one.
  const first = setUp().start('studio')
  first.publish(ENCODER).push(CLIP)
  const before = numbers(first)
  const later = setUp()
  later.clock.advanceSec(before.segments * 0.5)
  const second = later.start('studio')
  second.publish(ENCODER).push(CLIP)
  const after = numbers(second)
  t.ok(after.media >= before.media + before.segments, 'above the last segment of 0.5 s each')
  t.ok(after.discontinuity >= before.discontinuity)
  t.ok(after.media < 2 ** 31 && after.discontinuity < 2 ** 31, 'for players of 32 bits')
})

t.test('a stream that outran the clock continues above its last number', async (t) => {
  const { registry, start, wall } = setUp({ lingerSec: 0 })
  // Media is pushed at once, and the wall clock is set back by a day: no time has passed.
  const run = () => {
    const stream = start('studio')
    for (let i = 0; i < 3; i++) {
      const publication = stream.publish(ENCODER)
      publication.push(CLIP)
      publication.end('shutdown')
    }
    const free = stream.freeSequence
    const seen = numbers(stream)
    stream.stop('api')
    registry.tick()
    t.equal(registry.find('studio'), undefined, 'it is forgotten')
    wall.ms -= 86_400_000
    return { ...seen, free }
  }
  for (let i = 0, before = run(); i < 3; i++) {
    const after = run()
    t.ok(after.media >= before.free.media)
    t.ok(after.discontinuity >= before.free.discontinuity)
    before = after
  }
})

t.test('a continued stream has its settings and numbers, and ends after its grace', async (t) => {
  const first = setUp({ partSec: 0.2, playlistSegments: 8 })
  const stream = first.start('studio')
  const publication = stream.publish(ENCODER)
  publication.push(CLIP)
  const { checkpoint } = stream
  t.ok(checkpoint.rows.length > 4)

  const next = setUp({ createEpoch: () => 'next' })
  const continued = next.registry.start('studio', { continued: { checkpoint } })
  t.equal(continued.status, 'INTERRUPTED')
  t.same(continued.freeSequence, stream.freeSequence)
  t.strictSame(continued.checkpoint.media, { segmentSec: 1, playlistSegments: 8, partSec: 0.2 })
  t.equal(next.registry.start('studio', { continued: { checkpoint } }), continued, 'once')
  next.clock.advanceSec(120)
  next.registry.tick()
  t.equal(continued.status, 'STOPPED')
  t.match(continued.files.get('playlist.m3u8')!.chunks.join(''), /#EXT-X-ENDLIST/)
})
