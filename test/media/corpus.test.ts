/** Whatever an encoder sends: every case of the corpus through the whole pipeline, before every judge. */
import t from 'tap'
import { parseM3u8 } from '../support/m3u8.ts'
import { requireTool } from '../support/tools.ts'
import { ClipFolder } from './clip.ts'
import { CORPUS } from './corpus.ts'
import { judgeText, PlaylistJudge } from './judge.ts'
import type { ExpectedPlaylist, MediaCase, Source } from './media-case.ts'
import { publish } from './publish.ts'

/** Encoders and judges on a machine that is busy with other tests. */
const MOST_SEC = 600

const only = process.env['MEDIA_CASE']

t.setTimeout(MOST_SEC * 1000)
t.jobs = 2

const folder = new ClipFolder()
t.teardown(() => folder.remove())

for (const mediaCase of CORPUS) {
  if (only !== undefined && !mediaCase.name.includes(only)) continue
  t.test(`${mediaCase.name}: ${mediaCase.what}`, async (t) => {
    if (!requireTool(t, 'ffmpeg', 'ffprobe')) return
    const { steps, originals } = await makeSource(mediaCase)
    const { playlists, multivariants, warnings } = publish(steps, mediaCase.options)
    t.strictSame(warnings.toSorted(), (mediaCase.warnings ?? []).toSorted(), 'warnings')

    const expected = expectedPlaylists(mediaCase)
    t.strictSame([...playlists.keys()], [...expected.keys()], 'media playlists')
    const isPaced = steps.every((step) => 'bytes' in step)
    for (const [name, history] of playlists) {
      const playlist = expected.get(name)
      if (playlist === undefined) continue
      t.comment(name)
      judgeText(t, history, isPaced)
      const text = history.versions.at(-1)?.text ?? ''
      t.equal(parseM3u8(text).manifest.targetDuration, mediaCase.targetSec ?? 2)
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
    const complaints = multivariants.flatMap((text) => parseM3u8(text).complaints)
    t.strictSame(complaints, [], 'm3u8-parser on the multivariant playlist')
    if (mediaCase.codecs !== undefined) {
      const [, codecs] = /CODECS="([^"]*)"/.exec(multivariants.at(-1) ?? '') ?? []
      t.equal(codecs, mediaCase.codecs, 'CODECS')
    }
  })
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
