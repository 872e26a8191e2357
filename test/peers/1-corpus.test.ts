/**
 * Every case of the corpus through the whole pipeline, checked by every judge. Tests with peers begin in the order of their
 * names, so this one, the longest, has the first.
 */
import t, { type Test } from 'tap'
import { parseM3u8 } from '../support/m3u8.ts'
import { requireTool } from './support/tools.ts'
import { judgeCmaf } from './media/cmaf-judge.ts'
import { ClipFolder } from './media/clip.ts'
import { CORPUS } from './media/corpus.ts'
import { judgeIndependence, judgeLoads, PlaylistJudge } from './media/judge.ts'
import type { ExpectedPlaylist, MediaCase, Source } from './media/media-case.ts'
import { publish } from './media/publish.ts'

/** Regular expression for the names of the cases to run. */
const only = process.env['MEDIA_CASE']

t.jobs = 2

const folder = new ClipFolder()
t.teardown(() => folder.remove())

for (const mediaCase of Object.values(CORPUS).flat()) {
  if (only !== undefined && !new RegExp(only).test(mediaCase.name)) continue
  t.test(`${mediaCase.name}: ${mediaCase.input}`, async (t) => {
    if (!requireTool(t, 'ffmpeg', 'ffprobe')) return
    const { steps, originals } = await makeSource(mediaCase)
    const published = publish(steps, mediaCase.options)
    const { warnings, workUsed } = published
    const { playlists, multivariants } = published.ts
    t.strictSame(warnings.toSorted(), (mediaCase.warnings ?? []).toSorted(), 'warnings')
    t.ok(workUsed < 0.5, `${(workUsed * 100).toFixed(1)} % of the work budget used`)

    const expected = expectedPlaylists(mediaCase)
    t.strictSame([...playlists.keys()], [...expected.keys()], 'media playlists')
    const isPaced = steps.every((step) => 'bytes' in step)
    const { findings = [], cmaf: { findings: cmafFindings = findings } = {} } = mediaCase
    judgeLoads(t, findings, published.ts, isPaced)
    judgeLoads(t, cmafFindings, published.cmaf, isPaced)
    for (const [name, history] of playlists) {
      const playlist = expected.get(name)
      if (playlist === undefined) continue
      t.comment(name)
      judgeIndependence(t, history)
      const text = history.versions.at(-1) ?? ''
      const { targetDuration } = parseM3u8(text).manifest
      t.equal(targetDuration, mediaCase.targetSec ?? 2, 'EXT-X-TARGETDURATION')
      const isIndependent = text.includes('#EXT-X-INDEPENDENT-SEGMENTS')
      t.equal(isIndependent, mediaCase.independent ?? true, 'EXT-X-INDEPENDENT-SEGMENTS')
      const { segments } = history
      const judge = new PlaylistJudge(t, mediaCase, playlist, { folder, segments })
      judge.judgeCuts()
      judge.judgePackets()
      judge.judgeBytes(originals)
      judge.judgeByHlsJs()
      judge.judgeByMuxJs()
      await judge.judgeFrames(originals)
    }
    await judgeCmaf(t, mediaCase, expected, { published, folder })
    const multivariant = multivariants.at(-1) ?? ''
    if (mediaCase.codecs !== undefined) {
      const [, codecs] = /CODECS="([^"]*)"/.exec(multivariant) ?? []
      t.equal(codecs, mediaCase.codecs, 'CODECS')
    }
    const media = playlists.get('playlist.m3u8')?.versions ?? []
    checkParts(t, media, mediaCase.contains)
    checkParts(t, [multivariant], mediaCase.multivariantContains)
  })
}

/** Checks that one of the texts contains all parts in order. */
function checkParts(t: Test, texts: readonly string[], parts: readonly string[] = []): void {
  const hasAll = (text: string) => {
    let at = 0
    return parts.every((part) => (at = text.indexOf(part, at) + 1) > 0)
  }
  t.ok(parts.length === 0 || texts.some(hasAll), parts.join(' … '), { texts })
}

async function makeSource({ make }: MediaCase): Promise<Source> {
  const made = await make(folder)
  return 'steps' in made ? made : { steps: [made], originals: [made] }
}

function expectedPlaylists({ playlist, renditions = {} }: MediaCase) {
  if (playlist === undefined) return new Map<string, ExpectedPlaylist>()
  const { durations } = playlist
  const others = Object.entries(renditions).map(
    ([name, it]) => [name, { ...it, durations }] as const,
  )
  return new Map<string, ExpectedPlaylist>([['playlist.m3u8', playlist], ...others])
}
