/**
 * Fuzzing of everything between SRT and HTTP, a bounded run; `npm run fuzz -- --only media` runs for a given time.
 */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { requireTool } from '../peers/support/tools.ts'
import { fuzz } from './fuzz.ts'

const SEEDS = 16
const STEPS = 3000

/** Seeds that once failed, with the defect they found. */
const FAILED_SEEDS = {
  37275806: 'a date range was removed within the millisecond before its end',
} as const

for (const [seed, fault] of Object.entries(FAILED_SEEDS)) {
  t.test(`seed ${seed}: ${fault}`, async (t) => {
    t.strictSame(fuzz(Number(seed), 2000).violations, [])
  })
}

t.test('arbitrary media cause no exception and no violation of a rule', async (t) => {
  const hasProbe = requireTool(t, 'ffprobe')
  const folder = t.testdir()
  let segments = 0
  for (let seed = 1; seed <= SEEDS; seed++) {
    const outcome = fuzz(seed, STEPS)
    t.strictSame(outcome.violations, [], `seed ${seed}`)
    segments += outcome.segments.length
    const sample = hasProbe ? outcome.segments.filter((_, index) => index % 50 === 49) : []
    for (const { uri, bytes, tracks } of sample) {
      const file = join(folder, `${seed}-${uri}`)
      await writeFile(file, bytes)
      const kinds = tracks.map(({ kind }) => kind).toSorted()
      t.strictSame(await probeKinds(file), kinds, `ffprobe finds what ${uri} announces`)
    }
  }
  t.ok(segments > 20 * SEEDS, `${segments} segments`)
})

async function probeKinds(file: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)('ffprobe', [
    ...['-v', 'quiet', '-f', 'mpegts', '-show_entries', 'stream=codec_type', '-of', 'json', file],
  ])
  const { streams } = JSON.parse(stdout) as { streams: { codec_type: string }[] }
  return streams.map(({ codec_type }) => codec_type).toSorted()
}
