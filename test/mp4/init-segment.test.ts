/**
 * Compared box by box with what ffmpeg 5.1 wrote of the same fixtures:
 *
 *   ffmpeg -copyts -i NAME.mpegts -map 0:KIND -c copy -video_track_timescale 90000 \
 *     -movflags empty_moov+default_base_moof+frag_keyframe+delay_moov+frag_discont OUT.mp4
 *
 * `ffmpeg-vectors.json` has payloads of its boxes in hex; the first decode time, from which its edit list is subtracted;
 * duration, size, composition offset and flags of its samples; and the MD5 of their bytes. Parameter sets, delimiters and
 * `trailing_zero_8bits` (H.265 B.2.1), which ffmpeg leaves in the samples, are taken out before.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { inspectFragments } from '../../src/check/media/fragments.ts'
import type { AudioFormat } from '../../src/mp4/audio-format.ts'
import type { AudioSource } from '../../src/mp4/audio-samples.ts'
import { encodeInitSegment } from '../../src/mp4/init-segment.ts'
import { videoCodecString } from '../../src/mp4/video-sample-entry.ts'
import type { Sample } from '../../src/mp4/sample.ts'
import type { VideoFormat } from '../../src/mp4/video-format.ts'
import { readFixture } from '../mpegts/demux.ts'
import { listBoxes, payloadsOf, readSamples } from './box-tree.ts'
import {
  codecStringOf,
  fragment,
  readAudio,
  readVideo,
  unitsOfKind,
  type Samples,
} from './fragmented-track.ts'

interface Vector {
  readonly boxes: Readonly<Record<string, string>>
  readonly firstDecodeTicks: number
  readonly samples: readonly (readonly number[])[]
  readonly md5: string
}

const VECTORS = JSON.parse(
  readFileSync(new URL('ffmpeg-vectors.json', import.meta.url), 'utf8'),
) as Readonly<Record<string, Vector>>

const STBL = 'moov/trak/mdia/minf/stbl'

const TRACKS: Readonly<Record<string, () => Samples>> = {
  'h264-aac video': () => readVideo(unitsOfKind(readFixture('h264-aac'), 'video'), 'h264'),
  'h264-aac audio': () => audio('h264-aac', { codec: 'aac' }),
  'demo video': () => readVideo(unitsOfKind(readFixture('demo'), 'video'), 'h264'),
  'h265-aac video': () => readVideo(unitsOfKind(readFixture('h265-aac'), 'video'), 'h265'),
  'mp3 audio': () => audio('mp3', { codec: 'mp3' }),
  'ac3-dvb audio': () => audio('ac3-dvb', { codec: 'ac3' }),
  'eac3 audio': () => audio('eac3', { codec: 'eac3' }),
}

const audio = (name: string, source: AudioSource) =>
  readAudio(unitsOfKind(readFixture(name), 'audio'), source)

/**
 * Fields of `esds` that tell the format (14496-1 7.2.6). ffmpeg also gives bit rates, an ES_ID, which is 0 in a file
 * (14496-14 4.1.2), and lengths of four bytes.
 */
function readEsds(hex: string) {
  const [stream] = readDescriptors(Buffer.from(hex, 'hex').subarray(4)).values()
  const own = readDescriptors(stream!.subarray(3))
  const config = own.get(4)!
  return {
    types: config.toString('hex', 0, 2),
    specificInfo: readDescriptors(config.subarray(13)).get(5)?.toString('hex'),
    syncLayer: own.get(6)?.toString('hex'),
  }
}

/** Payloads of descriptors by tag; lengths have seven bits a byte (14496-1 8.3.3). */
function readDescriptors(bytes: Buffer): Map<number, Buffer> {
  const found = new Map<number, Buffer>()
  for (let at = 0; at < bytes.length;) {
    const tag = bytes[at++]!
    let length = 0
    do length = (length << 7) | (bytes[at]! & 0x7f)
    while (bytes[at++]! >= 0x80)
    found.set(tag, bytes.subarray(at, at + length))
    at += length
  }
  return found
}

for (const [name, vector] of Object.entries(VECTORS)) {
  t.test(`${name}: boxes and samples are those of ffmpeg`, async (t) => {
    const samples = TRACKS[name]!()
    const { init, file } = fragment(samples)
    const boxes = new Map(
      listBoxes(init).map(({ path, payload }) => [
        path.split('/').at(-1)!,
        payload.toString('hex'),
      ]),
    )
    for (const [type, payload] of Object.entries(vector.boxes)) {
      if (type === 'esds') t.strictSame(readEsds(boxes.get(type)!), readEsds(payload), type)
      else t.equal(boxes.get(type), payload, type)
    }
    const written = readSamples(file)
    t.equal(written[0]!.decodeTicks, vector.firstDecodeTicks)
    t.strictSame(
      written
        .slice(0, vector.samples.length)
        .map((sample) => [
          sample.durationTicks,
          sample.bytes.length,
          sample.compositionOffset,
          sample.flags,
        ]),
      vector.samples,
    )
    const md5 = createHash('md5').update(Buffer.concat(written.map(({ bytes }) => bytes)))
    t.equal(md5.digest('hex'), vector.md5)
  })

  t.test(`${name}: millrace check reads the track and its CODECS`, async (t) => {
    const samples = TRACKS[name]!()
    const facts = inspectFragments(fragment(samples).file, undefined)
    t.strictSame(facts.faults, [])
    t.match(facts.tracks, [
      {
        codec: codecStringOf(samples[0]!.format),
        frames: samples.length,
        startsWithKeyFrame: true,
      },
    ])
  })
}

t.test('the init segment has the boxes of CMAF and no others (23000-19 7.3.2.1)', async (t) => {
  const { init } = fragment(TRACKS['h264-aac video']!())
  t.strictSame(
    listBoxes(init).map(({ path }) => path.replace(STBL, 'stbl')),
    [
      ...['ftyp', 'moov', 'moov/mvhd', 'moov/trak', 'moov/trak/tkhd', 'moov/trak/mdia'],
      ...['moov/trak/mdia/mdhd', 'moov/trak/mdia/hdlr', 'moov/trak/mdia/minf'],
      ...['moov/trak/mdia/minf/vmhd', 'moov/trak/mdia/minf/dinf', 'moov/trak/mdia/minf/dinf/dref'],
      ...['moov/trak/mdia/minf/dinf/dref/url ', 'stbl', 'stbl/stsd', 'stbl/stsd/avc1'],
      ...['stbl/stsd/avc1/avcC', 'stbl/stsd/avc1/pasp', 'stbl/stts', 'stbl/stsc', 'stbl/stsz'],
      ...['stbl/stco', 'moov/mvex', 'moov/mvex/trex'],
    ],
  )
})

t.test('mdhd has timescale and language; an unknown language is und (8.4.2)', async (t) => {
  const [{ format }] = TRACKS['mp3 audio']!() as [Samples[number]]
  const mdhd = (language?: string) =>
    payloadsOf(encodeInitSegment({ id: 1, format, language }), 'moov/trak/mdia/mdhd')[0]
  const head = '00000000'.repeat(3) + (48_000).toString(16).padStart(8, '0') + '00000000'
  t.equal(mdhd('deu'), `${head}10b50000`)
  for (const language of [undefined, '', 'de', 'DEU', 'd\u0000u']) {
    t.equal(mdhd(language), `${head}55c40000`, String(language))
  }
})

/** Payload of the configuration box in the sample entry of a format. */
function configuration(format: AudioFormat, path: string): string | undefined {
  const init = encodeInitSegment({ id: 1, format })
  return payloadsOf(init, `${STBL}/stsd/${path}`)[0]
}

t.test('avcC has 255 PPS at most: their number is a byte (14496-15 5.3.3.1)', async (t) => {
  const [sample] = TRACKS['h264-aac video']!() as readonly Sample<VideoFormat>[]
  const { format } = sample!
  const sps = format.parameterSets[0]!
  const ppsSets = Array.from({ length: 300 }, (_, id) => ({
    kind: 'pps' as const,
    id,
    nal: Buffer.from([0x68, id]),
  }))
  const many = { ...format, parameterSets: [sps, ...ppsSets] }
  const [avcC] = payloadsOf(encodeInitSegment({ id: 1, format: many }), `${STBL}/stsd/avc1/avcC`)
  const countAt = 8 + sps.nal.length
  t.equal(Buffer.from(avcC!, 'hex')[countAt], 255)
  t.equal(avcC!.length / 2, countAt + 1 + 255 * 4)
})

t.test(
  'sets in band: avc3 and hev1, whose arrays are not complete (14496-15 8.3.3.1)',
  async (t) => {
    const entries = [
      ['h264-aac video', 'avc1', 'avc3', 'avcC'],
      ['h265-aac video', 'hvc1', 'hev1', 'hvcC'],
    ] as const
    for (const [name, outOfBand, inBand, record] of entries) {
      const [sample] = TRACKS[name]!() as readonly Sample<VideoFormat>[]
      const { format } = sample!
      const other = { ...format, inBandSets: true }
      const recordOf = (entry: string, value: VideoFormat) =>
        payloadsOf(
          encodeInitSegment({ id: 1, format: value }),
          `${STBL}/stsd/${entry}/${record}`,
        )[0]
      const expected = recordOf(outOfBand, format)!
      // Of each array: type and count.
      const arrays = expected.replaceAll(/a([012])0001/g, '2$10001')
      t.equal(recordOf(inBand, other), arrays)
      t.equal(arrays === expected, outOfBand === 'avc1')
      t.equal(videoCodecString(format), format.sequence.video.codecString)
      t.equal(videoCodecString(other).slice(0, 5), `${inBand}.`)
    }
  },
)

t.test(
  'HE-AAC with explicit SBR has both sample rates in its esds (14496-3 1.6.2.1)',
  async (t) => {
    const parameters = { codecString: 'mp4a.40.5', sampleRate: 48_000, channels: 2 }
    const config = { objectType: 5, parameters, sampleRateIndex: 6, channelConfiguration: 2 }
    const esds = configuration({ codec: 'aac', parameters, timescale: 24_000, config }, 'mp4a/esds')
    t.match(esds, '2b118800')
  },
)

t.test('dOps has pre-skip, rate and mapping of the channels (Opus in ISOBMFF 4.3.2)', async (t) => {
  const format = (channels: number) =>
    ({
      codec: 'opus',
      parameters: { codecString: 'opus', sampleRate: 48_000, channels },
      timescale: 48_000,
      preSkip: 312,
      inputSampleRate: 44_100,
    }) as const
  t.equal(configuration(format(2), 'Opus/dOps'), '000201380000ac44000000')
  const mapping = { family: 1, streams: 4, coupledStreams: 2, channels: [0, 4, 1, 2, 3, 5] }
  t.equal(
    configuration({ ...format(6), mapping }, 'Opus/dOps'),
    '000601380000ac440000010402000401020305',
  )
})

t.test('dec3 has dependent substreams with the locations of their channels (F.6)', async (t) => {
  const syncframe = {
    codec: 'eac3',
    words: 256,
    sampleRate: 48_000,
    sampleRateCode: 0,
    bitstreamId: 16,
    bitstreamMode: 0,
    audioCodingMode: 7,
    lowFrequencyEffects: true,
    bitRateCode: 0,
    blocks: 6,
    dependent: false,
    substreamId: 0,
  } as const
  const format = {
    codec: 'eac3',
    parameters: { codecString: 'ec-3', sampleRate: 48_000, channels: 6 },
    timescale: 48_000,
    dataRate: 640,
    substreams: [{ syncframe, dependents: 1, channelMap: 0x0200 }],
  } as const
  // 640 kbit/s; one substream: fscod 0, bsid 16, acmod 7, lfeon; one dependent substream with Lrs/Rrs.
  t.equal(configuration(format, 'ec-3/dec3'), '1400200f0202')
})
