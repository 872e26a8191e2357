/**
 * Packets and tables as various muxers write them.
 *
 * @module
 */
import { pesPacket, pmtSection, tsPacket } from '../../../mpegts/ts-builder.ts'
import { AAC, TEST_PATTERN, TONE, X264 } from '../clip.ts'
import {
  AUDIO_PID,
  editPackets,
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
} from '../../../mpegts/edit.ts'
import type { MediaCase, Source } from '../media-case.ts'
import { altered, flip, isPsi, TWICE, USUAL, usual, USUAL_MAP } from '../sources.ts'

export const MUXERS: readonly MediaCase[] = [
  {
    name: 'cbr-nulls',
    input: 'a constant bit rate, stuffed with null packets',
    make: (clips) => clips.encode([...TEST_PATTERN, ...TONE, ...X264, ...AAC, '-muxrate', '2000k']),
    playlist: USUAL,
  },
  {
    name: 'bounded-video-pes',
    input: 'video PES packets with PES_packet_length',
    make: (clips) =>
      clips.encode([...TEST_PATTERN, ...TONE, ...X264, ...AAC, '-omit_video_pes_length', '0']),
    playlist: USUAL,
  },
  {
    name: 'overlapping-pes',
    input: 'audio and video interleaved by transport packet, across every key frame',
    make: altered((clip) => interleave(clip, 2)),
    playlist: USUAL,
  },
  {
    name: 'counted-pcr-packets',
    input:
      'PCR packets without payload that increment the continuity counter, within every video frame',
    make: altered((clip) => {
      const pcr = { adaptationFlags: 0x10, adaptation: Buffer.alloc(6) }
      let counter = 15
      return editPackets(clip, ({ bytes, pid, index }) => {
        if (pid !== VIDEO_PID) return bytes
        const packets = index === 1 ? [tsPacket({ pid, ...pcr }), bytes] : [bytes]
        for (const packet of packets) {
          counter = (counter + 1) & 0x0f
          packet[3] = (packet[3]! & 0xf0) | counter
        }
        return packets
      })
    }),
    playlist: USUAL,
  },
  {
    name: 'pes-without-pts',
    input: 'access units in two PES packets, the second without a PTS',
    make: async (clips) =>
      editPes(await usual(clips), VIDEO_PID, ({ payload, ...header }) => [
        pesPacket(payload.subarray(0, payload.length >> 1), { ...header, length: 'none' }),
        pesPacket(payload.subarray(payload.length >> 1), { length: 'none' }),
      ]),
    playlist: USUAL,
    bytesOut: 'framed',
  },
  {
    name: 'audio-without-pts',
    input: 'audio PES packets of which every third has a PTS',
    make: async (clips) =>
      editPes(await usual(clips), AUDIO_PID, ({ payload, ptsTicks, streamId }, unit) =>
        pesPacket(payload, { streamId, ptsTicks: unit % 3 === 0 ? ptsTicks : undefined }),
      ),
    playlist: USUAL,
    bytesOut: 'framed',
  },
  {
    name: 'audio-across-pes',
    input: 'audio PES packets that end 100 bytes before the end of their last frame',
    make: async (clips) => {
      const clip = await usual(clips)
      let units = 0
      editPes(clip, AUDIO_PID, ({ payload, ...header }) => {
        units++
        return pesPacket(payload, header)
      })
      let rest: Buffer = Buffer.alloc(0)
      const cut = editPes(clip, AUDIO_PID, ({ payload, ...header }, unit) => {
        const end = payload.length - (unit === units - 1 ? 0 : 100)
        const bytes = Buffer.concat([rest, payload.subarray(0, end)])
        rest = payload.subarray(end)
        return pesPacket(bytes, header)
      })
      return { steps: [cut], originals: [clip] }
    },
    playlist: USUAL,
    bytesOut: 'rewrapped',
  },
  {
    name: 'empty-pes',
    input: 'an empty PES packet after each audio PES packet',
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
    input: 'video with each PTS one frame before its DTS',
    make: async (clips) =>
      editPes(await usual(clips), VIDEO_PID, ({ payload, ptsTicks = 0, streamId }) =>
        pesPacket(payload, { streamId, ptsTicks, dtsTicks: ptsTicks + 3000, length: 'none' }),
      ),
    playlist: USUAL,
    warnings: ['PTS_BEFORE_DTS'],
    cmaf: { offTicks: 3000 },
  },
  {
    name: 'equal-times',
    input: 'video with the times of every tenth frame repeated from the frame before',
    make: async (clips) =>
      editPes(await usual(clips), VIDEO_PID, ({ payload, ptsTicks = 0, streamId }, unit) =>
        pesPacket(payload, {
          ...{ streamId, length: 'none' },
          ptsTicks: unit % 10 === 4 ? ptsTicks - 3000 : ptsTicks,
        }),
      ),
    playlist: USUAL,
    warnings: ['DTS_REPEATED'],
    cmaf: { offTicks: 1800 },
  },
  {
    name: 'pat-with-nit',
    input: 'a PAT that lists the network information table first',
    make: (clips) =>
      clips.encode([...TEST_PATTERN, ...TONE, ...X264, ...AAC, '-mpegts_flags', 'nit']),
    playlist: USUAL,
  },
  {
    name: 'long-pmt',
    input: 'a PMT in two packets: sent in one',
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
    input: 'a PMT with a new version_number but the same content each time',
    make: altered((clip) =>
      replaceSections(clip, PMT_PID, (unit) => [
        pmtSection(1, VIDEO_PID, USUAL_MAP, { version: unit & 31 }),
      ]),
    ),
    playlist: USUAL,
  },
  {
    name: 'broken-pmt',
    input: 'PMTs with a wrong CRC_32 for 2 s, then correct ones',
    make: altered((clip) =>
      replaceSections(clip, PMT_PID, (unit) => {
        const section = pmtSection(1, VIDEO_PID, USUAL_MAP)
        return [unit < 19 ? flip(section, 12, 1) : section]
      }),
    ),
    playlist: { ...USUAL, durations: [2, 2, 2], videoFrames: 180, audioFrames: 291 },
    bytesOut: 'from-key-frame',
  },
  {
    name: 'late-psi',
    input: 'no PAT and PMT in the first 2 s',
    make: altered((clip) => lose(clip, ({ pid, unit }) => isPsi(pid) && unit < 19)),
    playlist: { ...USUAL, durations: [2, 2, 2], videoFrames: 180, audioFrames: 291 },
    bytesOut: 'from-key-frame',
  },
  {
    name: 'rare-psi',
    input: 'PAT and PMT once in 16 s',
    make: async (clips) => {
      const clip = await usual(clips)
      return lose(join(clip, shift(clip, 8)), ({ pid, unit }) => isPsi(pid) && unit > 0)
    },
    playlist: { ...TWICE, tracks: USUAL.tracks },
    warnings: ['PSI_TOO_RARE'],
    cmaf: { offTicks: 1920 },
  },
  {
    name: '192-byte-packets',
    input: 'an arrival timestamp before each packet (M2TS)',
    make: async (clips): Promise<Source> => {
      const args = [...TEST_PATTERN, ...TONE, ...X264, '-c:a', 'ac3', '-mpegts_m2ts_mode', '1']
      const sent = await clips.encode(args)
      return { steps: [sent], originals: [unstride(sent, { before: 4 })] }
    },
    playlist: { ...USUAL, audioFrames: 250, tracks: '4113:1b,4352:81' },
  },
  {
    name: '204-byte-packets',
    input: 'a Reed-Solomon code after each packet',
    make: altered((clip) => restride(clip, { after: 16 })),
    playlist: USUAL,
  },
  {
    name: 'odd-payloads',
    input: 'SRT payloads of 1000 bytes, not aligned to packets',
    make: usual,
    options: { payloadBytes: 1000 },
    playlist: USUAL,
  },
]
