/** Conversion of LATM to ADTS, judged by ffmpeg. */
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { ContinuityCounters } from '../../../../src/mpegts/continuity.ts'
import { demux, programsOf, unitsOf } from '../../../mpegts/demux.ts'
import { TsBuilder } from '../../../mpegts/ts-builder.ts'
import { readDecoded } from '../../support/media.ts'
import { requireTool } from '../../support/tools.ts'

const run = promisify(execFile)

const ADTS = { pid: 0x100, streamType: 0x0f }

const ENCODINGS = [
  ['48 kHz stereo', ['-ac', '2', '-b:a', '128k'], 2],
  ['44.1 kHz, six channels', ['-ar', '44100', '-ac', '6'], 6],
  ['one frame a PES, mono', ['-ac', '1', '-pes_payload_size', '0'], 1],
  ['a configuration in every frame', ['-ac', '2', '-smc-interval', '1'], 2],
] as const

for (const [title, settings, channels] of ENCODINGS) {
  t.test(`${title}: ffmpeg hears the same from ADTS as from LATM`, async (t) => {
    if (!requireTool(t, 'ffmpeg', 'ffprobe')) return
    const folder = t.testdir()
    const [source, result] = [join(folder, 'latm.mpegts'), join(folder, 'adts.mpegts')]
    const tone = ['-f', 'lavfi', '-i', 'sine=f=440:r=48000', '-t', '3', '-c:a', 'aac']
    const muxing = ['-mpegts_flags', 'latm', '-f', 'mpegts']
    await run('ffmpeg', ['-v', 'error', ...tone, ...settings, ...muxing, source])
    const outputs = demux(await readFile(source))
    const units = unitsOf(outputs)
    const changes = outputs.filter((output) => output.type === 'program' && output.layoutChanged)
    t.strictSame(changes, [])
    t.match(programsOf(outputs).at(-1)!.tracks, [
      { codec: 'aac', streamType: 0x0f, parameters: { codecString: 'mp4a.40.2', channels } },
    ])
    const psi = new TsBuilder().program([ADTS]).bytes
    const bytes = Buffer.concat([psi, ...units.flatMap(({ chunks }) => chunks)])
    new ContinuityCounters().renumber(bytes, 0, bytes.length)
    await writeFile(result, bytes)
    const [expected, found] = [await readDecoded(source), await readDecoded(result)]
    t.ok(expected.audio.length > 100)
    t.strictSame(found, expected)
    t.strictSame(await probeTimes(result), await probeTimes(source))
  })
}

async function probeTimes(file: string): Promise<string> {
  const entries = ['-show_entries', 'packet=pts,duration', '-of', 'csv']
  return (await run('ffprobe', ['-v', 'error', ...entries, file])).stdout
}
