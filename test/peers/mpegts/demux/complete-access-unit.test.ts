/** Streams with missing delimiters and parameter sets, judged by ffmpeg and hls.js. */
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { ContinuityCounters } from '../../../../src/mpegts/continuity.ts'
import type { PesUnit } from '../../../../src/mpegts/pes-unit.ts'
import { demux, payloadOf, unitsOf } from '../../../mpegts/demux.ts'
import { pesPacket, TsBuilder, type PesFields } from '../../../mpegts/ts-builder.ts'
import { readNalUnits } from '../../../support/annex-b.ts'
import { transmux } from '../../../support/transmuxer.ts'
import { decodeErrors, readDecoded } from '../../support/media.ts'
import { requireTool } from '../../support/tools.ts'

const run = promisify(execFile)

const PID = 0x100
const START_CODE = Buffer.from([0, 0, 0, 1])

type Nals = readonly Buffer[]
const byteStream = (nals: Nals) => Buffer.concat(nals.flatMap((nal) => [START_CODE, nal]))

/** NAL unit types. */
const CODECS = {
  h264: {
    streamType: 0x1b,
    encode: ['-c:v', 'libx264', '-bf', '2', '-x264-params', 'keyint=15:min-keyint=15:open-gop=0'],
    delimiter: Buffer.from([0x09, 0xf0]),
    typeOf: (nal: Buffer) => nal[0]! & 0x1f,
    delimiterType: 9,
    setTypes: [7, 8],
  },
  h265: {
    streamType: 0x24,
    encode: ['-c:v', 'libx265', '-x265-params', 'keyint=15:min-keyint=15:open-gop=0:bframes=2'],
    delimiter: Buffer.from([0x46, 0x01, 0x50]),
    typeOf: (nal: Buffer) => (nal[0]! >> 1) & 0x3f,
    delimiterType: 35,
    setTypes: [32, 33, 34],
  },
} as const

/** NAL unit types to remove from key frames; parameter sets are removed after the first key frame only. */
interface Omission {
  readonly title: string
  readonly delimiter: boolean
  readonly sets: boolean
  readonly length: PesFields['length']
}

const OMISSIONS: readonly Omission[] = [
  { title: 'nothing', delimiter: false, sets: false, length: 'none' },
  { title: 'parameter sets', delimiter: false, sets: true, length: 'none' },
  { title: 'the delimiter', delimiter: true, sets: false, length: 'true' },
  { title: 'delimiter and parameter sets', delimiter: true, sets: true, length: 'true' },
]

for (const [name, codec] of Object.entries(CODECS)) {
  t.test(`${name}: key frames without …`, async (t) => {
    if (!requireTool(t, 'ffmpeg', 'ffprobe')) return
    const source = join(t.testdir(), 'source.mpegts')
    const input = ['-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=30', '-t', '2']
    const encoder = [...codec.encode, '-preset', 'ultrafast']
    await run('ffmpeg', ['-v', 'error', ...input, ...encoder, '-f', 'mpegts', source])
    const units = unitsOf(demux(await readFile(source)))
    const decoded = (await readDecoded(source)).video
    t.equal(decoded.length, 60)

    for (const { title, ...omission } of OMISSIONS) {
      t.test(title, async (t) => {
        const { bytes, expected } = omit(units, codec, omission)
        const found = unitsOf(demux(bytes))
        t.strictSame(
          found.map(({ randomAccess }) => randomAccess),
          units.map(({ randomAccess }) => randomAccess),
        )
        t.strictSame(
          found.filter((unit, index) => !payloadOf(unit).equals(expected[index]!)),
          [],
          'elementary bytes are those sent, and what was missing',
        )
        await checkSegments(t, found, { decoded, streamType: codec.streamType })
      })
    }
  })
}

/** Units of an encoder that omits NAL units, with the expected result of each. */
function omit(
  units: readonly PesUnit[],
  { streamType, typeOf, delimiterType, setTypes, delimiter }: (typeof CODECS)[keyof typeof CODECS],
  omission: Omit<Omission, 'title'>,
) {
  const ts = new TsBuilder().program([{ pid: PID, streamType }])
  const isSet = (nal: Buffer) => setTypes.some((type) => type === typeOf(nal))
  const isDelimiter = (nal: Buffer) => typeOf(nal) === delimiterType
  const sets = readNalUnits(payloadOf(units[0]!)).filter(isSet)
  const expected = units.map((unit, index) => {
    const { ptsTicks, dtsTicks, randomAccess } = unit
    const omitsSets = randomAccess && omission.sets && index > 0
    const omitsDelimiter = randomAccess && omission.delimiter
    const nals = readNalUnits(payloadOf(unit))
    const rest = nals.filter((nal) => !isDelimiter(nal) && !(omitsSets && isSet(nal)))
    const sent = omitsDelimiter ? rest : [...nals.filter(isDelimiter), ...rest]
    const pes = pesPacket(byteStream(sent), { ptsTicks, dtsTicks, length: omission.length })
    ts.unit(PID, pes)
    const first = omitsDelimiter ? [delimiter] : nals.filter(isDelimiter)
    return byteStream([...first, ...(omitsSets ? sets : []), ...rest])
  })
  return { bytes: ts.bytes, expected }
}

/** Checks that each GOP decodes alone, and that all together decode to the frames of the source. */
async function checkSegments(
  t: Test,
  units: readonly PesUnit[],
  { decoded, streamType }: { decoded: readonly string[]; streamType: number },
) {
  const starts = units.flatMap(({ randomAccess }, index) => (randomAccess ? [index] : []))
  const psi = new TsBuilder().program([{ pid: PID, streamType }]).bytes
  const counters = new ContinuityCounters()
  const segments = starts.map((start, number) => {
    const chunks = units.slice(start, starts[number + 1]).flatMap(({ chunks }) => chunks)
    const bytes = Buffer.concat([psi, ...chunks])
    counters.renumber(bytes, 0, bytes.length)
    return bytes
  })
  const folder = t.testdir()
  const shown: string[] = []
  const files: string[] = []
  for (const [number, bytes] of segments.entries()) {
    const file = join(folder, `${number}.mpegts`)
    await writeFile(file, bytes)
    files.push(file)
    shown.push(...(await readDecoded(file)).video)
    const { videoFrames, independent, complaints } = transmux([
      { bytes, durationSec: 0.5, discontinuity: false },
    ])
    t.same(
      { videoFrames, independent, complaints },
      { videoFrames: 15, independent: true, complaints: [] },
    )
  }
  t.strictSame(shown, decoded, 'the decoded frames are the same')
  t.equal(await decodeErrors(...files), '', 'ffmpeg decodes each segment alone in silence')
}
