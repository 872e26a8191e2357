import t from 'tap'
import {
  parseCheckpoint,
  type CheckpointRow,
  type StreamCheckpoint,
} from '../../../src/hls/playlist/checkpoint.ts'

function row(mediaSequence: number, changes: Partial<CheckpointRow> = {}): CheckpointRow {
  const uri = `e-${mediaSequence}.ts`
  return {
    mediaSequence,
    discontinuitySequence: 3,
    discontinuity: false,
    programDateTimeMs: 1e12 + mediaSequence * 2000,
    durationSec: 2,
    segments: [{ rendition: 'main', uri, sizeBytes: 188, independent: true, gap: false }],
    ...changes,
  }
}

const CHECKPOINT: StreamCheckpoint = {
  media: { segmentSec: 2, playlistSegments: 6, partSec: 0.2 },
  targets: { targetSec: 2, partTargetSec: 0.208 },
  free: { media: 13, discontinuity: 4 },
  listedFrom: 11,
  renditions: [{ name: 'main', listed: true }],
  dateRanges: [],
  rows: [row(10), row(11), row(12)],
}

const numbers = (checkpoint: StreamCheckpoint | undefined) =>
  checkpoint?.rows.map(({ mediaSequence }) => mediaSequence)

t.test('reads what it has written, in any order of the rows', async (t) => {
  const text = JSON.stringify({ ...CHECKPOINT, rows: CHECKPOINT.rows.toReversed() })
  t.strictSame(parseCheckpoint(JSON.parse(text)), CHECKPOINT)
})

t.test('reads renditions of both formats with their init segments', async (t) => {
  const checkpoint: StreamCheckpoint = {
    ...CHECKPOINT,
    media: { ...CHECKPOINT.media, formats: ['ts', 'cmaf'] },
    renditions: [
      { name: 'main', listed: true },
      { name: 'cmaf-video-1', listed: true },
      { name: 'cmaf-audio-1', listed: true },
    ],
    rows: [10, 11, 12].map((number) => {
      const main = row(number).segments[0]!
      const of = (rendition: 'cmaf-video-1' | 'cmaf-audio-1', tag: string) => ({
        ...main,
        rendition,
        uri: `e-${tag}-${number}.m4s`,
        map: `e-${tag}-0f1e2d3c4b5a.mp4`,
        durationSec: 1.98934,
      })
      return row(number, { segments: [main, of('cmaf-video-1', 'v1'), of('cmaf-audio-1', 'a1')] })
    }),
  }
  t.strictSame(parseCheckpoint(JSON.parse(JSON.stringify(checkpoint))), checkpoint)
})

t.test('refuses values of another form', async (t) => {
  const [segment] = row(12).segments
  const inSegment = (changes: object) => ({
    ...CHECKPOINT,
    rows: [{ ...row(12), segments: [{ ...segment, ...changes }] }],
  })
  const values = [
    undefined,
    'text',
    {},
    { ...CHECKPOINT, free: { media: -1, discontinuity: 0 } },
    { ...CHECKPOINT, targets: { targetSec: 2.5 } },
    { ...CHECKPOINT, rows: Array.from({ length: 2049 }, (_, index) => row(index)) },
    { ...CHECKPOINT, rows: [row(12, { programDateTimeMs: Infinity })] },
    { ...CHECKPOINT, rows: [row(12, { programDateTimeMs: 1e16 })] },
    inSegment({ uri: 'e-12.ts\n#EXT-X-ENDLIST' }),
    inSegment({ uri: '../other/e-12.ts' }),
    inSegment({ uri: 'https://media.example/e-12.ts' }),
    inSegment({ uri: 'e-12.mp4' }),
    inSegment({ map: 'e-v1-12.m4s' }),
    inSegment({ map: 'e-v1-12.mp4"' }),
    inSegment({ durationSec: 0 }),
    inSegment({ rendition: 'constructor' }),
    inSegment({ rendition: 'cmaf-main' }),
    { ...CHECKPOINT, media: { ...CHECKPOINT.media, formats: [] } },
    { ...CHECKPOINT, media: { ...CHECKPOINT.media, formats: ['webm'] } },
    { ...CHECKPOINT, dateRanges: [{ id: 'a"b', startMs: 0 }] },
  ]
  for (const value of values) t.equal(parseCheckpoint(value), undefined, JSON.stringify(value))
})

t.test('keeps the newest rows that lead up to the free numbers', async (t) => {
  const rowsOf = (...rows: CheckpointRow[]) => numbers(parseCheckpoint({ ...CHECKPOINT, rows }))
  t.same(rowsOf(row(10), row(12)), [12], 'a row is missing')
  t.same(rowsOf(row(10), row(11)), [], 'the newest row is missing')
  t.same(rowsOf(row(10), row(11, { durationSec: 2.6 }), row(12)), [12], 'above TARGETDURATION')
  t.same(rowsOf(row(11, { discontinuitySequence: 2 }), row(12)), [12], 'no DISCONTINUITY between')
  t.same(
    rowsOf(row(11, { discontinuitySequence: 2 }), row(12, { discontinuity: true })),
    [11, 12],
    'a DISCONTINUITY between',
  )
  t.same(rowsOf(row(11, { programDateTimeMs: 2e12 }), row(12)), [12], 'dates go back')
  t.same(rowsOf(row(11), row(12, { durationSec: undefined })), [11, 12], 'an open segment')
})
