import t from 'tap'
import { LivePlaylist } from '../../src/hls/live-playlist.ts'
import { SegmentCache, type SegmentOwner } from '../../src/hls/segment-cache.ts'

const STUBBORN: SegmentOwner = { shrink: () => false }
const bytes = (length: number) => Buffer.alloc(length)

t.test('gives a segment to its owner alone', async (t) => {
  const cache = new SegmentCache({ maxBytes: 1000 })
  const other: SegmentOwner = { shrink: () => false }
  const held = bytes(100)
  t.ok(cache.put(STUBBORN, 'a-0.ts', { bytes: held, nowMs: 0 }))
  t.equal(cache.get(STUBBORN, 'a-0.ts'), held, 'the bytes themselves, no copy')
  t.equal(cache.get(other, 'a-0.ts'), undefined)
  cache.retire(other, 'a-0.ts', 0)
  cache.discard(other)
  t.ok(cache.get(STUBBORN, 'a-0.ts'))
})

t.test('keeps what is owed until its time, and releases it then', async (t) => {
  const cache = new SegmentCache({ maxBytes: 1000 })
  cache.put(STUBBORN, 'a-0.ts', { bytes: bytes(100), nowMs: 0 })
  cache.retire(STUBBORN, 'a-0.ts', 5000)
  cache.retire(STUBBORN, 'a-0.ts', 1)
  cache.put(STUBBORN, 'a-1.ts', { bytes: bytes(100), nowMs: 4999 })
  t.match(cache.stats, { bytes: 200, listedBytes: 100, segments: 2 })
  cache.put(STUBBORN, 'a-2.ts', { bytes: bytes(100), nowMs: 5000 })
  t.equal(cache.get(STUBBORN, 'a-0.ts'), undefined)
  t.match(cache.stats, { bytes: 200, listedBytes: 200, segments: 2 })
})

t.test('refuses what has no room, and evicts nothing for it', async (t) => {
  const cache = new SegmentCache({ maxBytes: 1000 })
  t.ok(cache.put(STUBBORN, 'a-0.ts', { bytes: bytes(500), nowMs: 0 }))
  t.ok(cache.put(STUBBORN, 'a-1.ts', { bytes: bytes(500), nowMs: 0 }))
  cache.retire(STUBBORN, 'a-0.ts', 1000)
  t.notOk(cache.put(STUBBORN, 'a-2.ts', { bytes: bytes(1), nowMs: 999 }))
  t.ok(cache.get(STUBBORN, 'a-0.ts') && cache.get(STUBBORN, 'a-1.ts'))
  t.ok(cache.put(STUBBORN, 'a-2.ts', { bytes: bytes(1), nowMs: 1000 }))
  t.notOk(cache.put(STUBBORN, 'a-3.ts', { bytes: bytes(2000), nowMs: 1000 }))
  t.match(cache.stats, { bytes: 501, segments: 2, refused: 2 })
})

t.test('what one owner is owed no more makes room for another', async (t) => {
  const cache = new SegmentCache({ maxBytes: 1000 })
  const idle: SegmentOwner = { shrink: () => false }
  for (const [n, owedUntilMs] of [1000, 1000, 3000].entries()) {
    cache.put(idle, `a-${n}.ts`, { bytes: bytes(300), nowMs: 0 })
    cache.retire(idle, `a-${n}.ts`, owedUntilMs)
  }
  t.notOk(cache.put(STUBBORN, 'b-0.ts', { bytes: bytes(300), nowMs: 999 }))
  t.ok(cache.put(STUBBORN, 'b-0.ts', { bytes: bytes(300), nowMs: 1000 }))
  t.ok(cache.get(idle, 'a-2.ts'), 'still owed')
  t.match(cache.stats, { bytes: 600, segments: 2, listedBytes: 300 })
})

t.test('a URI that is taken is a mistake of whoever named the epoch', async (t) => {
  const cache = new SegmentCache({ maxBytes: 1000 })
  cache.put(STUBBORN, 'a-0.ts', { bytes: bytes(1), nowMs: 0 })
  t.throws(() => cache.put(STUBBORN, 'a-0.ts', { bytes: bytes(1), nowMs: 0 }), /a-0.ts/)
})

t.test('asks the owner of most bytes to list less, as far as it can', async (t) => {
  const cache = new SegmentCache({ maxBytes: 10_000 })
  const window = (name: string, least: number) => {
    const listed: string[] = []
    const owner: SegmentOwner = {
      shrink: (nowMs) => {
        if (listed.length <= least) return false
        cache.retire(owner, listed.shift()!, nowMs + 1000)
        return true
      },
    }
    const add = (size: number) => {
      const uri = `${name}-${listed.length}.ts`
      t.ok(cache.put(owner, uri, { bytes: bytes(size), nowMs: 0 }))
      listed.push(uri)
    }
    return { listed, add }
  }
  const small = window('small', 1)
  const large = window('large', 2)
  for (let n = 0; n < 4; n++) small.add(100)
  for (let n = 0; n < 6; n++) large.add(700)
  t.equal(small.listed.length, 4, 'the small one keeps all')
  t.equal(large.listed.length, 5)
  t.ok(cache.stats.listedBytes <= 4000)
  t.equal(cache.stats.bytes, 4600, 'nothing is evicted: it is owed')
  small.add(3000)
  t.same([small.listed.length, large.listed.length], [2, 2], 'then the others, to their least')
})

t.test('a discarded owner leaves nothing behind', async (t) => {
  const cache = new SegmentCache({ maxBytes: 1000 })
  for (let n = 0; n < 5; n++) cache.put(STUBBORN, `a-${n}.ts`, { bytes: bytes(10), nowMs: 0 })
  cache.retire(STUBBORN, 'a-0.ts', 1e9)
  cache.discard(STUBBORN)
  t.match(cache.stats, { bytes: 0, listedBytes: 0, segments: 0 })
})

t.test(
  'many streams under pressure: windows shrink, and all that is listed can be fetched',
  async (t) => {
    const segmentBytes = 10_000
    // Ten streams need 10 x (3 listed + 4 owed) segments; six listed each would need 10 x (6 + 7).
    const cache = new SegmentCache({ maxBytes: 10 * 9 * segmentBytes })
    const playlists = Array.from(
      { length: 10 },
      (_, n) => new LivePlaylist({ cache, epoch: `s${n}`, playlistSegments: 6 }),
    )
    for (let msn = 0; msn < 60; msn++) {
      for (const [n, playlist] of playlists.entries()) {
        playlist.append(
          {
            epoch: `s${n}`,
            mediaSequence: msn,
            rendition: 'main',
            uri: `s${n}-${msn}.ts`,
            bytes: bytes(segmentBytes),
            durationSec: 2,
            startTicks: msn * 180_000,
            endTicks: (msn + 1) * 180_000,
            targetDurationSec: 2,
            programDateTimeMs: msn * 2000,
            discontinuity: false,
            discontinuitySequence: 0,
            independent: true,
            tracks: [],
            videoFrames: 60,
          },
          msn * 2000,
        )
      }
      for (const playlist of playlists) {
        const listed = playlist.media()!.bytes.toString().match(/^s.*$/gm)!
        t.ok(listed.every((uri) => playlist.segment(uri) !== undefined))
        if (msn >= 3) t.ok(listed.length >= 3)
      }
      t.ok(cache.stats.bytes <= cache.stats.maxBytes)
    }
    t.equal(cache.stats.refused, 0)
    for (const playlist of playlists) playlist.discard()
    t.equal(cache.stats.segments, 0)
  },
)
