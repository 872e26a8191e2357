import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { packageClip } from '../../hls/packaged-clip.ts'
import { readFixture } from '../../mpegts/demux.ts'
import { decodeErrors, readDecoded } from '../support/media.ts'
import { requireTool } from '../support/tools.ts'

for (const name of ['h264-aac', 'h265-aac', 'h264-open-gop', 'h264-bounded-pes', 'two-programs']) {
  t.test(`the preview of ${name} is the first frame of the newest segment with one`, async (t) => {
    if (!requireTool(t, 'ffmpeg')) return
    t.testdir()
    const { files, segments } = packageClip(readFixture(name))
    const { uri, chunks } = segments.findLast(({ startsWithKeyFrame }) => startsWithKeyFrame)!
    const preview = files.get('preview.ts')!
    t.match(preview, { contentType: 'video/mp2t', version: `${uri}-preview`, maxAgeSec: 1 })
    const file = await write(t, 'preview', preview.chunks)
    const [frames, whole] = await Promise.all([
      readDecoded(file),
      readDecoded(await write(t, 'segment', chunks)),
    ])
    t.same(frames.audio, [])
    t.equal(frames.video.length, 1)
    t.ok(whole.video.includes(frames.video[0]!), 'a frame of the segment')
    if (!name.includes('open-gop')) t.equal(frames.video[0], whole.video[0], 'the first one')
    t.equal(await decodeErrors(file), '')
  })
}

async function write(t: Test, name: string, chunks: readonly Buffer[]): Promise<string> {
  const file = join(t.testdirName, `${name}.mpegts`)
  await writeFile(file, Buffer.concat(chunks))
  return file
}
