/**
 * Archives of streams that are taken over again and again, in a store that fails at random.
 */
import * as fc from 'fast-check'
import t from 'tap'
import { rounds } from '../support/soak.ts'
import { setUp } from './simulated-archive.ts'

const phases = fc.array(
  fc.record({
    sec: fc.integer({ min: 4, max: 25 }),
    failures: fc.constantFrom<number[]>(0, 0, 0.2, 0.5),
    isSilent: fc.boolean(),
    isTakenOver: fc.boolean(),
  }),
  { minLength: 2, maxLength: 5 },
)

/** Size of the playlists of some 12 segments, at which the run goes on in another folder. */
const fullBytes = fc.constantFrom(3000, 1024 * 1024)

type Phase = typeof phases extends fc.Arbitrary<(infer One)[]> ? One : never

const phase = (sec: number, failures: number, isTakenOver = false): Phase => ({
  ...{ sec, failures, isTakenOver, isSilent: false },
})

/**
 * What once failed: the index of a folder was stored before that of the one before, which names it; and one of the last
 * playlists had been stored, and the other not, when the process ended.
 */
const FAILED: [Phase[], number, number][] = [
  [
    [phase(7, 0), phase(19, 0.5, true), phase(20, 0), phase(10, 0.2), phase(25, 0.5, true)],
    648399837,
    3000,
  ],
  [
    [phase(12, 0.5), phase(18, 0.5), phase(6, 0.5, true), phase(20, 0), phase(4, 0, true)],
    -781305783,
    3000,
  ],
  [[phase(25, 0.2), phase(6, 0, true), phase(15, 0)], -41217477, 3000],
  [[phase(16, 0), phase(17, 0.5), phase(22, 0.5), phase(21, 0.5, true)], -270702718, 3000],
]

const bodyOf = (playlist: string) =>
  playlist.slice(playlist.indexOf('#EXT-X-MAP')).replace('#EXT-X-ENDLIST\n', '')

t.test('playlists only grow, and name what is stored', async (t) => {
  const property = fc.asyncProperty(
    phases,
    fc.integer(),
    fullBytes,
    async (all, seed, fullBytes) => {
      const { begin, connect, run, store, events, takeOver } = setUp({ fullBytes })
      let { stream } = begin()
      let state = seed >>> 0
      const random = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32
      const versions = new Map<string, string>()
      const put = store.put.bind(store)
      const problems: string[] = []
      store.put = async (object, options) => {
        const etag = await put(object, options)
        const { key } = object
        if (!key.includes('cmaf-')) return etag
        const text = store.files.get(key)!.toString()
        const before = versions.get(key)
        if (before !== undefined && !bodyOf(text).startsWith(bodyOf(before)))
          problems.push(`${key} has changed`)
        const [target] = /TARGETDURATION:.*/.exec(text) ?? []
        if (before !== undefined && !before.includes(`${target}\n`)) problems.push('other target')
        versions.set(key, text)
        return etag
      }
      let encoder = connect(stream)
      for (const [index, { sec, failures, isSilent, isTakenOver }] of all.entries()) {
        store.fails = () => random() < failures / 2
        // A process that is killed before it hears that it has begun or completed an archive tells nobody.
        store.loses = (key) =>
          random() < failures / 2 &&
          !key.endsWith('master.m3u8') &&
          !(/m3u8|json/.test(key) && /ENDLIST|COMPLETE/.test(store.files.get(key)!.toString()))
        if (isTakenOver && index > 0) {
          encoder.closed = true
          stream = takeOver(stream, { epoch: `t${index}` }).stream
          encoder = connect(stream)
        }
        encoder.isPaused = isSilent
        await run(sec)
        encoder.isPaused = false
      }
      store.fails = () => false
      store.loses = () => false
      await run(5)
      stream.stop('api')
      const isOpen = () =>
        store.folders.some(
          (folder) => JSON.parse(store.text('index.json', folder)).state !== 'COMPLETE',
        )
      for (let tries = 0; tries < 12 && isOpen(); tries++) await run(100)
      t.same(problems, [])
      t.same(store.overwritten, [])
      const { folders } = store
      for (const name of ['cmaf-video-1.m3u8', 'cmaf-audio-1.m3u8']) {
        const numbers: number[] = []
        for (const folder of folders) {
          const text = store.text(name, folder)
          t.match(text, '#EXT-X-ENDLIST')
          let isGap = false
          for (const line of text.split('\n')) {
            if (line === '#EXT-X-GAP') isGap = true
            if (line === '' || line.startsWith('#')) continue
            numbers.push(Number(/(\d+)\.m4s$/.exec(line)![1]))
            t.ok(isGap || store.files.has(`${folder}/${line}`), `${line} is stored`)
            isGap = false
          }
          t.match(JSON.parse(store.text('index.json', folder)), { state: 'COMPLETE' })
        }
        t.same(
          numbers,
          numbers.map((_, index) => numbers[0]! + index),
          'no number is missing',
        )
      }
      t.equal(events.filter(({ type }) => type === 'started').length, folders.length)
      t.equal(events.filter(({ type }) => type === 'completed').length, folders.length)
      // So that the seed is reported.
      return t.passing()
    },
  )
  await fc.assert(property, { numRuns: rounds(5, 100), endOnFailure: true, examples: FAILED })
})
