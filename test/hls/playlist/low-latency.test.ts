import { deepStrictEqual } from 'node:assert/strict'
import * as fc from 'fast-check'
import t from 'tap'
import { parseMediaPlaylist } from '../../../src/check/playlist/media-playlist.ts'
import { playlistUri, type RenditionName } from '../../../src/hls/file-names.ts'
import { LivePresentation } from '../../../src/hls/playlist/live-presentation.ts'
import { SegmentCache } from '../../../src/hls/store/segment-cache.ts'
import { parseWithHlsJs } from '../../support/hls-js-playlist.ts'
import { compareEdges } from '../../support/house-rules.ts'
import { parseM3u8 } from '../../support/m3u8.ts'
import { mergeDelta } from '../../support/merge-delta.ts'
import { StreamJudge } from '../../support/stream-judge.ts'
import { PartSource } from './part-source.ts'

const PART_TARGET_SEC = 0.208

const OPTIONS = { epoch: 'e', formats: ['cmaf'] } as const

interface SetUp {
  readonly renditions?: readonly RenditionName[]
  readonly playlistSegments?: number
  readonly maxBytes?: number
  readonly partTargetSec?: number
}

function setUp(options: SetUp = {}) {
  const { renditions = ['cmaf-video-1'], playlistSegments = 6, maxBytes = 1e9 } = options
  const { partTargetSec = PART_TARGET_SEC } = options
  const cache = new SegmentCache({ maxBytes })
  const presentation = new LivePresentation({ ...OPTIONS, cache, playlistSegments })
  const source = new PartSource(presentation, renditions)
  const { files } = presentation
  const read = (rendition: RenditionName = 'cmaf-video-1', skip = false) =>
    files.get(playlistUri(rendition), { skip })?.chunks.join('') ?? ''
  source.complete()
  presentation.setTarget(2, partTargetSec)
  source.complete()
  presentation.settle()
  return { cache, presentation, files, source, read }
}

const parse = (text: string, uri = 'cmaf-video-1.m3u8') =>
  parseMediaPlaylist(text, `https://media.example/${uri}`)

/** Lines with a tag, or with one of several. */
const linesOf = (text: string, ...tags: string[]) =>
  text.split('\n').filter((line) => tags.some((tag) => line.startsWith(`#EXT-X-${tag}`)))

t.test(
  'renders the tags of low latency (RFC 8216bis 4.4.3.7, 4.4.3.8, 4.4.4.9, 4.4.5)',
  async (t) => {
    const { source, read } = setUp({ renditions: ['cmaf-video-1', 'cmaf-audio-1'] })
    t.match(
      read(),
      /e-v1-1\.m4s\n#EXT-X-PROGRAM-DATE-TIME:.*\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI="e-v1-p0\.m4s"\n/,
    )
    source.part({ durationSec: 0.2 })
    source.part({ durationSec: 0.208, gaps: ['cmaf-video-1'] })
    source.complete()
    source.part()
    t.equal(
      read(),
      [
        '#EXTM3U',
        '#EXT-X-VERSION:6',
        '#EXT-X-TARGETDURATION:2',
        '#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=0.62403,HOLD-BACK=6',
        '#EXT-X-PART-INF:PART-TARGET=0.20801',
        '#EXT-X-MEDIA-SEQUENCE:0',
        '#EXT-X-DISCONTINUITY-SEQUENCE:0',
        '#EXT-X-INDEPENDENT-SEGMENTS',
        '#EXT-X-MAP:URI="e-v1-0.mp4"',
        '#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00.000Z',
        '#EXTINF:2.00000,',
        'e-v1-0.m4s',
        '#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:02.000Z',
        '#EXTINF:2.00000,',
        'e-v1-1.m4s',
        '#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:04.000Z',
        '#EXT-X-PART:DURATION=0.20001,URI="e-v1-p0.m4s",INDEPENDENT=YES',
        '#EXT-X-PART:DURATION=0.20801,URI="e-v1-p1.m4s",GAP=YES',
        '#EXTINF:0.40800,',
        'e-v1-2.m4s',
        '#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:04.408Z',
        '#EXT-X-PART:DURATION=0.20001,URI="e-v1-p2.m4s",INDEPENDENT=YES',
        '#EXT-X-PRELOAD-HINT:TYPE=PART,URI="e-v1-p3.m4s"',
        '#EXT-X-RENDITION-REPORT:URI="cmaf-audio-1.m3u8",LAST-MSN=3,LAST-PART=0',
        '',
      ].join('\n'),
    )
    t.match(
      read('cmaf-audio-1'),
      /PRELOAD-HINT:TYPE=PART,URI="e-a1-p3\.m4s"\n.*URI="cmaf-video-1\.m3u8"/,
    )
  },
)

t.test('without a part target the playlist has no tag of low latency', async (t) => {
  const cache = new SegmentCache({ maxBytes: 1e9 })
  const presentation = new LivePresentation({ ...OPTIONS, cache, playlistSegments: 20 })
  const source = new PartSource(presentation)
  presentation.setTarget(2)
  for (let index = 0; index < 20; index++) source.complete()
  const file = presentation.files.get('cmaf-video-1.m3u8', { skip: true })!
  t.equal(file.blocking, undefined)
  t.notMatch(file.chunks.join(''), /SERVER|PART|SKIP|HINT|REPORT/)
  t.equal(presentation.files.availability('cmaf-video-1.m3u8', { mediaSequence: 99 }), 'current')
})

t.test('no printed part is longer than PART-TARGET, which is rounded up', async (t) => {
  const target = (partTargetSec: number) => {
    const { source, read } = setUp({ partTargetSec })
    source.part({ durationSec: partTargetSec })
    const [control, inf, part] = linesOf(read(), 'SERVER', 'PART')
    const number = (line: string | undefined, name: string) =>
      Number(new RegExp(`${name}=([\\d.]+)`).exec(line ?? '')?.[1])
    t.ok(number(part, 'DURATION') <= number(inf, 'PART-TARGET'))
    t.ok(number(control, 'PART-HOLD-BACK') >= 3 * number(inf, 'PART-TARGET') - 1e-9)
    return number(inf, 'PART-TARGET')
  }
  t.same(
    [0.208, 10.4 / 30, 1 / 3, 0.9999999, 1].map(target),
    [0.20801, 0.34668, 0.33335, 1.00001, 1.00001],
  )
})

t.test('lists parts within three target durations of the end (RFC 8216bis 4.4.4.9)', async (t) => {
  const { source, read } = setUp({ playlistSegments: 10 })
  for (let index = 0; index < 8; index++) source.segment()
  const listed = () =>
    parse(read())
      .segments.filter(({ parts }) => parts.length > 0)
      .map(({ sequence }) => sequence)
  t.same(listed(), [7, 8, 9])
  source.part()
  t.same(listed(), [7, 8, 9, 10])
  for (let index = 0; index < 9; index++) source.part()
  t.same(listed(), [8, 9, 10], 'the first ends three target durations before the end')
})

t.test(
  'the first part of a timeline is not hinted, since its init segment is not known',
  async (t) => {
    const { source, presentation, read } = setUp()
    source.part()
    source.complete({ endsTimeline: true })
    t.match(read(), /\ne-v1-2\.m4s\n#EXT-X-DISCONTINUITY\n$/, 'as hls.js needs it (hls.js#7962)')
    source.part()
    t.match(
      read(),
      /\ne-v1-2\.m4s\n#EXT-X-DISCONTINUITY\n#EXT-X-PROGRAM.*\n#EXT-X-PART:.*\n#EXT-X-PRELOAD/,
    )
    source.complete({ endsTimeline: true })
    presentation.end()
    t.match(
      read(),
      /\ne-v1-2\.m4s\n#EXT-X-DISCONTINUITY\n#EXT-X-PROGRAM.*\n#EXT-X-PART:.*\n#EXTINF/,
    )
    t.match(read(), /\ne-v1-3\.m4s\n#EXT-X-ENDLIST\n$/, 'nothing follows the end')
  },
)

t.test('an ended playlist has no hint and no report (RFC 8216bis 6.2.5)', async (t) => {
  const { source, presentation, files, read } = setUp({
    renditions: ['cmaf-video-1', 'cmaf-audio-1'],
  })
  source.segment()
  t.match(files.get('cmaf-video-1.m3u8')?.blocking, { maxAgeSec: 12, maxWaitMs: 6000 })
  const control = linesOf(read(), 'SERVER-CONTROL', 'PART-INF')
  presentation.end()
  t.same(linesOf(read(), 'PRELOAD-HINT', 'RENDITION-REPORT'), [])
  t.same(linesOf(read(), 'SERVER-CONTROL', 'PART-INF'), control, 'which never change')
  t.equal(files.get('cmaf-video-1.m3u8')?.blocking, undefined)
  t.equal(files.availability(`e-v1-p${source.serial}.m4s`), 'unknown')
  t.equal(files.availability('cmaf-video-1.m3u8', { mediaSequence: 99 }), 'current')
})

t.test(
  'a delta update skips what lies before the Skip Boundary (RFC 8216bis 6.2.5.1)',
  async (t) => {
    const short = setUp({ playlistSegments: 6 })
    for (let index = 0; index < 20; index++) short.source.segment()
    t.equal(
      short.read('cmaf-video-1', true),
      short.read(),
      'never for a window within the boundary',
    )
    t.notMatch(short.read(), 'CAN-SKIP-UNTIL')

    const { source, read, files } = setUp({ playlistSegments: 20 })
    for (let index = 0; index < 4; index++) source.segment()
    t.match(read(), ',CAN-SKIP-UNTIL=12\n')
    t.equal(
      files.get('cmaf-video-1.m3u8', { skip: true }),
      files.get('cmaf-video-1.m3u8'),
      '6 segments',
    )
    source.segment()
    t.match(read('cmaf-video-1', true), '#EXT-X-SKIP:SKIPPED-SEGMENTS=1\n')
    for (let index = 0; index < 13; index++) source.segment()
    const [full, delta] = [read(), read('cmaf-video-1', true)]
    t.match(full, '#EXT-X-VERSION:6\n')
    t.match(
      delta,
      /#EXT-X-VERSION:9\n[^]*#EXT-X-SKIP:SKIPPED-SEGMENTS=14\n#EXT-X-MAP.*\n#EXT-X-PROGRAM.*\n#EXTINF.*\ne-v1-14.m4s/,
    )
    t.equal(mergeDelta(full, delta), full)
    t.same(parseM3u8(delta).complaints, [])
    const { playlistParsingError, skippedSegments, startSN, endSN } = parseWithHlsJs(delta)
    t.same(
      { playlistParsingError, skippedSegments, startSN, endSN },
      {
        ...{ playlistParsingError: null, skippedSegments: 14, startSN: 0, endSN: 19 },
      },
    )
  },
)

t.test('versions of a long playlist share the lines of old segments', async (t) => {
  const { source, presentation, files, read } = setUp({ playlistSegments: 300 })
  for (let index = 0; index < 300; index++) source.segment()
  const old = () => files.get('cmaf-video-1.m3u8')!.chunks[1]
  const before = old()
  t.ok(before!.length > 16_384)
  for (let part = 0; part < 9; part++) {
    source.part()
    t.equal(old(), before, 'the same buffer')
  }
  source.complete()
  t.not(old(), before)
  t.match(
    old()!.toString(),
    /^#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:06.000Z\n#EXTINF:2.00000,\ne-v1-3.m4s\n/,
  )
  const known = read()
  presentation.drop('e-v1-200.m4s')
  t.equal(read(), known.replace(/(?=.*\n.*\ne-v1-200\.m4s)/, '#EXT-X-GAP\n'))
  t.equal(mergeDelta(known, read('cmaf-video-1', true)), read())
})

t.test('a part is available for as long as its segment is listed', async (t) => {
  const { source, files, read } = setUp({ playlistSegments: 20 })
  for (let index = 0; index < 4; index++) source.segment()
  t.notOk(read().includes('"e-v1-p9.m4s"'), 'three segments of 2 s are behind it')
  for (let index = 0; index < 14; index++) source.segment()
  t.ok(read().includes('\ne-v1-2.m4s\n'))
  t.equal(files.availability('e-v1-p9.m4s'), 'current')
})

t.test('there is no delta update while a discontinuity is listed (hls.js#6949)', async (t) => {
  const { source, read } = setUp({ playlistSegments: 10 })
  for (let index = 0; index < 10; index++) source.segment()
  const isDelta = () => read('cmaf-video-1', true).includes('EXT-X-SKIP')
  t.ok(isDelta())
  source.segment(10, { endsTimeline: true })
  t.notOk(isDelta(), 'announced')
  source.part()
  t.notOk(isDelta(), 'in the segment that is not complete')
  for (let index = 0; index < 10; index++) {
    source.complete()
    t.notOk(isDelta(), 'in a listed segment')
    source.part()
  }
  for (let index = 0; index < 12; index++) source.segment()
  t.ok(isDelta())
})

t.test('a delta update does not skip a segment that became a gap', async (t) => {
  const { source, presentation, read } = setUp({ playlistSegments: 10 })
  for (let index = 0; index < 10; index++) source.segment()
  const known = read()
  t.match(read('cmaf-video-1', true), 'SKIPPED-SEGMENTS=4\n')
  presentation.drop('e-v1-4.m4s')
  t.match(read('cmaf-video-1', true), 'SKIPPED-SEGMENTS=2\n')
  t.equal(mergeDelta(known, read('cmaf-video-1', true)), read())
})

t.test('every playlist has a report of all others, also of one that begins later', async (t) => {
  const { source, read } = setUp({ renditions: ['cmaf-video-1', 'cmaf-video-2'] })
  source.segment()
  source.join('cmaf-audio-1')
  source.part()
  t.equal(read('cmaf-audio-1'), '', 'no playlist before the first segment')
  t.same(linesOf(read(), 'RENDITION'), [
    '#EXT-X-RENDITION-REPORT:URI="cmaf-video-2.m3u8",LAST-MSN=3,LAST-PART=0',
  ])
  source.complete()
  const renditions: RenditionName[] = ['cmaf-video-1', 'cmaf-video-2', 'cmaf-audio-1']
  t.same(compareEdges(renditions.map((name) => parse(read(name), playlistUri(name)))), [])
  for (const name of renditions) t.equal(linesOf(read(name), 'RENDITION').length, 2)
  t.match(read('cmaf-audio-1'), `URI="e-a1-p${source.serial}.m4s"`)
})

t.test('a reader that waits for another version gets the reports of its own release', async (t) => {
  const { source, files, read } = setUp({ renditions: ['cmaf-video-1', 'cmaf-audio-1'] })
  source.part()
  for (const lastPart of [1, 2]) {
    const { version: otherThan } = files.get('cmaf-video-1.m3u8')!
    let ends = 0
    files.wait('cmaf-video-1.m3u8', { otherThan }, () => ends++)
    source.part()
    t.equal(ends, 1)
    t.match(read(), `URI="cmaf-audio-1.m3u8",LAST-MSN=2,LAST-PART=${lastPart}\n`)
    t.not(files.get('cmaf-video-1.m3u8')!.version, otherThan)
  }
})

t.test('a part is served when it is listed, and awaited when it is hinted', async (t) => {
  const { source, files } = setUp({ renditions: ['cmaf-video-1', 'cmaf-audio-1'] })
  t.equal(files.availability('e-v1-p0.m4s'), 'future')
  t.equal(files.availability('e-a1-p0.m4s'), 'future', 'the serial of all renditions')
  t.equal(files.availability('e-v1-p1.m4s'), 'unknown')
  source.part({ gaps: ['cmaf-audio-1'] })
  t.equal(files.availability('e-v1-p0.m4s'), 'current')
  t.equal(files.availability('e-a1-p0.m4s'), 'unknown', 'a gap is never served')
  t.match(files.get('e-v1-p0.m4s'), {
    ...{ contentType: 'video/mp4', maxAgeSec: 12, immutable: true, version: 'e-v1-p0.m4s' },
  })
  t.same(files.get('e-v1-p0.m4s')?.chunks, [Buffer.alloc(188)])
  t.same(
    [2, 3, 4, 5].map((mediaSequence) => files.availability('cmaf-video-1.m3u8', { mediaSequence })),
    ['future', 'future', 'beyond', 'beyond'],
  )
  t.equal(files.availability('cmaf-video-1.m3u8', { mediaSequence: 2, part: 0 }), 'current')
  t.equal(files.availability('cmaf-video-1.m3u8', { mediaSequence: 2, part: 15 }), 'future')
  t.equal(files.availability('cmaf-video-1.m3u8', { mediaSequence: 2, part: 16 }), 'beyond')
})

type Command =
  | { readonly type: 'part'; readonly gaps: readonly RenditionName[] }
  | { readonly type: 'segment'; readonly parts: number; readonly sizeBytes: number }
  | { readonly type: 'complete' | 'timeline' | 'join' | 'drop' | 'rest' | 'end' }

const of = (type: 'complete' | 'timeline' | 'join' | 'drop' | 'rest' | 'end') =>
  fc.constant({ type })
const gaps = fc.subarray<RenditionName>(['cmaf-video-1', 'cmaf-video-2', 'cmaf-audio-1'])
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ type: fc.constant('part' as const), gaps }) },
  {
    weight: 12,
    arbitrary: fc.record({
      type: fc.constant('segment' as const),
      parts: fc.integer({ min: 1, max: 10 }),
      sizeBytes: fc.constantFrom(188, 188, 188, 1880),
    }),
  },
  { weight: 4, arbitrary: of('complete') },
  { weight: 1, arbitrary: of('timeline') },
  { weight: 1, arbitrary: of('join') },
  { weight: 1, arbitrary: of('drop') },
  { weight: 1, arbitrary: of('rest') },
)

/** Before its first media, a playlist has the version that it will need. */
const isOfGapsAlone = (complaint: string, text: string) =>
  complaint.startsWith('VERSION_TOO_HIGH') && !text.includes('#EXT-X-MAP')

t.test('any rows, gaps, discontinuities, shortages and drops keep the rules', async (t) => {
  const seen = {
    versions: 0,
    deltas: 0,
    gaps: 0,
    hints: 0,
    parts: 0,
    discontinuities: 0,
    skipped: 0,
  }
  fc.assert(
    fc.property(
      fc.record({
        playlistSegments: fc.constantFrom(6, 12, 20),
        maxBytes: fc.constantFrom(1e9, 400_000, 100_000),
        renditions: fc.constantFrom<readonly RenditionName[]>(
          ['cmaf-video-1'],
          ['cmaf-video-1', 'cmaf-video-2'],
        ),
      }),
      fc.array(command, { minLength: 20, maxLength: 60 }),
      (options, commands) => {
        const { source, presentation, files, read, cache } = setUp(options)
        // A drop makes a gap of a segment, which is a change.
        const judge = new StreamJudge({ lowLatency: true, except: ['SEGMENT_BECAME_GAP'] })
        const known = new Map<RenditionName, string[]>()
        const verify = () => {
          const published = source.renditions.filter((name) => read(name) !== '')
          const playlists = published.map((name) => parse(read(name), playlistUri(name)))
          const hasParts = playlists.every(({ segments }) => segments.at(-1)!.parts.length > 0)
          if (hasParts) deepStrictEqual(compareEdges(playlists), [])
          const multivariant = files.get('master.m3u8')?.chunks.join('')
          if (multivariant !== undefined) deepStrictEqual(judge.multivariant(multivariant), [])
          for (const [index, name] of published.entries()) {
            const playlist = playlists[index]!
            const { text } = playlist
            const complaints = [
              ...judge.playlist(playlistUri(name), text).filter((it) => !isOfGapsAlone(it, text)),
              ...parseM3u8(text).complaints,
            ]
            const hlsJs = parseWithHlsJs(text)
            deepStrictEqual([name, complaints, hlsJs.playlistParsingError], [name, [], null])
            const delta = read(name, true)
            const versions = known.get(name) ?? []
            known.set(name, [...versions.slice(-3), text])
            for (const each of versions) deepStrictEqual(mergeDelta(each, delta), text)
            for (const { parts, uri, gap } of playlist.segments) {
              if (uri !== undefined) {
                deepStrictEqual(files.availability(uri), gap ? 'unknown' : 'current', uri)
              }
              for (const part of parts) {
                const expected = part.gap ? 'unknown' : 'current'
                deepStrictEqual(files.availability(part.uri), expected, part.uri)
                seen.parts++
                if (part.gap) seen.gaps++
              }
            }
            const [hint] = playlist.hints
            if (hint !== undefined) {
              deepStrictEqual(files.availability(hint.uri), 'future', hint.uri)
              seen.hints++
            } else if (!playlist.ended) seen.discontinuities++
            seen.versions++
            if (delta !== text) seen.deltas++
            seen.skipped += parse(delta).skipped
          }
          deepStrictEqual(cache.stats.bytes <= cache.stats.maxBytes, true)
        }
        verify()
        for (const each of commands) {
          const isFull = source.openParts >= 10
          if (each.type === 'part' && !isFull) source.part({ gaps: each.gaps })
          else if (each.type === 'segment') {
            if (source.openParts > 0) source.complete()
            source.segment(each.parts, { sizeBytes: each.sizeBytes })
          } else if (
            source.openParts > 0 &&
            (each.type === 'complete' || each.type === 'timeline')
          ) {
            source.complete({ endsTimeline: each.type === 'timeline' })
          } else if (each.type === 'join' && source.openParts === 0) {
            if (!source.renditions.includes('cmaf-audio-1')) source.join('cmaf-audio-1')
          } else if (each.type === 'drop') {
            // The cache drops a listed segment of an idle stream for others.
            files.markIdle()
            const other = new LivePresentation({
              ...{ ...OPTIONS, cache, epoch: 'o', playlistSegments: 6 },
            })
            new PartSource(other, ['cmaf-video-1'], 'o').complete({ sizeBytes: 30_000 })
            other.discard()
          } else if (each.type === 'rest') files.markIdle()
          verify()
        }
        if (source.openParts > 0) source.complete()
        presentation.end()
        verify()
      },
    ),
    { numRuns: 30 },
  )
  t.comment(JSON.stringify(seen))
  for (const [what, count] of Object.entries(seen)) t.ok(count > 0, what)
})
