import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { clipOf } from '../../../bench/support/clip.ts'
import { countMedia, decodeErrors } from '../support/media.ts'
import { requireTool } from '../support/tools.ts'

t.test('decoders skip the filler of a clip of the benches', async (t) => {
  if (!requireTool(t, 'ffmpeg', 'ffprobe')) return
  const file = join(t.testdir(), 'clip.mpegts')
  writeFileSync(file, clipOf(5e6))
  t.equal(await decodeErrors(file), '')
  t.match(await countMedia(file), { videoFrames: 240, audioFrames: 375 })
})
