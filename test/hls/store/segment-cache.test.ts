import t from 'tap'
import { LivePresentation } from '../../../src/hls/playlist/live-presentation.ts'
import { createSegment } from '../../../src/hls/store/segment.ts'
import type { SegmentOwner } from '../../../src/hls/store/cache-account.ts'
import { SegmentCache } from '../../../src/hls/store/segment-cache.ts'
import { createStreamFile, type StreamFile } from '../../../src/hls/store/stream-file.ts'

const bytes = (length: number) => Buffer.alloc(length)

function file(sizeBytes: number): StreamFile {
  return createStreamFile('segment', {
    chunks: [bytes(sizeBytes)],
    version: '',
    targetDurationSec: 2,
  })
}

let owners = 0

/** Owner that lists its segments, and retains those it removes for 5 s. */
class Owner implements SegmentOwner {
  windowSize = { minBytes: 0, wantedBytes: 0 }
  readonly listed: string[] = []
  readonly #cache: SegmentCache
  readonly #minSegments: number
  readonly #name = owners++
  #next = 0

  constructor(cache: SegmentCache, minSegments = Infinity) {
    this.#cache = cache
    this.#minSegments = minSegments
  }

  put(sizeBytes: number, nowMs = 0): string | undefined {
    const uri = `${this.#name}-${this.#next++}.ts`
    if (!this.#cache.put(this, uri, { file: file(sizeBytes), nowMs })) return undefined
    this.listed.push(uri)
    return uri
  }

  shrink(nowMs: number): boolean {
    if (this.listed.length <= this.#minSegments) return false
    this.#cache.retain(this, this.listed.shift()!, nowMs + 5000)
    return true
  }

  drop(uri: string): void {
    this.listed.splice(this.listed.indexOf(uri), 1)
  }

  /** The elements of `uris` that can be fetched. */
  kept(uris: readonly (string | undefined)[]): number {
    return uris.filter((uri) => uri !== undefined && this.#cache.get(this, uri)).length
  }
}

t.test('gives a segment to its owner alone', async (t) => {
  const cache = new SegmentCache({ maxBytes: 1000 })
  const [owner, other] = [new Owner(cache), new Owner(cache)]
  const held = file(100)
  t.ok(cache.put(owner, 'a-0.ts', { file: held, nowMs: 0 }))
  t.equal(cache.get(owner, 'a-0.ts'), held, 'the bytes themselves, no copy')
  t.equal(cache.get(other, 'a-0.ts'), undefined)
  cache.retain(other, 'a-0.ts', 0)
  cache.discard(other)
  t.ok(cache.get(owner, 'a-0.ts'))
})

t.test('retains what left its playlist until its time, and releases it then', async (t) => {
  const cache = new SegmentCache({ maxBytes: 1000 })
  const owner = new Owner(cache)
  const uri = owner.put(100)!
  cache.retain(owner, uri, 5000)
  cache.retain(owner, uri, 1)
  owner.put(100, 4999)
  t.match(cache.stats, { bytes: 200, listedBytes: 100, segments: 2 })
  owner.put(100, 5000)
  t.equal(cache.get(owner, uri), undefined)
  t.match(cache.stats, { bytes: 200, listedBytes: 200, segments: 2, releasedEarly: 0 })
})

t.test('evicts nothing that is listed: a segment that then has no room is refused', async (t) => {
  const cache = new SegmentCache({ maxBytes: 1000 })
  const [owner, other] = [new Owner(cache), new Owner(cache)]
  const uris = [owner.put(500), owner.put(500)]
  t.equal(other.put(1), undefined)
  t.equal(owner.put(1), undefined)
  t.equal(owner.kept(uris), 2)
  t.match(cache.stats, { bytes: 1000, segments: 2, refused: 2 })
  t.match(cache.shortageOf(owner), { refused: 1 })
})

t.test('a segment larger than the cache takes no memory from others', async (t) => {
  const cache = new SegmentCache({ maxBytes: 1000 })
  const owner = new Owner(cache, 0)
  owner.put(500)
  t.equal(owner.put(1001), undefined)
  t.match(cache.stats, { bytes: 500, listedBytes: 500, refused: 1, unlistedEarly: 0 })
})

t.test('under pressure windows shrink, then what is retained goes, oldest first', async (t) => {
  const cache = new SegmentCache({ maxBytes: 1000 })
  const owner = new Owner(cache, 2)
  owner.windowSize = { minBytes: 200, wantedBytes: 1000 }
  const uris = Array.from({ length: 10 }, () => owner.put(100))
  t.equal(owner.listed.length, 4, 'at least as many can be retained')
  t.match(cache.stats, { unlistedEarly: 6, releasedEarly: 0 })
  uris.push(owner.put(100))
  t.equal(owner.listed.length, 3, 'the shortest window, and the new one')
  t.match(cache.stats, { bytes: 1000, unlistedEarly: 8, releasedEarly: 1, refused: 0 })
  uris.push(owner.put(250))
  t.match(cache.stats, { bytes: 950, releasedEarly: 4, refused: 0 })
  t.same(
    uris.map((uri) => owner.kept([uri])),
    [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
  )
  t.match(cache.shortageOf(owner), { unlistedEarly: 9, releasedEarly: 4, refused: 0 })
})

t.test('segments that expired make room for another owner', async (t) => {
  const cache = new SegmentCache({ maxBytes: 1000 })
  const [idle, other] = [new Owner(cache), new Owner(cache)]
  const uris = [1000, 1000, 3000].map((untilMs) => {
    const uri = idle.put(300)!
    cache.retain(idle, uri, untilMs)
    return uri
  })
  t.ok(other.put(300, 1000))
  t.same(uris.map((uri) => idle.kept([uri])), [0, 0, 1]) // prettier-ignore
  t.match(cache.stats, { bytes: 600, segments: 2, listedBytes: 300, releasedEarly: 0 })
})

t.test('windows keep to a fair share of what can be listed and retained', async (t) => {
  const cache = new SegmentCache({ maxBytes: 10_000 })
  const [small, large] = [new Owner(cache, 1), new Owner(cache, 2)]
  small.windowSize = { minBytes: 100, wantedBytes: 400 }
  large.windowSize = { minBytes: 1400, wantedBytes: 6000 }
  for (let n = 0; n < 4; n++) small.put(100)
  for (let n = 0; n < 6; n++) large.put(700)
  t.equal(small.listed.length, 4, 'the small one keeps all')
  t.equal(large.listed.length, 5, '0.4 of the cache, less what the small one wants')
  t.match(cache.stats, { bytes: 4600, releasedEarly: 0, neededBytes: 16_000 })
  large.windowSize = { minBytes: 1400, wantedBytes: 3000 }
  for (let n = 0; n < 2; n++) large.put(300)
  t.equal(large.listed.length, 7, 'no limit where all can have their windows')
})

t.test(
  'retained segments are released early by the owner that holds most, and by no other',
  async (t) => {
    const cache = new SegmentCache({ maxBytes: 1000 })
    const [small, large, late] = [new Owner(cache), new Owner(cache), new Owner(cache)]
    const retained = (owner: Owner, sizeBytes: number) => {
      const uri = owner.put(sizeBytes)!
      cache.retain(owner, uri, 5000)
      return uri
    }
    const ofSmall = [retained(small, 100), retained(small, 100)]
    const ofLarge = Array.from({ length: 4 }, () => retained(large, 200))
    for (let n = 0; n < 4; n++) t.ok(late.put(100))
    t.same([small.kept(ofSmall), large.kept(ofLarge)], [2, 2])
    t.same(
      ofLarge.map((uri) => large.kept([uri])),
      [0, 0, 1, 1],
      'oldest first',
    )
    t.match(cache.stats, { bytes: 1000, releasedEarly: 2, refused: 0 })
    t.match(cache.shortageOf(large), { releasedEarly: 2 })
  },
)

t.test('only owners over their share get gaps where the shortest windows do not fit', async (t) => {
  const cache = new SegmentCache({ maxBytes: 1000 })
  const [small, large] = [new Owner(cache, 3), new Owner(cache, 3)]
  large.windowSize = { minBytes: 1500, wantedBytes: 3000 }
  t.ok(large.put(500))
  t.ok(large.put(500), 'alone it may have all')
  small.windowSize = { minBytes: 300, wantedBytes: 600 }
  t.notOk(small.put(100), 'what is listed is not taken from it')
  cache.retain(large, large.listed.shift()!, 1e6)
  for (let n = 0; n < 3; n++) t.ok(small.put(100))
  t.notOk(large.put(500), 'of 1000 bytes it may list 700')
  t.match(cache.stats, { bytes: 800, listedBytes: 800 })
  t.match(cache.shortageOf(large), { refused: 1, releasedEarly: 1 })
  t.match(cache.shortageOf(small), { refused: 1, unlistedEarly: 0, releasedEarly: 0 })
})

t.test('a window within its share does not shrink for a larger stream', async (t) => {
  const cache = new SegmentCache({ maxBytes: 2000 })
  const [small, large] = [new Owner(cache, 3), new Owner(cache, 3)]
  small.windowSize = { minBytes: 150, wantedBytes: 300 }
  large.windowSize = { minBytes: 1500, wantedBytes: 3000 }
  const uris = Array.from({ length: 12 }, () => small.put(50))
  for (const uri of small.listed.splice(0, 6)) cache.retain(small, uri, 1e6)
  for (let n = 0; n < 3; n++) t.ok(large.put(500), 'its shortest window')
  t.equal(small.listed.length, 6)
  t.equal(small.kept(uris), 10, 'what is retained goes before a gap')
})

t.test('throws at a URI that is in the cache already', async (t) => {
  const cache = new SegmentCache({ maxBytes: 1000 })
  const owner = new Owner(cache)
  cache.put(owner, 'a-0.ts', { file: file(1), nowMs: 0 })
  t.throws(() => cache.put(owner, 'a-0.ts', { file: file(1), nowMs: 0 }), /a-0.ts/)
})

t.test('a discarded owner leaves nothing behind', async (t) => {
  const cache = new SegmentCache({ maxBytes: 1000 })
  const owner = new Owner(cache)
  owner.windowSize = { minBytes: 50, wantedBytes: 100 }
  const uris = Array.from({ length: 5 }, () => owner.put(10))
  cache.retain(owner, uris[0]!, 1e9)
  cache.discard(owner)
  t.match(cache.stats, { bytes: 0, listedBytes: 0, segments: 0, neededBytes: 0 })
})

t.test(
  'many streams under pressure: windows shrink, and all that is listed can be fetched',
  async (t) => {
    const segmentBytes = 10_000
    // Ten streams need 10 x (3 listed + 4 retained) segments; six listed each would need 10 x (6 + 7).
    const cache = new SegmentCache({ maxBytes: 10 * 9 * segmentBytes })
    const streams = Array.from(
      { length: 10 },
      (_, n) => new LivePresentation({ cache, epoch: `s${n}`, playlistSegments: 6 }),
    )
    for (const stream of streams) stream.setTarget(2)
    for (let msn = 0; msn < 60; msn++) {
      for (const [n, stream] of streams.entries()) {
        stream.append(
          createSegment({
            epoch: `s${n}`,
            mediaSequence: msn,
            rendition: 'main',
            uri: `s${n}-${msn}.ts`,
            chunks: [bytes(segmentBytes)],
            durationSec: 2,
            startTicks: msn * 180_000,
            endTicks: (msn + 1) * 180_000,
            programDateTimeMs: msn * 2000,
            discontinuity: false,
            discontinuitySequence: 0,
            independent: true,
            startsWithKeyFrame: true,
            tracks: [],
            parts: [],
            nextDateTimeMs: (msn + 1) * 2000,
            videoFrames: 60,
          }),
          msn * 2000,
        )
      }
      for (const { files } of streams) {
        const text = files.get('playlist.m3u8')!.chunks.join('')
        const listed = text.match(/^s.*$/gm)!
        t.ok(listed.every((uri) => files.get(uri) !== undefined))
        if (msn >= 3) t.ok(listed.length >= 3)
      }
      t.ok(cache.stats.bytes <= cache.stats.maxBytes)
    }
    t.equal(cache.stats.refused, 0)
    for (const stream of streams) stream.discard()
    t.equal(cache.stats.segments, 0)
  },
)

t.test('an idle owner gives all it has before others give anything', async (t) => {
  const cache = new SegmentCache({ maxBytes: 100 })
  const [resting, live] = [new Owner(cache, 1), new Owner(cache, 1)]
  for (const owner of [resting, live]) {
    for (let n = 0; n < 3; n++) owner.put(15)
    owner.shrink(0)
  }
  cache.markIdle(resting)
  for (let n = 0; n < 3; n++) t.ok(live.put(15))
  t.strictSame(resting.listed, [])
  t.match(cache.shortageOf(resting), { releasedEarly: 0, refused: 0, yielded: 3 })
  t.match(cache.shortageOf(live), { unlistedEarly: 0, releasedEarly: 0, refused: 0 })
  t.equal(cache.stats.listedBytes, 75)
  t.ok(resting.put(15), 'it has its share again as soon as it has a segment')
})

t.test('queues of a stream shrink its window before memory is exceeded', async (t) => {
  const cache = new SegmentCache({ maxBytes: 1000 })
  const [hog, other] = [new Owner(cache, 1), new Owner(cache, 1)]
  hog.windowSize = other.windowSize = { minBytes: 50, wantedBytes: 200 }
  const uris = Array.from({ length: 4 }, () => [hog.put(50), other.put(50)])
  t.match(cache.stats, { bytes: 400, queuedBytes: 0, unlistedEarly: 0 })
  cache.reserve(hog, 750)
  cache.settle(0)
  t.match(cache.stats, { queuedBytes: 750, refused: 0 })
  t.ok(cache.stats.bytes + cache.stats.queuedBytes <= 1000)
  t.equal(other.kept(uris.map((pair) => pair[1])), 4, 'the other stream loses nothing')
  t.equal(hog.listed.length, 1, 'its own window is the shortest')
  cache.reserve(hog, 0)
  t.match(cache.stats, { queuedBytes: 0 })
})

t.test('queues beyond all memory leave other streams their share', async (t) => {
  const cache = new SegmentCache({ maxBytes: 1000 })
  const [hog, other] = [new Owner(cache, 1), new Owner(cache, 3)]
  other.windowSize = { minBytes: 150, wantedBytes: 200 }
  cache.reserve(hog, 1e9)
  cache.settle(0)
  const uris = Array.from({ length: 4 }, () => other.put(50))
  t.equal(other.kept(uris), 4, 'its whole window')
  t.equal(hog.put(50), undefined, 'a gap for the stream with the queues')
  for (let index = 0; index < 8; index++) {
    cache.settle(index)
    other.shrink(index)
    t.ok(other.put(50, index), 'no gap')
  }
  t.match(cache.shortageOf(other), { refused: 0 })
  cache.discard(hog)
  t.match(cache.stats, { queuedBytes: 0 })
})
