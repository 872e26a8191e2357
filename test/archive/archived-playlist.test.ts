import * as fc from 'fast-check'
import t from 'tap'
import { ArchivedPlaylist, type ArchivedSegment } from '../../src/archive/archived-playlist.ts'

const START_MS = Date.UTC(2026, 0, 1)

interface Listed {
  readonly uri: string
  readonly map: string | undefined
  readonly discontinuities: number
  readonly isGap: boolean
}

/** What a player makes of a playlist. */
function read(playlist: string): Listed[] {
  let map: string | undefined
  let discontinuities = Number(/DISCONTINUITY-SEQUENCE:(\d+)/.exec(playlist)![1])
  let isGap = false
  return playlist.split('\n').flatMap((line) => {
    map = /^#EXT-X-MAP:URI="(.*)"$/.exec(line)?.[1] ?? map
    if (line === '#EXT-X-DISCONTINUITY') discontinuities++
    if (line === '#EXT-X-GAP') isGap = true
    if (line === '' || line.startsWith('#')) return []
    const listed = { uri: line, map, discontinuities, isGap }
    isGap = false
    return [listed]
  })
}

const segments = fc
  .array(
    fc.record({
      discontinuity: fc.nat(20).map((it) => it === 0),
      gap: fc.nat(5).map((it) => it === 0),
      map: fc.nat(2).map((it) => `e-v1-${it}.mp4`),
      durationSec: fc.constantFrom(0.5, 1, 2),
      pauseSec: fc.nat(40).map((it) => (it === 0 ? 30 : 0)),
    }),
    { minLength: 1, maxLength: 700 },
  )
  .map((rows) => {
    let [programDateTimeMs, discontinuitySequence] = [START_MS, 3]
    return rows.map(({ pauseSec, ...row }, index): ArchivedSegment => {
      const mediaSequence = 100 + index
      const uri = `e-v1-${mediaSequence}.m4s`
      const segment = { ...row, mediaSequence, uri, independent: true, parts: [] }
      const dated = { ...segment, programDateTimeMs, discontinuitySequence }
      programDateTimeMs += (row.durationSec + pauseSec) * 1000
      if (row.discontinuity) discontinuitySequence++
      return dated
    })
  })

t.test(
  'a clip lists what overlaps it, as the whole programme does, also when restored',
  async (t) => {
    const property = fc.asyncProperty(
      segments,
      fc.nat(1_400_000),
      fc.nat(600_000),
      async (all, offsetMs, lengthMs) => {
        const appended = new ArchivedPlaylist('cmaf-video-1')
        for (const segment of all) appended.append(segment)
        const head = { targetSec: 2, dateRanges: [], ended: false }
        const whole = Buffer.concat([...appended.render(head)!]).toString()
        const restored = new ArchivedPlaylist('cmaf-video-1')
        t.equal(await restored.restore(whole), true)
        t.equal(Buffer.concat([...restored.render(head)!]).toString(), whole)
        const [fromMs, untilMs] = [START_MS + offsetMs, START_MS + offsetMs + lengthMs]
        const within = all.filter(
          (it) =>
            it.programDateTimeMs < untilMs && it.programDateTimeMs + it.durationSec * 1000 > fromMs,
        )
        const uris = new Set(within.map(({ uri }) => uri))
        for (const playlist of [appended, restored]) {
          const clip = playlist.clip(fromMs, untilMs, 2)
          t.equal(clip === undefined, within.length === 0)
          if (clip === undefined) continue
          const text = Buffer.concat([...clip.chunks]).toString()
          t.same(
            read(text),
            read(whole).filter(({ uri }) => uris.has(uri)),
          )
          t.equal(clip.startMs, within[0]!.programDateTimeMs)
          t.match(text, `MEDIA-SEQUENCE:${within[0]!.mediaSequence}\n`)
          const gaps = within.filter(({ gap }) => gap)
          t.ok(Math.abs(clip.gapSec - gaps.reduce((sum, it) => sum + it.durationSec, 0)) < 1e-6)
        }
      },
    )
    await fc.assert(property, { numRuns: 60 })
  },
)

t.test('something else is not restored', async (t) => {
  const playlist = new ArchivedPlaylist('cmaf-video-1')
  t.equal(await playlist.restore('#EXTM3U\n'), false)
  const head = '#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-DISCONTINUITY-SEQUENCE:0\n'
  t.equal(await new ArchivedPlaylist('main').restore(head), false)
})
