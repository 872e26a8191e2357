import { deepStrictEqual } from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import * as fc from 'fast-check'
import t from 'tap'
import { FileStore } from '../../../src/hls/store/file-store.ts'
import { slabBytesFor } from '../../../src/mpegts/mux/slab-pool.ts'
import type { SegmentOwner } from '../../../src/hls/store/holding.ts'
import { SegmentCache } from '../../../src/hls/store/segment-cache.ts'
import { createStreamFile, type StreamFile } from '../../../src/hls/store/stream-file.ts'

const OWNER: SegmentOwner = {
  windowSize: { minBytes: 0, wantedBytes: 0 },
  shrink: () => false,
  drop: () => {},
}

function setUp({ maxBytes = 1000, maxWaiters = 1000 } = {}) {
  const cache = new SegmentCache({ maxBytes })
  const files = new FileStore({ cache, owner: OWNER, maxWaiters })
  const never = new AbortController().signal
  return { cache, files, never }
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
type Outcome = { readonly state: string; readonly version?: string | undefined }

function watch(wait: Promise<StreamFile | undefined>): { outcome: Outcome } {
  const watched: { outcome: Outcome } = { outcome: { state: 'waits' } }
  wait.then(
    (file) => (watched.outcome = { state: 'resolved', version: file?.version }),
    (error: Error) => (watched.outcome = { state: error.name }),
  )
  return watched
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
    const { files, never } = setUp()
    const render = (version: string, text: string, targetDurationSec = 2) =>
      files.replace('master.m3u8', () => {
        const chunks = [Buffer.from(text)]
        return createStreamFile('multivariant-playlist', { chunks, version, targetDurationSec })
      })
    render('1', 'a')
    const file = files.get('master.m3u8')
    render('2', 'a')
    t.equal(files.get('master.m3u8'), file, 'the same file')
    const waiting = watch(files.wait('master.m3u8', { version: '1', signal: never }))
    render('3', 'never read')
    render('4', 'a')
    await nextTurn()
    t.match(waiting.outcome, { state: 'waits' }, 'no news for a reader')
    render('5', 'b')
    await nextTurn()
    t.match(waiting.outcome, { version: '5' })
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

t.test('a wait ends at once if the file is newer than the known version', async (t) => {
  const { files, never } = setUp()
  files.replace('playlist.m3u8', () => playlist('2'))
  t.match(await files.wait('playlist.m3u8', { signal: never }), { version: '2' })
  t.match(await files.wait('playlist.m3u8', { version: '1', signal: never }), { version: '2' })
})

t.test('a wait ends when the file appears, or when its version changes', async (t) => {
  const { files, never } = setUp()
  files.replace('playlist.m3u8', () => playlist('1'))
  const next = watch(files.wait('playlist.m3u8', { version: '1', signal: never }))
  const hinted = watch(files.wait('a.ts', { signal: never }))
  files.replace('playlist.m3u8', () => playlist('1'))
  files.replace('other.m3u8', () => playlist('2'))
  await nextTurn()
  t.match([next.outcome, hinted.outcome], [{ state: 'waits' }, { state: 'waits' }])
  files.replace('playlist.m3u8', () => playlist('2'))
  await nextTurn()
  t.match([next.outcome, hinted.outcome], [{ version: '2' }, { state: 'waits' }])
  files.put('a.ts', segment('a'), 0)
  await nextTurn()
  t.match(hinted.outcome, { version: 'a' })
})

t.test('the changes of one command appear together', async (t) => {
  const { files, never } = setUp()
  const listed: string[] = []
  const readBoth = async () => {
    const file = await files.wait('playlist.m3u8', { signal: never })
    return [file?.version, files.get('master.m3u8')?.version]
  }
  const seen = readBoth()
  for (const uri of ['a', 'b']) {
    listed.push(uri)
    files.replace('playlist.m3u8', () => playlist(listed.join()))
  }
  files.replace('master.m3u8', () => playlist('m'))
  t.strictSame(await seen, ['a,b', 'm'])
})

t.test('a wait rejects with the reason of its signal, without effect on other waits', async (t) => {
  const { files, never } = setUp()
  const controller = new AbortController()
  const aborted = files.wait('a.ts', { signal: controller.signal })
  const other = watch(files.wait('a.ts', { signal: never }))
  controller.abort(new Error('the viewer left'))
  await t.rejects(aborted, /the viewer left/)
  await t.rejects(files.wait('a.ts', { signal: controller.signal }), /the viewer left/)
  files.put('a.ts', segment('a'), 0)
  await nextTurn()
  t.match(other.outcome, { version: 'a' })
})

t.test('the end of the stream releases all waits, with the file as it is then', async (t) => {
  const { files, never } = setUp()
  files.replace('playlist.m3u8', () => playlist('1'))
  const waits = [
    files.wait('playlist.m3u8', { version: '1', signal: never }),
    files.wait('a.ts', { signal: never }),
  ]
  files.replace('playlist.m3u8', () => playlist('with ENDLIST'))
  files.end()
  t.match(await Promise.all(waits), [{ version: 'with ENDLIST' }, undefined])
  t.match(await files.wait('playlist.m3u8', { version: 'with ENDLIST', signal: never }), {
    version: 'with ENDLIST',
  })
  const discarded = setUp()
  const wait = discarded.files.wait('a.ts', { signal: never })
  discarded.files.discard()
  t.equal(await wait, undefined)
})

t.test('a wait beyond the bound gets the file as it is', async (t) => {
  const { files, never } = setUp({ maxWaiters: 2 })
  files.replace('playlist.m3u8', () => playlist('1'))
  const wait = () => watch(files.wait('playlist.m3u8', { version: '1', signal: never }))
  const waits = [wait(), wait(), wait()]
  await nextTurn()
  t.match(
    waits.map(({ outcome }) => outcome.state),
    ['waits', 'waits', 'resolved'],
  )
  files.replace('playlist.m3u8', () => playlist('2'))
  await nextTurn()
  t.match(waits[1]?.outcome, { version: '2' })
  const next = watch(files.wait('playlist.m3u8', { version: '2', signal: never }))
  await nextTurn()
  t.match(next.outcome, { state: 'waits' }, 'those that are released make room')
})

const NAMES = ['a', 'b', 'c']
const VERSIONS = ['1', '2', '3']
const MAX_WAITERS = 5

type Command =
  | { readonly type: 'replace' | 'put' | 'wait'; readonly name: string; readonly version: string }
  | { readonly type: 'abort'; readonly index: number }
  | { readonly type: 'end' | 'turn' }

const name = fc.constantFrom(...NAMES)
const version = fc.constantFrom(...VERSIONS)
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant('replace' as const), name, version }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('put' as const), name, version }) },
  { weight: 6, arbitrary: fc.record({ type: fc.constant('wait' as const), name, version }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('abort' as const), index: fc.nat(9) }) },
  { weight: 4, arbitrary: fc.constant({ type: 'turn' as const }) },
  { weight: 1, arbitrary: fc.constant({ type: 'end' as const }) },
)

/** Model of the store: one list of waits, checked at the end of each turn. */
class NaiveStore {
  readonly waits: { name: string; version: string; outcome: Outcome; aborted: boolean }[] = []
  readonly #versions = new Map<string, string>()
  #ended = false

  change(file: string, newVersion: string): void {
    this.#versions.set(file, newVersion)
  }

  end(): void {
    this.#ended = true
  }

  wait(file: string, known: string): void {
    const pending = this.waits.filter(({ outcome }) => outcome.state === 'waits').length
    const current = this.#versions.get(file)
    const isNews = current !== undefined && current !== known
    const outcome =
      isNews || this.#ended || pending >= MAX_WAITERS
        ? { state: 'resolved', version: current }
        : { state: 'waits' }
    this.waits.push({ name: file, version: known, outcome, aborted: false })
  }

  abort(index: number): void {
    const wait = this.waits[index]
    if (wait?.outcome.state === 'waits') wait.aborted = true
  }

  turn(): void {
    for (const wait of this.waits) {
      if (wait.outcome.state !== 'waits') continue
      const current = this.#versions.get(wait.name)
      const isNews = current !== undefined && current !== wait.version
      if (wait.aborted) wait.outcome = { state: 'AbortError' }
      else if (isNews || this.#ended) wait.outcome = { state: 'resolved', version: current }
    }
  }
}

t.test('waits end as in a naive model, for any commands in a turn', async (t) => {
  const seen = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(fc.array(command, { maxLength: 40 }), async (commands) => {
      const { files } = setUp({ maxBytes: 1e6, maxWaiters: MAX_WAITERS })
      const model = new NaiveStore()
      const waits: { controller: AbortController; watched: { outcome: Outcome } }[] = []
      let segments = 0
      for (const each of [...commands, { type: 'turn' } as const]) {
        if (each.type === 'replace') {
          files.replace(`${each.name}.m3u8`, () => playlist(each.version))
          model.change(`${each.name}.m3u8`, each.version)
        } else if (each.type === 'put') {
          // A segment is put once; the one after the newest is what players wait for.
          files.put(`${segments}.ts`, segment(each.version), 0)
          model.change(`${segments++}.ts`, each.version)
        } else if (each.type === 'wait') {
          const file = each.name === 'c' ? `${segments}.ts` : `${each.name}.m3u8`
          const controller = new AbortController()
          const { signal } = controller
          const watched = watch(files.wait(file, { version: each.version, signal }))
          waits.push({ controller, watched })
          model.wait(file, each.version)
        } else if (each.type === 'abort') {
          waits[each.index]?.controller.abort()
          model.abort(each.index)
        } else if (each.type === 'end') {
          files.end()
          model.end()
        } else {
          await nextTurn()
          model.turn()
          const outcomes = waits.map(({ watched }) => watched.outcome)
          deepStrictEqual(
            outcomes,
            model.waits.map(({ outcome }) => outcome),
          )
        }
      }
      for (const { watched } of waits) {
        const { state } = watched.outcome
        seen.set(state, (seen.get(state) ?? 0) + 1)
      }
    }),
    { numRuns: 300 },
  )
  t.comment(JSON.stringify([...seen]))
  for (const state of ['waits', 'resolved', 'AbortError']) t.ok(seen.get(state), state)
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
