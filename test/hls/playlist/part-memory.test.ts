/**
 * Memory of parts: that of their segments, so that no part is served once its segment is released, and no reader
 * receives bytes of another.
 */
import t from 'tap'
import { parseMediaPlaylist } from '../../../src/check/playlist/media-playlist.ts'
import { partUri } from '../../../src/hls/file-names.ts'
import { LivePresentation } from '../../../src/hls/playlist/live-presentation.ts'
import type { FileLoan } from '../../../src/hls/store/file-store.ts'
import { SegmentCache } from '../../../src/hls/store/segment-cache.ts'
import { slabBytesFor } from '../../../src/mpegts/mux/slab-pool.ts'
import { createRandom } from '../../support/random.ts'
import { PartSource } from './part-source.ts'

const SLAB_BYTES = slabBytesFor(1)

function startStream(cache: SegmentCache, epoch: string) {
  const presentation = new LivePresentation({
    ...{ cache, epoch, formats: ['cmaf'], playlistSegments: 6 },
  })
  const source = new PartSource(presentation, ['cmaf-video-1'], epoch)
  // Each part fills a slab with bytes of its own.
  source.makeChunk = () => {
    const slab = cache.slabs.take(SLAB_BYTES)
    return slab.fill(`${epoch}-${source.serial}.`)
  }
  source.complete()
  source.complete()
  presentation.setTarget(2, 0.208)
  const { files } = presentation
  const read = () =>
    parseMediaPlaylist(files.get('cmaf-video-1.m3u8')?.chunks.join('') ?? '', 'cmaf-video-1.m3u8')
  const isIntact = (serial: number, { file }: FileLoan) =>
    file.chunks[0]!.equals(Buffer.alloc(SLAB_BYTES, `${epoch}-${serial}.`))
  const partOf = (serial: number) => partUri(epoch, 'cmaf-video-1', serial)
  return { presentation, source, files, read, isIntact, partOf }
}

t.test('parts of a segment that the cache refuses become gaps', async (t) => {
  const cache = new SegmentCache({ maxBytes: 6 * SLAB_BYTES })
  const { source, files, read, isIntact, partOf } = startStream(cache, 'e')
  for (let index = 0; index < 10; index++) source.part()
  const loan = files.lend(partOf(3))!
  t.ok(isIntact(3, loan), 'served while the segment is open')
  source.complete()
  t.equal(cache.stats.refused, 1)
  const { gap, parts } = read().segments.at(-1)!
  t.ok(gap)
  t.same(
    parts.map((part) => [part.gap, files.availability(part.uri), files.lend(part.uri)]),
    Array.from({ length: 10 }, () => [true, 'unknown', undefined]),
  )
  for (let index = 0; index < 10; index++) cache.slabs.take(SLAB_BYTES).fill('x')
  t.ok(isIntact(3, loan), 'the reader keeps what it was lent')
  loan.end!()
})

t.test(
  'parts count with their objects, so that a long window of small ones is shortened',
  async (t) => {
    const cache = new SegmentCache({ maxBytes: 256 * 1024 })
    const presentation = new LivePresentation({
      ...{ cache, epoch: 'e', formats: ['cmaf'], playlistSegments: 20 },
    })
    const source = new PartSource(presentation)
    source.segment()
    source.segment()
    presentation.setTarget(2, 0.208)
    // Their media alone is 75 KB, less than the share of a window.
    for (let index = 0; index < 50; index++) source.segment(20, { durationSec: 0.1 })
    const { files } = presentation
    const serials = Array.from({ length: source.serial }, (_, serial) => serial)
    const uris = serials.map((serial) => partUri('e', 'cmaf-video-1', serial))
    const kept = uris.filter((uri) => files.availability(uri) === 'current')
    t.ok(kept.length * (188 + 570) <= 256 * 1024, `${kept.length} parts`)
    t.match(cache.stats, { refused: 0, releasedEarly: 0 })
    t.ok(presentation.listedSegments < 20)
  },
)

t.test('an idle stream that gives a segment gives its parts', async (t) => {
  const cache = new SegmentCache({ maxBytes: 40 * SLAB_BYTES })
  const idle = startStream(cache, 'idle')
  for (let index = 0; index < 3; index++) idle.source.segment()
  t.equal(idle.files.availability(idle.partOf(0)), 'current')
  idle.files.markIdle()
  const live = startStream(cache, 'live')
  for (let index = 0; index < 2; index++) live.source.segment()
  t.ok(cache.stats.yielded >= 2)
  const complete = idle.read().segments.filter(({ parts }) => parts.length > 0)
  t.ok(complete.some(({ gap }) => gap))
  for (const { gap, parts, uri } of complete) {
    t.equal(idle.files.availability(uri!), gap ? 'unknown' : 'current')
    for (const part of parts) {
      t.equal(part.gap, gap, part.uri)
      t.equal(idle.files.availability(part.uri), gap ? 'unknown' : 'current', part.uri)
    }
  }
})

t.test('a discarded stream has no parts, and its memory is free', async (t) => {
  const cache = new SegmentCache({ maxBytes: 100 * SLAB_BYTES })
  const { presentation, source, files, partOf } = startStream(cache, 'e')
  source.segment()
  const openPart = source.serial
  source.part()
  const loan = files.lend(partOf(0))!
  const freeBytes = () => cache.slabs.freeBytes
  presentation.discard()
  t.equal(files.availability(partOf(0)), 'unknown')
  t.equal(files.availability(partOf(openPart)), 'unknown')
  t.equal(files.availability(partOf(openPart + 1)), 'unknown', 'hinted before')
  const before = freeBytes()
  loan.end!()
  t.equal(freeBytes(), before + SLAB_BYTES, 'the last reader frees the rest')
})

t.test('no part has bytes of another while streams compete for recycled memory', async (t) => {
  const random = createRandom(11)
  const cache = new SegmentCache({ maxBytes: 90 * SLAB_BYTES })
  const streams = ['a', 'b', 'c'].map((epoch) => startStream(cache, epoch))
  const loans: { readonly isIntact: () => boolean; readonly end: () => void }[] = []
  const seen = { parts: 0, gaps: 0, loans: 0 }
  for (let turn = 0; turn < 1500; turn++) {
    const stream = streams[random.below(streams.length)]!
    const { source, files, read, isIntact, partOf } = stream
    source.part()
    if (source.openParts >= 3 + random.below(10)) source.complete()
    if (random.chance(0.01)) files.markIdle()
    if (turn % 10 === 0) {
      for (const { parts } of read().segments) {
        for (const { uri, gap } of parts) {
          const loan = files.lend(uri)
          const serial = Number(/p(\d+)\.m4s$/.exec(uri)?.[1])
          if (gap) seen.gaps++
          else seen.parts++
          if ((loan === undefined) !== gap) t.fail(`${uri} is ${gap ? '' : 'no '}gap`)
          if (loan !== undefined && !isIntact(serial, loan)) t.fail(`${uri} has other bytes`)
          loan?.end?.()
        }
      }
    }
    // Readers that take their time, also with parts that are listed no more.
    const serial = source.serial - 1 - random.below(60)
    const loan = files.lend(partOf(serial))
    if (loan?.end !== undefined) {
      seen.loans++
      loans.push({ isIntact: () => isIntact(serial, loan), end: loan.end })
    }
    if (loans.length > 20) {
      const [oldest] = loans.splice(random.below(loans.length), 1)
      if (oldest?.isIntact() === false) t.fail('a lent part has changed')
      oldest?.end()
    }
  }
  t.comment(JSON.stringify({ ...seen, ...cache.stats }))
  t.ok(seen.parts > 1000 && seen.gaps > 0 && seen.loans > 100)
})
