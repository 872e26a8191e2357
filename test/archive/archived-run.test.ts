import t from 'tap'
import { ArchivedRun } from '../../src/archive/archived-run.ts'
import type { CheckpointHead, CheckpointRow } from '../../src/hls/playlist/checkpoint.ts'
import type { CmafRendition } from '../../src/hls/file-names.ts'

const START_MS = Date.UTC(2026, 0, 1)

const HEAD: CheckpointHead = {
  media: { segmentSec: 1, playlistSegments: 6, formats: ['cmaf'] },
  targets: { targetSec: 1 },
  free: { media: 0, discontinuity: 0 },
  listedFrom: 0,
  renditions: [],
  dateRanges: [],
}

function rowOf(mediaSequence: number, renditions: readonly CmafRendition[]): CheckpointRow {
  return {
    mediaSequence,
    discontinuitySequence: 0,
    discontinuity: false,
    programDateTimeMs: START_MS + mediaSequence * 1000,
    durationSec: 1,
    segments: renditions.map((rendition) => ({
      ...{ rendition, sizeBytes: 1000, independent: true, gap: false },
      uri: `e-${rendition}-${mediaSequence}.m4s`,
      map: `e-${rendition}.mp4`,
    })),
  }
}

function createRun(isContinued = false) {
  const name = { streamId: 'studio', run: '20260101T000000Z-e', writer: 'e' }
  const options = { ...name, format: 'cmaf' } as const
  const run = new ArchivedRun({ ...options, captions: 'auto', isContinued })
  const push = (row: CheckpointRow) => {
    // All that is older has left the live playlists.
    const head = { ...HEAD, listedFrom: Math.max(0, row.mediaSequence - 5) }
    return run.push({ head, rows: [row] }).map(({ uri }) => uri)
  }
  return { run, push }
}

t.test('a rendition that begins behind a clip is not in it', async (t) => {
  const { run, push } = createRun()
  for (let number = 0; number < 40; number++) {
    const audios = number < 20 ? [] : (['cmaf-audio-1'] as const)
    for (const uri of push(rowOf(number, ['cmaf-video-1', ...audios]))) run.settle(uri, true)
  }
  const multivariant = `#EXTM3U
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="x",URI="cmaf-audio-1.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a",CLOSED-CAPTIONS=NONE
cmaf-video-1.m3u8
`
  const clipOf = (fromSec: number, untilSec: number) => {
    const ms = [fromSec, untilSec].map((sec) => START_MS + sec * 1000)
    const { documents } = run.clip(ms[0]!, ms[1]!, multivariant)!
    return documents
      .at(-1)!
      .chunks.join('')
      .replaceAll(/clip-\d+-\d+/g, 'clip')
  }
  t.equal(
    clipOf(5, 10),
    `#EXTM3U
#EXT-X-STREAM-INF:BANDWIDTH=1,CLOSED-CAPTIONS=NONE
clip-cmaf-video-1.m3u8
`,
  )
  t.equal(
    clipOf(15, 25),
    multivariant.replace('"cmaf-audio', '"clip-cmaf-audio').replace('\ncmaf', '\nclip-cmaf'),
  )
})

t.test('a store that is away for hours leaves an index of bounded size', async (t) => {
  const { run, push } = createRun()
  for (const uri of push(rowOf(0, ['cmaf-video-1', 'cmaf-audio-1']))) run.settle(uri, true)
  run.confirm(run.lastSequence)
  // The first ones wait, and what comes later has no room.
  const waiting = [1, 2, 3].flatMap((it) => push(rowOf(it, ['cmaf-video-1', 'cmaf-audio-1'])))
  for (let number = 4; number < 20_000; number++) {
    for (const uri of push(rowOf(number, ['cmaf-video-1', 'cmaf-audio-1']))) run.settle(uri, false)
    if (run.mustGiveUp) for (const uri of waiting.splice(0)) run.settle(uri, false)
  }
  t.ok(run.lastSequence > 19_000)
  const [index] = run.documents(false)
  t.ok(index!.chunks[0]!.length < 4_000_000, `${index!.chunks[0]!.length} bytes`)
})

t.test('init segments that no row needs any more are forgotten', async (t) => {
  const { run, push } = createRun()
  const asked: string[] = []
  for (let number = 0; number < 3000; number++) {
    const row = rowOf(number, ['cmaf-video-1'])
    const segments = row.segments.map((it) => ({ ...it, map: `e-${number % 1500}.mp4` }))
    const uris = push({ ...row, segments })
    asked.push(...uris)
    for (const uri of uris) run.settle(uri, true)
  }
  t.equal(asked.filter((uri) => uri === 'e-7.mp4').length, 2)
  t.equal(run.totals.gaps, 0)
  const { run: same, push: pushSame } = createRun()
  for (let number = 0; number < 300; number++)
    for (const uri of pushSame(rowOf(number, ['cmaf-video-1']))) {
      t.ok(number === 0 || !uri.endsWith('.mp4'), 'one in use is stored once')
      same.settle(uri, true)
    }
})
