/** Clips of real encoders and muxers, with the contents that ffprobe 5.1 reports. */
import t from 'tap'
import { Demuxer } from '../../../src/mpegts/demux/demuxer.ts'
import type { TrackParameters } from '../../../src/mpegts/track.ts'
import { demux, payloadOf, programsOf, readFixture, unitsOf } from '../demux.ts'

interface ExpectedTrack {
  readonly pid: number
  readonly codec: string
  readonly parameters: TrackParameters
  readonly language?: string | undefined
  /** `ffprobe -fflags +noparse+nofillin`: PES packets, bytes of elementary stream, time of the first and the last. */
  readonly units: number
  readonly sizeBytes: number
  readonly firstPts: number
  readonly lastPts: number
  /** Video only: indices of the key frames. */
  readonly keys?: readonly number[] | undefined
}

const AVC: TrackParameters = {
  codecString: 'avc1.42c00b',
  width: 160,
  height: 90,
  frameRate: 30,
  videoRange: 'SDR',
}
const AVC_MAIN = { ...AVC, codecString: 'avc1.4d400b' }
const AAC_48 = { codecString: 'mp4a.40.2', sampleRate: 48_000, channels: 1 }
const AAC_44 = { codecString: 'mp4a.40.2', sampleRate: 44_100, channels: 1 }
const WRAP = 2 ** 33

// prettier-ignore
const CLIPS: Record<string, readonly ExpectedTrack[]> = {
  'h264-aac': [
    { pid: 256, codec: 'h264', parameters: AVC_MAIN, units: 45, sizeBytes: 24_566, firstPts: 132_000, lastPts: 261_000, keys: [0, 15, 30] },
    { pid: 257, codec: 'aac', parameters: AAC_48, units: 5, sizeBytes: 12_866, firstPts: 130_080, lastPts: 251_040 },
  ],
  'h264-open-gop': [
    { pid: 256, codec: 'h264', parameters: AVC_MAIN, units: 45, sizeBytes: 23_146, firstPts: 132_000, lastPts: 261_000, keys: [0, 13, 28] },
  ],
  // ffprobe calls unit 15 a key frame for its recovery point, but no picture after the first can be decoded alone.
  'h264-intra-refresh': [
    { pid: 256, codec: 'h264', parameters: AVC, units: 30, sizeBytes: 22_094, firstPts: 126_000, lastPts: 213_000, keys: [0] },
  ],
  'h264-bounded-pes': [
    { pid: 256, codec: 'h264', parameters: AVC, units: 15, sizeBytes: 9833, firstPts: 126_000, lastPts: 168_000, keys: [0] },
  ],
  'h264-mp2-nit': [
    { pid: 256, codec: 'h264', parameters: AVC, units: 15, sizeBytes: 9833, firstPts: 126_902, lastPts: 168_902, keys: [0] },
    { pid: 257, codec: 'mp2', parameters: { codecString: 'mp4a.40.33', sampleRate: 48_000, channels: 1 }, units: 2, sizeBytes: 4032, firstPts: 126_000, lastPts: 158_400 },
  ],
  'h264-aac-nulls': [
    { pid: 256, codec: 'h264', parameters: AVC, units: 15, sizeBytes: 9833, firstPts: 127_920, lastPts: 169_920, keys: [0] },
    { pid: 257, codec: 'aac', parameters: AAC_48, units: 2, sizeBytes: 4507, firstPts: 126_000, lastPts: 154_800 },
  ],
  'h264-aac-wrap': [
    { pid: 256, codec: 'h264', parameters: AVC, units: 30, sizeBytes: 20_201, firstPts: WRAP - 1592, lastPts: WRAP + 85_408, keys: [0, 15] },
    { pid: 257, codec: 'aac', parameters: AAC_48, units: 4, sizeBytes: 8714, firstPts: WRAP - 3512, lastPts: WRAP + 86_728 },
  ],
  'h264-two-audio': [
    { pid: 256, codec: 'h264', parameters: AVC, units: 15, sizeBytes: 9833, firstPts: 128_090, lastPts: 170_090, keys: [0] },
    { pid: 257, codec: 'aac', parameters: AAC_48, language: 'eng', units: 2, sizeBytes: 4507, firstPts: 126_170, lastPts: 154_970 },
    { pid: 258, codec: 'aac', parameters: AAC_44, language: 'fra', units: 2, sizeBytes: 4622, firstPts: 126_000, lastPts: 155_257 },
  ],
  'h264-ac3-192': [
    { pid: 4113, codec: 'h264', parameters: AVC, units: 15, sizeBytes: 9833, firstPts: 126_480, lastPts: 168_480, keys: [0] },
    { pid: 4352, codec: 'ac3', parameters: { codecString: 'ac-3', sampleRate: 48_000, channels: 1 }, units: 3, sizeBytes: 6144, firstPts: 126_000, lastPts: 166_320 },
  ],
  'two-programs': [
    { pid: 257, codec: 'h264', parameters: AVC, units: 15, sizeBytes: 9833, firstPts: 128_090, lastPts: 170_090, keys: [0] },
    { pid: 258, codec: 'aac', parameters: AAC_44, units: 2, sizeBytes: 4622, firstPts: 126_000, lastPts: 155_257 },
  ],
  'h265-aac': [
    { pid: 256, codec: 'h265', parameters: { codecString: 'hvc1.1.6.L30.90', width: 160, height: 90, frameRate: 30, videoRange: 'SDR' }, units: 45, sizeBytes: 18_613, firstPts: 132_000, lastPts: 261_000, keys: [0, 13, 28] },
    { pid: 257, codec: 'aac', parameters: AAC_48, units: 5, sizeBytes: 12_866, firstPts: 130_080, lastPts: 251_040 },
  ],
  mp3: [
    { pid: 256, codec: 'mp3', parameters: { codecString: 'mp4a.40.34', sampleRate: 48_000, channels: 2 }, units: 3, sizeBytes: 6336, firstPts: 126_000, lastPts: 169_200 },
  ],
  'ac3-dvb': [
    { pid: 256, codec: 'ac3', parameters: { codecString: 'ac-3', sampleRate: 48_000, channels: 2 }, units: 3, sizeBytes: 6144, firstPts: 126_000, lastPts: 166_320 },
  ],
  eac3: [
    { pid: 256, codec: 'eac3', parameters: { codecString: 'ec-3', sampleRate: 48_000, channels: 2 }, units: 3, sizeBytes: 6144, firstPts: 126_000, lastPts: 166_320 },
  ],
  // openh264 writes no timing information.
  gstreamer: [
    { pid: 65, codec: 'h264', parameters: { codecString: 'avc1.42c00b', width: 160, height: 90, videoRange: 'SDR' }, units: 12, sizeBytes: 9740, firstPts: 324_000_000, lastPts: 324_032_999, keys: [0, 6] },
    { pid: 66, codec: 'aac', parameters: AAC_44, units: 16, sizeBytes: 6056, firstPts: 324_000_000, lastPts: 324_031_346 },
  ],
}

for (const [name, tracks] of Object.entries(CLIPS)) {
  t.test(`${name}: tracks, units, bytes, times and key frames are those of ffprobe`, async (t) => {
    const demuxer = new Demuxer()
    const outputs = demux(readFixture(name), undefined, demuxer)
    const found = programsOf(outputs)
      .at(-1)!
      .tracks.map((track) => {
        const units = unitsOf(outputs, track.pid)
        const keys = units.flatMap(({ randomAccess }, index) => (randomAccess ? [index] : []))
        return {
          pid: track.pid,
          codec: track.codec,
          parameters: track.parameters,
          language: track.language,
          units: units.length,
          sizeBytes: units.reduce((sum, unit) => sum + payloadOf(unit).length, 0),
          firstPts: units[0]?.ptsTicks,
          lastPts: units.at(-1)?.ptsTicks,
          keys: track.kind === 'video' ? keys : undefined,
        }
      })
    t.same(found, tracks)
    t.equal(found.length, tracks.length)
    t.notOk(unitsOf(outputs).some(({ damaged }) => damaged))
    const changes = outputs.filter((output) => output.type === 'program' && output.layoutChanged)
    t.strictSame(changes, [], 'parameters that become known are no change of layout')
    const { continuityErrors, lostSyncs, psiCrcErrors, malformedPes } = demuxer.stats
    t.strictSame([continuityErrors, lostSyncs, psiCrcErrors, malformedPes], [0, 0, 0, 0])
  })
}
