/**
 * How muxers put it into packets and tables.
 *
 * @module
 */
import { pesPacket, pmtSection } from '../../mpegts/ts-builder.ts'
import { AAC, PICTURES, TONE, X264 } from '../clip.ts'
import {
  AUDIO_PID,
  editPes,
  interleave,
  join,
  lose,
  PMT_PID,
  replaceSections,
  restride,
  shift,
  unstride,
  VIDEO_PID,
} from '../edit.ts'
import type { MediaCase, Source } from '../media-case.ts'
import { altered, flip, isPsi, TWICE, USUAL, usual, USUAL_MAP } from '../sources.ts'

export const MUXERS: readonly MediaCase[] = [
  {
    name: 'cbr-nulls',
    what: 'a constant bit rate by null packets',
    make: (clips) => clips.encode([...PICTURES, ...TONE, ...X264, ...AAC, '-muxrate', '2000k']),
    playlist: USUAL,
  },
  {
    name: 'bounded-video-pes',
    what: 'video PES packets that tell their length',
    make: (clips) =>
      clips.encode([...PICTURES, ...TONE, ...X264, ...AAC, '-omit_video_pes_length', '0']),
    playlist: USUAL,
  },
  {
    name: 'overlapping-pes',
    what: 'sound and picture interleaved packet by packet, across every key frame',
    make: altered((clip) => interleave(clip, 2)),
    playlist: USUAL,
  },
  {
    name: 'pes-without-pts',
    what: 'pictures in two PES packets, of which the second has no time',
    make: async (clips) =>
      editPes(await usual(clips), VIDEO_PID, ({ payload, ...header }) => [
        pesPacket(payload.subarray(0, payload.length >> 1), { ...header, length: 'none' }),
        pesPacket(payload.subarray(payload.length >> 1), { length: 'none' }),
      ]),
    playlist: USUAL,
  },
  {
    name: 'empty-pes',
    what: 'a PES packet without payload behind each of the sound',
    make: async (clips) =>
      editPes(await usual(clips), AUDIO_PID, ({ payload, ...header }) => [
        pesPacket(payload, header),
        pesPacket(Buffer.alloc(0), header),
      ]),
    playlist: USUAL,
    warnings: ['DTS_REPEATED'],
  },
  {
    name: 'pts-before-dts',
    what: 'pictures with a PTS one frame before their DTS',
    make: async (clips) =>
      editPes(await usual(clips), VIDEO_PID, ({ payload, ptsTicks = 0, streamId }) =>
        pesPacket(payload, { streamId, ptsTicks, dtsTicks: ptsTicks + 3000, length: 'none' }),
      ),
    playlist: USUAL,
    warnings: ['PTS_BEFORE_DTS'],
  },
  {
    name: 'equal-times',
    what: 'every tenth picture has the time of the one before it',
    make: async (clips) =>
      editPes(await usual(clips), VIDEO_PID, ({ payload, ptsTicks = 0, streamId }, unit) =>
        pesPacket(payload, {
          ...{ streamId, length: 'none' },
          ptsTicks: unit % 10 === 4 ? ptsTicks - 3000 : ptsTicks,
        }),
      ),
    playlist: USUAL,
    warnings: ['DTS_REPEATED'],
  },
  {
    name: 'pat-with-nit',
    what: 'the PAT names the network information table first',
    make: (clips) => clips.encode([...PICTURES, ...TONE, ...X264, ...AAC, '-mpegts_flags', 'nit']),
    playlist: USUAL,
  },
  {
    name: 'long-pmt',
    what: 'a PMT of two packets: leaves in one',
    make: altered((clip) =>
      replaceSections(clip, PMT_PID, () => {
        const descriptors = Buffer.alloc(200, 0xaa)
        descriptors[0] = 0x90
        descriptors[1] = 198
        return [
          pmtSection(
            1,
            VIDEO_PID,
            USUAL_MAP.map((stream) => ({ ...stream, descriptors })),
          ),
        ]
      }),
    ),
    playlist: USUAL,
  },
  {
    name: 'pmt-versions',
    what: 'a new version of the PMT each time, with nothing new in it',
    make: altered((clip) =>
      replaceSections(clip, PMT_PID, (unit) => [
        pmtSection(1, VIDEO_PID, USUAL_MAP, { version: unit & 31 }),
      ]),
    ),
    playlist: USUAL,
  },
  {
    name: 'broken-pmt',
    what: 'PMTs with a wrong checksum for 2 s, then good ones',
    make: altered((clip) =>
      replaceSections(clip, PMT_PID, (unit) => {
        const section = pmtSection(1, VIDEO_PID, USUAL_MAP)
        return [unit < 19 ? flip(section, 12, 1) : section]
      }),
    ),
    playlist: { ...USUAL, durations: [2, 2, 2], pictures: 180, sounds: 291 },
    bytesOut: 'from-key-frame',
  },
  {
    name: 'late-psi',
    what: 'no PAT and PMT in the first 2 s',
    make: altered((clip) => lose(clip, ({ pid, unit }) => isPsi(pid) && unit < 19)),
    playlist: { ...USUAL, durations: [2, 2, 2], pictures: 180, sounds: 291 },
    bytesOut: 'from-key-frame',
  },
  {
    name: 'rare-psi',
    what: 'PAT and PMT once in 16 s',
    make: async (clips) => {
      const clip = await usual(clips)
      return lose(join(clip, shift(clip, 8)), ({ pid, unit }) => isPsi(pid) && unit > 0)
    },
    playlist: { ...TWICE, tracks: USUAL.tracks },
    warnings: ['PSI_TOO_RARE'],
  },
  {
    name: '192-byte-packets',
    what: 'an arrival time before each packet (M2TS)',
    make: async (clips): Promise<Source> => {
      const args = [...PICTURES, ...TONE, ...X264, '-c:a', 'ac3', '-mpegts_m2ts_mode', '1']
      const sent = await clips.encode(args)
      return { steps: [sent], originals: [unstride(sent, { before: 4 })] }
    },
    playlist: { ...USUAL, sounds: 250, tracks: '4113:1b,4352:81' },
  },
  {
    name: '204-byte-packets',
    what: 'parity behind each packet (Reed-Solomon)',
    make: altered((clip) => restride(clip, { after: 16 })),
    playlist: USUAL,
  },
  {
    name: 'odd-payloads',
    what: 'SRT payloads of 1000 bytes, whatever the packets',
    make: usual,
    options: { payloadBytes: 1000 },
    playlist: USUAL,
  },
]
