import { deepStrictEqual } from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import * as fc from 'fast-check'
import t from 'tap'
import type {
  DeliveryDirectives,
  PlaylistPosition,
} from '../../../src/hls/store/delivery-directives.ts'
import type { Format } from '../../../src/hls/file-names.ts'
import { FileStore } from '../../../src/hls/store/file-store.ts'
import { slabBytesFor } from '../../../src/mpegts/mux/slab-pool.ts'
import type { SegmentOwner } from '../../../src/hls/store/cache-account.ts'
import { SegmentCache } from '../../../src/hls/store/segment-cache.ts'
import { createStreamFile, type StreamFile } from '../../../src/hls/store/stream-file.ts'

const OWNER: SegmentOwner = {
  windowSize: { minBytes: 0, wantedBytes: 0 },
  shrink: () => false,
  drop: () => {},
}

function setUp({ maxBytes = 1000, maxWaiters = 1000, formats = ['ts'] as Format[] } = {}) {
  const cache = new SegmentCache({ maxBytes })
  const files = new FileStore({ cache, owner: OWNER, maxWaiters, formats })
  return { cache, files }
}

function playlist(version: string): StreamFile {
  const chunks = [Buffer.from(`#EXTM3U\n#${version}\n`)]
  return createStreamFile('media-playlist', { chunks, version, targetDurationSec: 2 })
}

function segment(version: string, sizeBytes = 100): StreamFile {
  return createStreamFile('segment', {
    chunks: [Buffer.alloc(sizeBytes)],
    version,
    targetDurationSec: 2,
  })
}

/** State of a wait. */
type Outcome = 'waits' | 'over' | 'does not wait' | 'has left' | 'over again'

interface Watched {
  outcome: Outcome
  leave(): void
}

function watch(files: FileStore, name: string, directives: DeliveryDirectives = {}): Watched {
  const forget = files.wait(name, directives, () => {
    watched.outcome = watched.outcome === 'waits' ? 'over' : 'over again'
  })
  const watched: Watched = {
    outcome: forget === undefined ? 'does not wait' : 'waits',
    leave: () => {
      forget?.()
      if (watched.outcome === 'waits') watched.outcome = 'has left'
    },
  }
  return watched
}

/** Position with segment 7 of three parts complete, and two parts of segment 8. */
const POSITION: PlaylistPosition = {
  mediaSequence: 7,
  parts: 3,
  nextParts: 2,
  partTargetSec: 0.5,
  hint: 'p23.ts',
  skippable: false,
}

t.test('renders each version of a playlist once, when it is first read', async (t) => {
  const { files } = setUp()
  let renderings = 0
  const render = (version: string) => () => {
    renderings++
    return playlist(version)
  }
  t.equal(files.get('playlist.m3u8'), undefined)
  files.replace('playlist.m3u8', render('1'))
  files.replace('playlist.m3u8', render('2'))
  t.equal(renderings, 0)
  const file = files.get('playlist.m3u8')
  t.equal(file?.version, '2')
  t.equal(files.get('playlist.m3u8'), file, 'readers share it')
  t.equal(renderings, 1)
})

t.test(
  'a playlist whose bytes are those of the version before keeps that version (strong ETag, RFC 9110 section 8.8.1)',
  async (t) => {
    const { files } = setUp()
    const render = (version: string, text: string, targetDurationSec = 2) =>
      files.replace('master.m3u8', () => {
        const chunks = [Buffer.from(text)]
        return createStreamFile('multivariant-playlist', { chunks, version, targetDurationSec })
      })
    render('1', 'a')
    const file = files.get('master.m3u8')
    render('2', 'a')
    t.equal(files.get('master.m3u8'), file, 'the same file')
    render('3', 'never read')
    render('4', 'a')
    t.equal(files.get('master.m3u8'), file, 'a version between that was never read')
    render('5', 'b')
    t.equal(files.get('master.m3u8')?.version, '5')
    render('6', 'b', 3)
    t.equal(files.get('master.m3u8')?.version, '6', 'its lifetime changed')
  },
)

t.test('holds segments in the cache: the same bytes, until they are removed', async (t) => {
  const { files, cache } = setUp()
  const file = segment('a')
  t.ok(files.put('a.ts', file, 0))
  t.equal(files.get('a.ts'), file)
  t.equal(cache.stats.listedBytes, 100)
  files.remove('a.ts', 5000)
  t.equal(files.get('a.ts'), file, 'retained')
  t.ok(files.put('b.ts', segment('b'), 5000))
  t.equal(files.get('a.ts'), undefined)
  t.equal(cache.stats.bytes, 100)
})

t.test('counts what memory did not suffice for', async (t) => {
  const { files } = setUp()
  t.notOk(files.put('a.ts', segment('a', 1001), 0))
  t.equal(files.get('a.ts'), undefined)
  t.equal(files.shortage.refused, 1)
})

t.test('discards all files, and nothing of another stream', async (t) => {
  const { files, cache } = setUp()
  const other = new FileStore({ cache, owner: { ...OWNER } })
  files.replace('playlist.m3u8', () => playlist('1'))
  files.put('a.ts', segment('a'), 0)
  other.put('b.ts', segment('b'), 0)
  t.equal(files.get('b.ts'), undefined, 'which it does not see')
  files.discard()
  t.equal(files.get('playlist.m3u8'), undefined)
  t.equal(files.get('a.ts'), undefined)
  t.ok(other.get('b.ts'))
})

t.test(
  'a delta update is rendered apart from the playlist, and only where there is one',
  async (t) => {
    const { files } = setUp()
    const rendered: string[] = []
    const replace = (version: string, position?: PlaylistPosition) =>
      files.replace(
        'playlist.m3u8',
        (delta) => {
          rendered.push(`${version} ${delta ? 'delta' : 'full'}`)
          return playlist(`${version}${delta ? '-delta' : ''}`)
        },
        position,
      )
    const read = (skip: boolean) => files.get('playlist.m3u8', { skip })!.version
    replace('1')
    t.equal(read(true), '1', 'the whole playlist where no delta update is offered')
    replace('2', POSITION)
    t.equal(read(true), '2')
    replace('3', { ...POSITION, skippable: true })
    t.equal(files.lend('playlist.m3u8', { skip: true })?.file.version, '3-delta')
    t.same([read(true), read(false), read(true)], ['3-delta', '3', '3-delta'])
    t.same(rendered, ['1 full', '2 full', '3 delta', '3 full'])
  },
)

t.test('a file is unknown until it exists, except the first playlists of a stream', async (t) => {
  const { files } = setUp()
  const names = ['playlist.m3u8', 'master.m3u8', 'audio-2.m3u8', 'a.ts', 'p23.ts']
  const all = () => names.map((name) => files.availability(name))
  t.same(all(), ['future', 'future', 'unknown', 'unknown', 'unknown'])
  files.replace('playlist.m3u8', () => playlist('1'), POSITION)
  t.same(all(), ['current', 'future', 'unknown', 'unknown', 'future'], 'p23.ts is hinted')
  files.putPart('p23.ts', segment('p23'), 'a.ts')
  files.replace('playlist.m3u8', () => playlist('2'), { ...POSITION, hint: 'p24.ts' })
  t.same(all(), ['current', 'future', 'unknown', 'unknown', 'current'])
  files.put('a.ts', segment('a'), 0)
  t.same(all(), ['current', 'future', 'unknown', 'current', 'current'])
  files.end()
  t.same(all(), ['current', 'unknown', 'unknown', 'current', 'current'])
  t.equal(files.availability('p24.ts'), 'unknown', 'no part comes after the end')
  files.discard()
  t.same(all(), ['unknown', 'unknown', 'unknown', 'unknown', 'unknown'])
})

t.test('awaits every multivariant playlist that the formats of the stream will have', async (t) => {
  const { files } = setUp()
  t.equal(files.availability('ts.m3u8'), 'future')
  const cmaf = setUp({ formats: ['cmaf'] }).files
  t.equal(cmaf.availability('master.m3u8'), 'future')
  t.equal(cmaf.availability('ts.m3u8'), 'unknown')
})

t.test('a hinted part that comes as a gap is unknown (RFC 8216bis 6.2.6)', async (t) => {
  const { files } = setUp()
  files.replace('playlist.m3u8', () => playlist('1'), POSITION)
  const wait = watch(files, 'p23.ts')
  await nextTurn()
  t.equal(wait.outcome, 'waits')
  files.replace('playlist.m3u8', () => playlist('2'), { ...POSITION, hint: 'p24.ts' })
  await nextTurn()
  t.equal(wait.outcome, 'over')
  t.equal(files.availability('p23.ts'), 'unknown')
})

t.test('directives do not apply without low latency, nor after the end', async (t) => {
  const { files } = setUp()
  const far = { mediaSequence: 1e9, part: 1e9 }
  files.replace('playlist.m3u8', () => playlist('1'))
  t.equal(files.availability('playlist.m3u8', far), 'current')
  files.replace('playlist.m3u8', () => playlist('2'), POSITION)
  t.equal(files.availability('playlist.m3u8', far), 'beyond')
  files.end()
  t.equal(files.availability('playlist.m3u8', far), 'current')
})

t.test('a wait ends when the playlist has the part', async (t) => {
  const { files } = setUp()
  const wait = (mediaSequence: number, part?: number) =>
    watch(files, 'playlist.m3u8', { mediaSequence, part })
  const replace = (changes: Partial<PlaylistPosition>) =>
    files.replace('playlist.m3u8', () => playlist('1'), { ...POSITION, ...changes })
  const waits = [wait(8, 2), wait(8, 3), wait(8), wait(9, 0)]
  const outcomes = async () => {
    await nextTurn()
    return waits.map(({ outcome }) => outcome)
  }
  replace({})
  t.same(await outcomes(), ['waits', 'waits', 'waits', 'waits'])
  replace({ nextParts: 3 })
  t.same(await outcomes(), ['over', 'waits', 'waits', 'waits'])
  replace({ mediaSequence: 8, parts: 3, nextParts: 0 })
  t.same(await outcomes(), ['over', 'waits', 'over', 'waits'], 'segment 8 has no fourth part')
  replace({ mediaSequence: 8, parts: 3, nextParts: 1 })
  t.same(await outcomes(), ['over', 'over', 'over', 'over'])
})

t.test('a wait for the first playlist ends with it', async (t) => {
  const { files } = setUp()
  const waits = ['playlist.m3u8', 'master.m3u8'].map((name) => watch(files, name))
  files.replace('playlist.m3u8', () => playlist('1'))
  await nextTurn()
  t.same(
    waits.map(({ outcome }) => outcome),
    ['over', 'waits'],
  )
  t.equal(watch(files, 'other.m3u8').outcome, 'does not wait')
  t.equal(files.waiters, 1, 'nobody waits for an unknown file')
})

t.test('after the synchronous call that ends a wait, all of its changes are visible', async (t) => {
  const { files } = setUp()
  const listed: string[] = []
  const readBoth = async () => {
    await new Promise<void>((resolve) => files.wait('playlist.m3u8', {}, resolve))
    return [files.get('playlist.m3u8')?.version, files.get('master.m3u8')?.version]
  }
  const seen = readBoth()
  for (const uri of ['a', 'b']) {
    listed.push(uri)
    files.replace('playlist.m3u8', () => playlist(listed.join()))
  }
  files.replace('master.m3u8', () => playlist('m'))
  t.strictSame(await seen, ['a,b', 'm'])
})

t.test('forgets a reader that leaves, without effect on other waits', async (t) => {
  const { files } = setUp()
  const leaving = watch(files, 'playlist.m3u8')
  const other = watch(files, 'playlist.m3u8')
  t.equal(files.waiters, 2)
  for (let times = 0; times < 2; times++) leaving.leave()
  t.equal(files.waiters, 1, 'a reader that leaves twice counts once')
  files.replace('playlist.m3u8', () => playlist('1'))
  await nextTurn()
  t.equal(leaving.outcome, 'has left')
  t.equal(other.outcome, 'over')
  leaving.leave()
  other.leave()
  t.equal(files.waiters, 0)
})

t.test('the end of the stream ends all waits', async (t) => {
  const { files } = setUp()
  files.replace('playlist.m3u8', () => playlist('1'), POSITION)
  const next = { mediaSequence: 8 }
  const waits = ['playlist.m3u8', 'p23.ts', 'master.m3u8'].map((name) => watch(files, name, next))
  await nextTurn()
  t.equal(files.waiters, 3)
  files.end()
  await nextTurn()
  for (const { outcome } of waits) t.equal(outcome, 'over')
  t.equal(watch(files, 'playlist.m3u8', next).outcome, 'does not wait')
  const discarded = setUp()
  const wait = watch(discarded.files, 'playlist.m3u8')
  discarded.files.discard()
  t.equal(wait.outcome, 'over')
  t.equal(discarded.files.waiters, 0)
})

t.test('too many readers do not wait', async (t) => {
  const { files } = setUp({ maxWaiters: 2 })
  const wait = () => watch(files, 'playlist.m3u8')
  const waits = [wait(), wait(), wait()]
  await nextTurn()
  t.same(
    waits.map(({ outcome }) => outcome),
    ['waits', 'waits', 'does not wait'],
  )
  t.equal(files.availability('playlist.m3u8'), 'future', 'as after a wait that was too long')
  files.replace('playlist.m3u8', () => playlist('2'), POSITION)
  await nextTurn()
  t.equal(waits[1]?.outcome, 'over')
  const next = watch(files, 'playlist.m3u8', { mediaSequence: 8 })
  await nextTurn()
  t.equal(next.outcome, 'waits', 'those that are released make room')
})

/** Part `index` of segment `mediaSequence`. */
interface PublishedPart {
  readonly mediaSequence: number
  readonly index: number
}

const FIRST_SEQUENCE = 3
const MAX_WAITERS = 5

/** Model of a playlist: the list of its parts, and the number of segments that are complete. */
class NaivePlaylist {
  readonly partTargetSec: number
  readonly published: PublishedPart[] = []
  completeSegments = 1
  ended = false

  constructor(partTargetSec: number) {
    this.partTargetSec = partTargetSec
  }

  /** Media sequence number of the segment that is not complete. */
  get open(): number {
    return FIRST_SEQUENCE + this.completeSegments
  }

  partsOf(mediaSequence: number): number {
    return this.published.filter((part) => part.mediaSequence === mediaSequence).length
  }

  availability(mediaSequence: number, part: number | undefined): string {
    if (this.ended) return 'current'
    if (mediaSequence > this.open + 1) return 'beyond'
    if (part === undefined) return mediaSequence < this.open ? 'current' : 'future'
    // A segment that is complete will get no more parts.
    let wanted = { mediaSequence, index: part }
    if (mediaSequence < this.open && part >= this.partsOf(mediaSequence)) {
      wanted = { mediaSequence: mediaSequence + 1, index: 0 }
    }
    if (wanted.mediaSequence < this.open) return 'current'
    const isThere = this.published.some(
      (each) => each.mediaSequence === wanted.mediaSequence && each.index === wanted.index,
    )
    if (isThere) return 'current'
    const ahead = wanted.index + 1 - this.partsOf(wanted.mediaSequence)
    const { partTargetSec } = this
    const limit = partTargetSec < 1 ? Math.ceil(3 / partTargetSec) : 3
    return ahead > limit ? 'beyond' : 'future'
  }

  get position(): PlaylistPosition {
    const mediaSequence = this.open - 1
    const parts = this.partsOf(mediaSequence)
    const nextParts = this.partsOf(this.open)
    const { partTargetSec, published } = this
    const hint = `p${published.length}.ts`
    return { mediaSequence, parts, nextParts, partTargetSec, hint, skippable: false }
  }
}

type Command =
  | { readonly type: 'wait'; readonly ahead: number; readonly part: number | undefined }
  | { readonly type: 'leave'; readonly index: number }
  | { readonly type: 'part' | 'segment' | 'hinted' | 'end' | 'turn' }

const ahead = fc.integer({ min: -3, max: 4 })
const part = fc.option(fc.oneof(fc.nat(4), fc.nat(20)), { nil: undefined })
const simple = (type: 'part' | 'segment' | 'hinted' | 'end' | 'turn') => fc.constant({ type })
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 8, arbitrary: simple('part') },
  { weight: 3, arbitrary: simple('segment') },
  { weight: 8, arbitrary: fc.record({ type: fc.constant('wait' as const), ahead, part }) },
  { weight: 2, arbitrary: simple('hinted') },
  { weight: 5, arbitrary: fc.record({ type: fc.constant('leave' as const), index: fc.nat(5) }) },
  { weight: 5, arbitrary: simple('turn') },
  { weight: 1, arbitrary: simple('end') },
)

t.test('availability and waits are those of a naive model, for any directives', async (t) => {
  const seen = new Map<string, number>()
  const count = (key: string) => seen.set(key, (seen.get(key) ?? 0) + 1)
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(0.2, 0.34, 0.9, 1),
      fc.array(command, { maxLength: 60 }),
      async (partTargetSec, commands) => {
        const { files } = setUp({ maxBytes: 1e6, maxWaiters: MAX_WAITERS })
        const model = new NaivePlaylist(partTargetSec)
        const waits: {
          readonly watched: Watched
          readonly expect: () => string
          expected: Outcome
        }[] = []
        const wait = (name: string, directives: DeliveryDirectives, expect: () => string) => {
          const waiting = waits.filter(({ expected }) => expected === 'waits').length
          const mayWait = expect() === 'future' && waiting < MAX_WAITERS
          const watched = watch(files, name, directives)
          waits.push({ watched, expect, expected: mayWait ? 'waits' : 'does not wait' })
        }
        const publish = () => files.replace('playlist.m3u8', () => playlist('1'), model.position)
        publish()
        for (const each of [...commands, { type: 'turn' } as const]) {
          if (each.type === 'part' && !model.ended) {
            const mediaSequence = model.open
            const uri = `p${model.published.length}.ts`
            files.putPart(uri, segment(uri, 10), `${mediaSequence}.ts`)
            model.published.push({ mediaSequence, index: model.partsOf(mediaSequence) })
            publish()
          } else if (each.type === 'segment' && !model.ended) {
            files.put(`${model.open}.ts`, segment('s', 10), 0)
            model.completeSegments++
            publish()
          } else if (each.type === 'wait') {
            const mediaSequence = model.open + each.ahead
            const directives = { mediaSequence, part: each.part }
            const expect = () => model.availability(mediaSequence, each.part)
            const availability = files.availability('playlist.m3u8', directives)
            deepStrictEqual(availability, expect(), JSON.stringify([directives, model]))
            count(availability)
            wait('playlist.m3u8', directives, expect)
          } else if (each.type === 'hinted') {
            const serial = model.published.length
            const expect = () => {
              if (model.published.length > serial) return 'current'
              return model.ended ? 'unknown' : 'future'
            }
            deepStrictEqual(files.availability(`p${serial}.ts`), expect())
            wait(`p${serial}.ts`, {}, expect)
          } else if (each.type === 'leave') {
            const leaving = waits[each.index]
            leaving?.watched.leave()
            if (leaving?.expected === 'waits') leaving.expected = 'has left'
          } else if (each.type === 'end') {
            files.end()
            model.ended = true
          }
          for (const each of waits) {
            if (each.expected === 'waits' && each.expect() !== 'future') each.expected = 'over'
          }
          if (each.type === 'turn') {
            await nextTurn()
            deepStrictEqual(
              waits.map(({ watched }) => watched.outcome),
              waits.map(({ expected }) => expected),
            )
            const waiting = waits.filter(({ expected }) => expected === 'waits').length
            deepStrictEqual(files.waiters, waiting)
          }
        }
        for (const { watched } of waits) count(watched.outcome)
      },
    ),
    { numRuns: 1000 },
  )
  t.comment(JSON.stringify([...seen]))
  const states = ['current', 'future', 'beyond', 'waits', 'over', 'does not wait', 'has left']
  for (const state of states) t.ok(seen.get(state), state)
})

t.test('a loan that is ended twice ends once', async (t) => {
  const cache = new SegmentCache({ maxBytes: 1e6 })
  const files = new FileStore({ cache, owner: OWNER })
  const slab = cache.slabs.take(slabBytesFor(1))
  files.put(
    '1.ts',
    createStreamFile('segment', { chunks: [slab], version: '1', targetDurationSec: 2 }),
    0,
  )
  const loan = files.lend('1.ts')!
  loan.end!()
  loan.end!()
  t.not(cache.slabs.take(slabBytesFor(1)), slab, 'the cache has it')
  files.discard()
  t.equal(cache.slabs.freeBytes, slab.length)
})
