/** Random access points, leading pictures and captions, judged by ffmpeg. */
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { ContinuityCounters } from '../../../../src/mpegts/continuity.ts'
import type { PesUnit } from '../../../../src/mpegts/pes-unit.ts'
import { byteStream } from '../../../codec/nal-builder.ts'
import { captions } from '../../../mpegts/demux/captions.ts'
import { demux, payloadOf, programsOf, readFixture, unitsOf } from '../../../mpegts/demux.ts'
import { pesPacket, TsBuilder } from '../../../mpegts/ts-builder.ts'
import { decodeErrors } from '../../support/media.ts'
import { requireTool } from '../../support/tools.ts'

const run = promisify(execFile)

const H264 = { pid: 0x100, streamType: 0x1b }
const H265 = { pid: 0x100, streamType: 0x24 }

/** x265 settings with pyramids of B-frames, the leading pictures of a key frame, and whether they decode from there. */
const X265 = [
  ['closed GOPs', 'open-gop=0', false, true],
  ['closed GOPs with RADL pictures', 'open-gop=0:radl=3', true, true],
  ['open GOPs: RASL pictures', 'open-gop=1', false, false],
] as const

for (const [title, params, hasDecodableLeading, decodesAlone] of X265) {
  t.test(
    `H.265, ${title}: random access points and leading pictures are those that ffmpeg decodes`,
    async (t) => {
      if (!requireTool(t, 'ffmpeg', 'ffprobe')) return
      const folder = t.testdir()
      const [source, alone] = [join(folder, 'source.mpegts'), join(folder, 'alone.mpegts')]
      const gop = `keyint=30:min-keyint=30:scenecut=0:bframes=4:b-pyramid=1:b-adapt=0:${params}`
      const encoder = ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', gop]
      const input = ['-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=30', '-t', '3']
      await run('ffmpeg', ['-v', 'error', ...input, ...encoder, '-f', 'mpegts', source])
      const units = unitsOf(demux(await readFile(source)))
      t.equal(
        units.some(({ decodableLeading }) => decodableLeading),
        hasDecodableLeading,
      )
      t.ok(units.every(({ startsFrame, gradualRefresh }) => startsFrame && !gradualRefresh))
      const starts = units.flatMap(({ randomAccess }, index) => (randomAccess ? [index] : []))
      t.ok(starts.length > 2)
      for (const [number, start] of starts.entries()) {
        const gop = units.slice(start, starts[number + 1])
        const lost = gop.filter(
          ({ ptsTicks, decodableLeading }) => ptsTicks < gop[0]!.ptsTicks && !decodableLeading,
        )
        t.equal(lost.length === 0, decodesAlone || number === 0)
        await writeFile(alone, remux(gop, H265))
        t.equal(await countDecoded(alone), gop.length - lost.length)
        t.equal(await decodeErrors(alone), '')
      }
    },
  )
}

/** Counts the decoded frames of a file; ffmpeg itself would drop those of negative time. */
async function countDecoded(file: string): Promise<number> {
  const count = ['-count_frames', '-show_entries', 'program_stream=:stream=nb_read_frames']
  const { stdout } = await run('ffprobe', ['-v', 'error', ...count, '-of', 'csv=p=0', file])
  return Number.parseInt(stdout, 10)
}

/** Muxes units into a stream. */
function remux(units: readonly PesUnit[], stream: typeof H264): Buffer {
  const psi = new TsBuilder().program([stream]).bytes
  const bytes = Buffer.concat([psi, ...units.flatMap(({ chunks }) => chunks)])
  new ContinuityCounters().renumber(bytes, 0, bytes.length)
  return bytes
}

t.test('captions are found in the streams where ffprobe finds them', async (t) => {
  if (!requireTool(t, 'ffprobe')) return
  const file = join(t.testdir(), 'captions.mpegts')
  for (const [name, stream, head] of [
    ['h264-aac', H264, []],
    ['h265-aac', H265, [39 << 1, 1]],
  ] as const) {
    const units = unitsOf(demux(readFixture(name)), 0x100)
    const ts = new TsBuilder().program([stream])
    for (const unit of units) {
      const bytes = payloadOf(unit)
      const sei =
        head.length === 0 ? captions() : Buffer.concat([Buffer.from(head), captions().subarray(1)])
      const behindAud = 4 + (head.length === 0 ? 2 : 3)
      const parts = [bytes.subarray(0, behindAud), byteStream(sei), bytes.subarray(behindAud)]
      const { ptsTicks, dtsTicks } = unit
      ts.unit(0x100, pesPacket(Buffer.concat(parts), { ptsTicks, dtsTicks, length: 'none' }))
    }
    await writeFile(file, ts.bytes)
    const show = ['-show_entries', 'frame_side_data=side_data_type', '-of', 'csv=p=0']
    const { stdout } = await run('ffprobe', ['-v', 'error', ...show, file])
    t.equal(stdout.match(/Closed Captions/g)?.length, units.length, name)
    t.equal(programsOf(demux(ts.bytes)).at(-1)!.tracks[0]!.parameters?.closedCaptions, true, name)
  }
})
