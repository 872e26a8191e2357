import t from 'tap'
import {
  applyChange,
  parseManifest,
  type ManifestRow,
  type StreamManifest,
} from '../../src/hls/manifest.ts'

function row(mediaSequence: number, changes: Partial<ManifestRow> = {}): ManifestRow {
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

const MANIFEST: StreamManifest = {
  media: { segmentSec: 2, playlistSegments: 6, partSec: 0.2 },
  targets: { targetSec: 2, partTargetSec: 0.208 },
  free: { media: 13, discontinuity: 4 },
  listedFrom: 11,
  renditions: [{ name: 'main', listed: true }],
  dateRanges: [],
  rows: [row(10), row(11), row(12)],
}

const numbers = (manifest: StreamManifest | undefined) =>
  manifest?.rows.map(({ mediaSequence }) => mediaSequence)

t.test('reads what it has written, in any order of the rows', async (t) => {
  const text = JSON.stringify({ ...MANIFEST, rows: MANIFEST.rows.toReversed() })
  t.strictSame(parseManifest(JSON.parse(text)), MANIFEST)
})

t.test('reads renditions of both formats with their init segments', async (t) => {
  const manifest: StreamManifest = {
    ...MANIFEST,
    media: { ...MANIFEST.media, formats: ['ts', 'cmaf'] },
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
  t.strictSame(parseManifest(JSON.parse(JSON.stringify(manifest))), manifest)
})

t.test('refuses values of another form', async (t) => {
  const [segment] = row(12).segments
  const inSegment = (changes: object) => ({
    ...MANIFEST,
    rows: [{ ...row(12), segments: [{ ...segment, ...changes }] }],
  })
  const values = [
    undefined,
    'text',
    {},
    { ...MANIFEST, free: { media: -1, discontinuity: 0 } },
    { ...MANIFEST, targets: { targetSec: 2.5 } },
    { ...MANIFEST, rows: Array.from({ length: 2049 }, (_, index) => row(index)) },
    { ...MANIFEST, rows: [row(12, { programDateTimeMs: Infinity })] },
    { ...MANIFEST, rows: [row(12, { programDateTimeMs: 1e16 })] },
    inSegment({ uri: 'e-12.ts\n#EXT-X-ENDLIST' }),
    inSegment({ uri: '../other/e-12.ts' }),
    inSegment({ uri: 'https://media.example/e-12.ts' }),
    inSegment({ uri: 'e-12.mp4' }),
    inSegment({ map: 'e-v1-12.m4s' }),
    inSegment({ map: 'e-v1-12.mp4"' }),
    inSegment({ durationSec: 0 }),
    inSegment({ rendition: 'constructor' }),
    inSegment({ rendition: 'cmaf-main' }),
    { ...MANIFEST, media: { ...MANIFEST.media, formats: [] } },
    { ...MANIFEST, media: { ...MANIFEST.media, formats: ['webm'] } },
    { ...MANIFEST, dateRanges: [{ id: 'a"b', startMs: 0 }] },
  ]
  for (const value of values) t.equal(parseManifest(value), undefined, JSON.stringify(value))
})

t.test('keeps the newest rows that lead up to the free numbers', async (t) => {
  const rowsOf = (...rows: ManifestRow[]) => numbers(parseManifest({ ...MANIFEST, rows }))
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

t.test('a change adds rows, replaces rows and removes the oldest', async (t) => {
  const { rows, ...head } = MANIFEST
  const first = applyChange(undefined, { head, rows, oldest: 10 })
  t.same(first, MANIFEST)
  const open = row(12, { durationSec: undefined })
  const changed = applyChange(first, { head, rows: [open, row(13)], oldest: 11 })
  t.same(numbers(changed), [11, 12, 13])
  t.equal(changed.rows[1], open)
})
