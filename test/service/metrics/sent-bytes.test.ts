import t from 'tap'
import type { PlayableStream } from '../../../src/playback/playback-source.ts'
import { SentBytes } from '../../../src/service/metrics/sent-bytes.ts'

t.test('counts bytes by the kind of their files, in both formats', async (t) => {
  const sent = new SentBytes()
  const stream: PlayableStream = { status: 'STREAMING', live: true, files: new Map() }
  t.equal(sent.of(stream), undefined)
  const files = [
    ...['playlist.m3u8', 'master.m3u8', 'ts.m3u8', 'cmaf-audio-1.m3u8'],
    ...['e-7.ts', 'e-v2-7.ts', 'e-v1-7.m4s', 'e-v1-0f1e2d3c4b5a.mp4'],
    ...['e-v1-p7.m4s', 'e-a1-p7.m4s', 'preview.ts'],
  ]
  for (const name of files) sent.add(stream, name, 10)
  t.strictSame(sent.of(stream), { playlist: 40, segment: 40, part: 20, preview: 10 })
})
