import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { demux, payloadOf, programsOf, readFixture, unitsOf } from '../../../mpegts/demux.ts'
import { requireTool } from '../../support/tools.ts'

const WRAP = 2 ** 33
const run = promisify(execFile)

const CLIPS = readdirSync(new URL('../../../../fixtures', import.meta.url))
  .filter((file) => file.endsWith('.mpegts') && !file.startsWith('two-languages'))
  .map((file) => file.replace('.mpegts', ''))

for (const name of CLIPS) {
  t.test(`${name}: every unit has the times and the bytes that ffmpeg reads`, async (t) => {
    if (!requireTool(t, 'ffmpeg', 'ffprobe')) return
    const file = fileURLToPath(new URL(`../../../../fixtures/${name}.mpegts`, import.meta.url))
    const outputs = demux(readFixture(name))
    const pids = programsOf(outputs)
      .at(-1)!
      .tracks.map(({ pid }) => pid)
    for (const pid of pids) {
      const units = unitsOf(outputs, pid)
      const found = units.map((unit) => [
        unit.ptsTicks % WRAP,
        unit.dtsTicks % WRAP,
        payloadOf(unit).length,
      ])
      t.strictSame(found, await probePes(file, pid), `PES packets of PID ${pid}`)
      const bytes = Buffer.concat(units.map(payloadOf))
      t.ok(bytes.equals(await copyStream(file, pid)), `bytes of PID ${pid}`)
    }
  })
}

/** PES packets read by ffprobe: PTS, DTS, size. */
async function probePes(file: string, pid: number): Promise<number[][]> {
  const { stdout } = await run('ffprobe', [
    ...['-v', 'error', '-fflags', '+nofillin+noparse', '-of', 'json'],
    ...['-select_streams', `i:${pid}`, '-show_entries', 'packet=pts,dts,size', file],
  ])
  const { packets } = JSON.parse(stdout) as {
    packets: { pts: number; dts: number; size: string }[]
  }
  // ffprobe counts times before the wrap negative.
  const positive = (ticks: number) => (ticks < 0 ? ticks + WRAP : ticks)
  return packets.map(({ pts, dts, size }) => [positive(pts), positive(dts), Number(size)])
}

async function copyStream(file: string, pid: number): Promise<Buffer> {
  const { stdout } = await run(
    'ffmpeg',
    ['-v', 'error', '-i', file, '-map', `i:${pid}`, '-c', 'copy', '-f', 'data', '-'],
    { encoding: 'buffer', maxBuffer: 64 * 1024 * 1024 },
  )
  return stdout
}
