/**
 * The rewind of a stream in simulated time.
 */
import t from 'tap'
import { parseMediaPlaylist } from '../../src/check/playlist/media-playlist.ts'
import type { LiveStream } from '../../src/stream/live-stream.ts'
import { mergeDelta } from '../support/merge-delta.ts'
import { rounds } from '../support/soak.ts'
import { StreamJudge } from '../support/stream-judge.ts'
import { FOLDER, setUp } from './simulated-archive.ts'

const VIDEO = 'dvr-cmaf-video-1.m3u8'
const AUDIO = 'dvr-cmaf-audio-1.m3u8'

function textOf(stream: LiveStream, name: string, skip = false): string {
  return stream.files.get(name, { skip })?.chunks.join('') ?? ''
}

/** Complete segments of a playlist. */
function segmentsOf(text: string) {
  return parseMediaPlaylist(text, VIDEO).segments.flatMap(({ uri, ...segment }) =>
    uri === undefined ? [] : [{ ...segment, uri }],
  )
}

/** File as a viewer gets it, who waits for it. */
async function read({ files }: LiveStream, name: string) {
  if (files.availability(name) === 'future')
    await new Promise<void>((resolve, reject) => {
      if (files.wait(name, {}, resolve) === undefined) reject(new Error('nobody may wait'))
    })
  const loan = files.lend(name)
  const bytes = loan && Buffer.concat(loan.file.chunks)
  loan?.end?.()
  return { file: loan?.file, bytes }
}

t.test('the window has what has left the live playlist, up to its edge', async (t) => {
  const { begin, connect, run, store } = setUp({ dvrSec: 3600 })
  const { stream } = begin()
  connect(stream)
  await run(60)
  const live = segmentsOf(textOf(stream, 'cmaf-video-1.m3u8'))
  const text = textOf(stream, VIDEO)
  const window = segmentsOf(text)
  t.equal(window.at(-1)!.uri, live.at(-1)!.uri)
  t.equal(window.at(-1)!.sequence, live.at(-1)!.sequence)
  t.equal(window[0]!.sequence, 0)
  t.ok(window.length > 50)
  t.match(text, '#EXT-X-SERVER-CONTROL:CAN-SKIP-UNTIL=')
  t.notMatch(text, /PART|PLAYLIST-TYPE|GAP/)
  t.match(textOf(stream, 'dvr.m3u8'), /URI="dvr-cmaf-audio-1.m3u8"[^]*\ndvr-cmaf-video-1.m3u8\n/)
  for (const name of [VIDEO, AUDIO]) {
    t.match(textOf(stream, name).match(/^#EXT-X-MAP/gm), { length: 1 })
    for (const { uri } of segmentsOf(textOf(stream, name))) {
      const { file, bytes } = await read(stream, uri)
      t.ok(bytes!.equals(store.files.get(`${FOLDER}/${uri}`)!), uri)
      t.match(file, { immutable: true, version: uri })
    }
  }
  t.equal(stream.files.availability('e-v1-999.m4s'), 'unknown')
  t.equal(stream.files.availability('f-v1-1.m4s'), 'unknown')
  t.same(
    store.asked.filter((key) => !store.files.has(key)),
    [],
    'no request for unknown names',
  )
})

t.test(
  'a segment is fetched once for all who ask, and told to be away without the store',
  async (t) => {
    const { begin, connect, run, store } = setUp({ dvrSec: 3600 })
    const { stream } = begin()
    connect(stream)
    await run(60)
    const { uri } = segmentsOf(textOf(stream, VIDEO))[0]!
    store.fails = () => true
    t.equal((await read(stream, uri)).bytes, undefined)
    t.equal(stream.files.availability(uri), 'unknown')
    t.match((stream.files as { refusal?(name: string): unknown }).refusal?.(uri), {
      code: 'ARCHIVE_UNAVAILABLE',
    })
    store.fails = () => false
    const next = uri.replace('-0.', '-1.')
    const asked = store.asked.length
    const all = await Promise.all(Array.from({ length: 20 }, () => read(stream, next)))
    for (const { bytes } of all) t.ok(bytes)
    await read(stream, next)
    t.equal(store.asked.length, asked + 1)
  },
)

t.test(
  'the edge does not wait for the store; what it lost is a gap behind the live window',
  async (t) => {
    const { begin, connect, run, store } = setUp({ dvrSec: 3600, maxBytes: 1024 * 1024 })
    const { stream } = begin()
    connect(stream)
    await run(20)
    store.fails = () => true
    await run(60)
    const live = segmentsOf(textOf(stream, 'cmaf-video-1.m3u8'))
    const segments = segmentsOf(textOf(stream, VIDEO))
    t.equal(segments.at(-1)!.uri, live.at(-1)!.uri)
    const gaps = new Set(segments.filter(({ gap }) => gap).map(({ uri }) => uri))
    t.ok(gaps.size > 10)
    for (const { uri } of live) t.notOk(gaps.has(uri), 'the live window')
    store.fails = () => false
    const waiting = segments.filter(({ uri, gap }) => !gap && !store.files.has(`${FOLDER}/${uri}`))
    const asked = store.asked.length
    for (const { uri } of waiting) t.ok((await read(stream, uri)).bytes, 'from memory')
    t.equal(store.asked.length, asked)
    await run(60)
    for (const { uri, gap } of segmentsOf(textOf(stream, VIDEO))) {
      if (gaps.has(uri)) t.ok(gap, 'it stays one')
      if (!gap) t.ok((await read(stream, uri)).bytes, uri)
    }
  },
)

t.test('the window moves, over discontinuities, and each delta update merges', async (t) => {
  const { begin, connect, run } = setUp({ dvrSec: 300 })
  const { stream } = begin()
  const encoder = connect(stream)
  await run(10)
  const judge = new StreamJudge()
  const known = new Map([VIDEO, AUDIO].map((name) => [name, textOf(stream, name)]))
  let skipped = 0
  for (let step = 0; step < rounds(160, 240); step++) {
    encoder.isPaused = step % 40 > 36
    await run(4)
    for (const name of [VIDEO, AUDIO]) {
      const [full, delta] = [textOf(stream, name), textOf(stream, name, true)]
      t.equal(mergeDelta(known.get(name)!, delta), full)
      known.set(name, full)
      t.same(judge.playlist(name, full), [])
      skipped = Math.max(skipped, Number(/SKIPPED-SEGMENTS=(\d+)/.exec(delta)?.[1] ?? 0))
    }
  }
  t.ok(skipped > 250)
  const [video, audio] = [VIDEO, AUDIO].map((name) => segmentsOf(textOf(stream, name)))
  const [first] = video!
  t.equal(first!.sequence % 192, 0, 'whole chunks leave')
  t.ok(first!.sequence > 0)
  t.equal(audio![0]!.sequence, first!.sequence)
  const whole = video!.reduce((sum, it) => sum + (it.durationSec ?? 0), 0)
  t.ok(whole > 300 && whole < 300 + 192 * 2, `${whole} s`)
  // Numbers in the names count from the start of the run.
  for (const { uri, sequence } of video!) t.match(uri, `-v1-${sequence}.m4s`)
  t.ok(video!.some(({ discontinuity }) => discontinuity))
  stream.stop('api')
  await run(1)
  t.match(textOf(stream, VIDEO), /#EXT-X-ENDLIST\n$/)
})

t.test('where players reach the store, they are sent there', async (t) => {
  const { begin, connect, run, store } = setUp({ dvrSec: 3600, publicUrl: 'https://cdn.test/live' })
  const { stream } = begin()
  connect(stream)
  await run(60)
  const segments = segmentsOf(textOf(stream, VIDEO))
  const { file } = await read(stream, segments[0]!.uri)
  t.match(file, { location: `https://cdn.test/live/${FOLDER}/${segments[0]!.uri}`, chunks: [] })
  t.equal((await read(stream, segments.at(-1)!.uri)).file?.location, undefined, 'the live window')
  t.equal((await read(stream, 'e-v1-999.m4s')).file, undefined)
  t.same(store.asked, [])
})

t.test('another process goes on with the window of the one before', async (t) => {
  const { begin, connect, run, takeOver } = setUp({ dvrSec: 3600 })
  const { stream } = begin()
  connect(stream)
  await run(250)
  const before = segmentsOf(textOf(stream, VIDEO))
  const { stream: next } = takeOver(stream)
  t.equal(textOf(stream, VIDEO), '')
  t.equal(next.files.availability(VIDEO), 'unknown', 'not before the archive knows the window')
  await run(4)
  connect(next)
  await run(30)
  const after = segmentsOf(textOf(next, VIDEO))
  const uris = after.map(({ uri }) => uri)
  t.same(
    uris.slice(0, before.length),
    before.map(({ uri }) => uri),
  )
  t.ok(uris.some((uri) => uri?.startsWith('f-')))
  for (const { uri, gap } of after) if (!gap) t.ok((await read(next, uri)).bytes, uri)
  t.equal(after.filter(({ gap }) => gap).length, 1)
})
