import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PacedStream } from '../../../src/pace/paced-stream.ts'
import { countMedia, decodeErrors } from '../support/media.ts'
import { requireTool } from '../support/tools.ts'

t.test('ffmpeg decodes across passes of a loop without a message', async (t) => {
  if (!requireTool(t, 'ffmpeg', 'ffprobe')) return
  const clip = readFileSync(new URL('../../../fixtures/demo.mpegts', import.meta.url))
  const stream = new PacedStream()
  const datagrams = stream.push(clip)
  for (let pass = 1; pass < 3; pass++) datagrams.push(...stream.rewind(), ...stream.push(clip))
  datagrams.push(...stream.end())
  const file = join(t.testdir(), 'loop.mpegts')
  writeFileSync(file, Buffer.concat(datagrams.map(({ payload }) => payload)))
  t.equal(await decodeErrors(file), '')
  t.match(await countMedia(file), { videoFrames: 3 * 240, audioFrames: 3 * 375 })
})
