import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { fuzz } from '../../stream/fuzz.ts'
import { requireTool } from '../support/tools.ts'

t.test('ffprobe finds the tracks that segments of arbitrary media announce', async (t) => {
  if (!requireTool(t, 'ffprobe')) return
  const folder = t.testdir()
  const { segments } = fuzz(1, 2000)
  t.ok(segments.length > 20)
  for (const { uri, bytes, tracks } of segments.filter((_, index) => index % 20 === 19)) {
    const file = join(folder, uri)
    await writeFile(file, bytes)
    t.strictSame(await probeKinds(file), tracks.map(({ kind }) => kind).toSorted(), uri)
  }
})

async function probeKinds(file: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)('ffprobe', [
    ...['-v', 'quiet', '-f', 'mpegts', '-show_entries', 'stream=codec_type', '-of', 'json', file],
  ])
  const { streams } = JSON.parse(stdout) as { streams: { codec_type: string }[] }
  return streams.map(({ codec_type }) => codec_type).toSorted()
}
