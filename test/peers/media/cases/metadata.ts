/**
 * Timed metadata, splice information and captions.
 *
 * @module
 */
import { spliceInsert } from '../../../mpegts/splice-builder.ts'
import { pesPacket, pmtSection } from '../../../mpegts/ts-builder.ts'
import { readPackets, readPesPackets } from '../../../support/ts-reader.ts'
import { AAC, gop, TEST_PATTERN, TONE, X264, type ClipFolder } from '../clip.ts'
import {
  editNalUnits,
  insertBefore,
  PMT_PID,
  replaceSections,
  VIDEO_PID,
  type Clip,
} from '../../../mpegts/edit.ts'
import type { MediaCase } from '../media-case.ts'
import { altered, usual, USUAL, USUAL_MAP } from '../sources.ts'

/** PID of a further track in the usual clip. */
const DATA_PID = 500
const KLV = { streamType: 0x06, descriptors: Buffer.from('\x05\x04KLVA', 'latin1') }
const ID3 = {
  streamType: 0x15,
  // metadata_descriptor (13818-1 2.6.60): application and format are ID3.
  descriptors: Buffer.from('\x26\x0d\xff\xffID3 \xffID3 \xff\x00\x0f', 'latin1'),
}

/** A tag with one frame of text. */
const ID3_TAG = Buffer.concat([
  Buffer.from('ID3\x04\x00\x00\x00\x00\x00\x12TXXX\x00\x00\x00\x08\x00\x00', 'latin1'),
  Buffer.from('\x03a\x00hello', 'latin1'),
])

/** SEI of registered user data (ATSC A/53 Part 4 6.2): one pair of CEA-608. */
const CAPTIONS = Buffer.from(
  '0604 0eb5 0031 4741 3934 03 41ff fc9420 ff80'.replaceAll(' ', ''),
  'hex',
)

export const METADATA: readonly MediaCase[] = [
  {
    name: 'klv',
    input: 'KLV metadata, on which players fail: dropped',
    make: altered((clip) => withData(clip, KLV, () => Buffer.alloc(40, 0x4b))),
    playlist: USUAL,
    warnings: ['TRACKS_LEFT_OUT'],
  },
  {
    name: 'id3',
    input: 'ID3 timed metadata once per second',
    make: async (clips) =>
      withData(await usual(clips), ID3, (unit) => (unit % 30 === 0 ? ID3_TAG : undefined)),
    playlist: { ...USUAL, tracks: '256:1b,257:f,500:15' },
    id3Samples: 8,
  },
  {
    name: 'scte-35',
    input: 'SCTE-35: a break of 2 s that starts at the key frame at 3 s',
    make: async (clips) => {
      const clip = await clips.encode([...TEST_PATTERN, ...TONE, ...X264, ...gop(30), ...AAC])
      return { steps: [withBreak(clip)], originals: [clip] }
    },
    playlist: { ...USUAL, durations: [2, 1, 2, 2, 1] },
    contains: ['#EXT-X-DATERANGE:ID=', 'PLANNED-DURATION=2', 'SCTE35-OUT=0xFC'],
  },
  {
    name: 'captions',
    input: 'CEA-608 captions in SEI messages',
    make: withCaptions,
    playlist: USUAL,
    multivariantContains: ['TYPE=CLOSED-CAPTIONS', 'LANGUAGE="und"', 'CLOSED-CAPTIONS="cc"'],
  },
  {
    name: 'captions-always',
    input: 'no captions so far, with HLS_CAPTIONS=always',
    make: usual,
    options: { captions: 'always' },
    playlist: USUAL,
    multivariantContains: ['TYPE=CLOSED-CAPTIONS', 'INSTREAM-ID="CC1"', 'CLOSED-CAPTIONS="cc"'],
  },
  {
    name: 'captions-never',
    input: 'CEA-608 captions with HLS_CAPTIONS=never',
    make: withCaptions,
    options: { captions: 'never' },
    playlist: USUAL,
    multivariantContains: ['CLOSED-CAPTIONS=NONE'],
  },
]

async function withCaptions(clips: ClipFolder): Promise<Clip> {
  return editNalUnits(await usual(clips), ([delimiter, ...others]) => [
    delimiter!,
    CAPTIONS,
    ...others,
  ])
}

/** Time of the clip's first frame: ffmpeg's mux delay. */
function firstPtsTicks(clip: Clip): number {
  return readPesPackets(readPackets(clip.bytes), VIDEO_PID)[0]!.ptsTicks!
}

function withData(
  clip: Clip,
  track: { streamType: number; descriptors: Buffer },
  payloadOf: (unit: number) => Buffer | undefined,
): Clip {
  const map = pmtSection(1, VIDEO_PID, [...USUAL_MAP, { pid: DATA_PID, ...track }])
  const ptsTicks = firstPtsTicks(clip)
  return insertBefore(
    replaceSections(clip, PMT_PID, () => [map]),
    (unit, builder) => {
      const payload = payloadOf(unit)
      if (payload === undefined) return
      const times = { ptsTicks: ptsTicks + unit * 3000, streamId: 0xbd }
      builder.unit(DATA_PID, pesPacket(payload, times))
    },
  )
}

/** Break of 2 s, announced a second ahead and again at its end. */
function withBreak(clip: Clip): Clip {
  const map = pmtSection(1, VIDEO_PID, [...USUAL_MAP, { pid: DATA_PID, streamType: 0x86 }])
  const outTicks = firstPtsTicks(clip) + 3 * 90_000
  const duration = { durationTicks: 2 * 90_000, autoReturn: true }
  return insertBefore(
    replaceSections(clip, PMT_PID, () => [map]),
    (unit, builder) => {
      if (unit === 60) {
        const out = spliceInsert({ eventId: 7, ptsTicks: outTicks, break: duration })
        builder.sections(DATA_PID, out)
      }
    },
  )
}
