/**
 * The corpus: what encoders, muxers and networks do to a stream, and what must come of each.
 *
 * @module
 */
import { pesPacket, pmtSection } from '../mpegts/ts-builder.ts'
import {
  AAC,
  gop,
  lavfi,
  OTHER_TONE,
  PICTURES,
  TONE,
  X264,
  X265,
  type Clip,
  type ClipFolder,
} from './clip.ts'
import {
  AUDIO_PID,
  editNalUnits,
  editPackets,
  editPes,
  interleave,
  join,
  lose,
  PAT_PID,
  PMT_PID,
  replaceSections,
  restride,
  shift,
  split,
  swap,
  unstride,
  VIDEO_PID,
} from './edit.ts'
import type { MediaCase, Source } from './media-case.ts'
import type { Step } from './publish.ts'

/** 8 s of H.264, a key frame every 2 s, and AAC. */
const usual = (clips: ClipFolder) => clips.encode([...PICTURES, ...TONE, ...X264, ...AAC])
const videoOnly = (clips: ClipFolder) => clips.encode([...PICTURES, ...X264])
const audioOnly = (clips: ClipFolder) => clips.encode([...TONE, ...AAC])
const small = (clips: ClipFolder) =>
  clips.encode([...lavfi('testsrc2=s=160x90:r=30'), ...TONE, ...X264, ...AAC])
const h265 = (clips: ClipFolder) =>
  clips.encode([...PICTURES, ...TONE, ...X265, 'keyint=60:min-keyint=60:open-gop=0', ...AAC])

/** What comes of `usual`, and of everything that loses nothing of it. */
const USUAL = { durations: [2, 2, 2, 2], pictures: 240, sounds: 376, tracks: '256:1b,257:f' }
const TWICE = {
  durations: [2, 2, 2, 2, 2, 2, 2, 2],
  pictures: 480,
  sounds: 752,
  tracks: [USUAL.tracks, USUAL.tracks],
}
const H264_AAC = 'avc1.42c00d,mp4a.40.2'

/** A clip to which something is done that leaves its media whole. */
const altered =
  (alter: (clip: Clip) => Clip | readonly Step[], original = usual) =>
  async (clips: ClipFolder): Promise<Source> => {
    const clip = await original(clips)
    const result = alter(clip)
    return { steps: 'bytes' in result ? [result] : result, originals: [clip] }
  }

/** Clips one after the other in one connection, each with a layout or time line of its own. */
const sequence =
  (...makes: ((clips: ClipFolder) => Promise<Clip>)[]) =>
  async (clips: ClipFolder): Promise<Source> => {
    const originals = await Promise.all(makes.map((make) => make(clips)))
    return { steps: [join(...originals)], originals }
  }

const shifted = (make: (clips: ClipFolder) => Promise<Clip>, sec: number) => (clips: ClipFolder) =>
  make(clips).then((clip) => shift(clip, sec))

/** ffmpeg once more, over a clip that it made. */
const recode =
  (make: (clips: ClipFolder) => Promise<Clip>, args: readonly string[]) =>
  async (clips: ClipFolder): Promise<Clip> => {
    const { bytes, sec } = await make(clips)
    return clips.encode(['-i', await clips.write(bytes), ...args], sec)
  }

const USUAL_MAP = [
  { pid: VIDEO_PID, streamType: 0x1b },
  { pid: AUDIO_PID, streamType: 0x0f },
]

const isPsi = (pid: number) => pid === PAT_PID || pid === PMT_PID
const isPicture = (unit: number) => (packet: { pid: number; unit: number }) =>
  packet.pid === VIDEO_PID && packet.unit === unit

const flip = (bytes: Buffer, at: number, mask: number) => {
  bytes[at] = bytes[at]! ^ mask
  return bytes
}

export const CORPUS: readonly MediaCase[] = [
  // What encoders send.
  {
    name: 'h264-aac',
    what: 'H.264 and AAC as ffmpeg sends them',
    make: usual,
    playlist: USUAL,
    codecs: H264_AAC,
  },
  {
    name: 'h264-open-gop',
    what: 'H.264 with open GOPs: after the first, key frames are no IDR',
    make: (clips) =>
      clips.encode([
        ...[...PICTURES, ...TONE, ...X264, '-bf', '3', '-x264-params', 'open-gop=1:b-adapt=0'],
        ...AAC,
      ]),
    playlist: USUAL,
    independent: false,
  },
  {
    name: 'h264-intra-refresh',
    what: 'H.264 that is refreshed piece by piece: one key frame, then none',
    make: (clips) =>
      clips.encode([...PICTURES, ...TONE, ...X264, '-x264-params', 'intra-refresh=1', ...AAC]),
    options: { maxSegmentSec: 4 },
    playlist: { ...USUAL, durations: [4, 4] },
    targetSec: 4,
    independent: false,
    warnings: ['GOP_TOO_LONG'],
  },
  {
    name: 'h264-b-pyramid',
    what: 'H.264 with 8 B-frames in pyramids',
    make: (clips) =>
      clips.encode([
        ...[...PICTURES, ...TONE, ...X264, '-bf', '8', '-b_strategy', '2'],
        ...['-x264-params', 'b-pyramid=normal:open-gop=0', ...AAC],
      ]),
    playlist: USUAL,
  },
  {
    name: 'h264-interlaced',
    what: 'H.264 of two fields a picture',
    make: (clips) =>
      clips.encode([
        ...[...lavfi('testsrc2=s=320x192:r=25'), ...TONE, ...X264, ...gop(50)],
        ...['-profile:v', 'main', '-flags', '+ilme+ildct', '-top', '1', ...AAC],
      ]),
    playlist: { ...USUAL, pictures: 200 },
  },
  {
    name: 'h265-closed-gop',
    what: 'H.265 with closed GOPs',
    make: h265,
    playlist: { ...USUAL, tracks: '256:24,257:f' },
  },
  {
    name: 'h265-open-gop',
    what: 'H.265 with open GOPs, as x265 sends it unless told: CRA with leading pictures',
    make: (clips) =>
      clips.encode([...PICTURES, ...TONE, ...X265, 'keyint=60:min-keyint=60', ...AAC]),
    playlist: { ...USUAL, tracks: '256:24,257:f' },
    independent: false,
  },
  {
    name: 'video-only',
    what: 'no sound',
    make: videoOnly,
    playlist: { ...USUAL, sounds: 0, tracks: '256:1b' },
    codecs: 'avc1.42c00d',
  },
  {
    name: 'audio-only',
    what: 'no picture',
    make: audioOnly,
    playlist: {
      durations: [1.81, 1.86, 1.88, 1.88, 0.7],
      ...{ pictures: 0, sounds: 376, tracks: '256:f' },
    },
    codecs: 'mp4a.40.2',
  },
  {
    name: 'aac-5.1',
    what: 'AAC of 6 channels at 44.1 kHz',
    make: (clips) =>
      clips.encode([...PICTURES, ...TONE, ...X264, ...AAC, '-ar', '44100', '-ac', '6']),
    playlist: { ...USUAL, sounds: 346 },
  },
  {
    name: 'aac-frame-per-pes',
    what: 'each AAC frame in a PES packet of its own',
    make: (clips) =>
      clips.encode([...PICTURES, ...TONE, ...X264, ...AAC, '-pes_payload_size', '0']),
    playlist: USUAL,
  },
  {
    name: 'latm',
    what: 'AAC in LATM: leaves as ADTS',
    make: (clips) => clips.encode([...PICTURES, ...TONE, ...X264, ...AAC, '-mpegts_flags', 'latm']),
    playlist: USUAL,
    codecs: H264_AAC,
    bytesOut: 'rewrapped',
  },
  {
    name: 'mp3',
    what: 'MP3',
    make: (clips) => clips.encode([...PICTURES, ...TONE, ...X264, '-c:a', 'libmp3lame']),
    playlist: { ...USUAL, sounds: 335, tracks: '256:1b,257:3' },
    codecs: 'avc1.42c00d,mp4a.40.34',
  },
  {
    name: 'mp2',
    what: 'MPEG-1 layer 2',
    make: (clips) => clips.encode([...PICTURES, ...TONE, ...X264, '-c:a', 'mp2']),
    playlist: { ...USUAL, sounds: 334, tracks: '256:1b,257:3' },
    codecs: 'avc1.42c00d,mp4a.40.33',
  },
  {
    name: 'ac3',
    what: 'AC-3 as ATSC carries it',
    make: (clips) => clips.encode([...PICTURES, ...TONE, ...X264, '-c:a', 'ac3']),
    playlist: { ...USUAL, sounds: 250, tracks: '256:1b,257:81' },
    codecs: 'avc1.42c00d,ac-3',
  },
  {
    name: 'ac3-dvb',
    what: 'AC-3 as DVB carries it: leaves as ATSC has it',
    make: (clips) =>
      clips.encode([...PICTURES, ...TONE, ...X264, '-c:a', 'ac3', '-mpegts_flags', 'system_b']),
    playlist: { ...USUAL, sounds: 250, tracks: '256:1b,257:81' },
    codecs: 'avc1.42c00d,ac-3',
  },
  {
    name: 'eac3',
    what: 'E-AC-3, on which hls.js fails: left out',
    make: (clips) => clips.encode([...PICTURES, ...TONE, ...X264, '-c:a', 'eac3']),
    playlist: { ...USUAL, sounds: 0, tracks: '256:1b' },
    codecs: 'avc1.42c00d',
    warnings: ['TRACKS_LEFT_OUT'],
  },
  {
    name: 'eac3-all',
    what: 'E-AC-3 with HLS_TRACKS=all',
    make: (clips) => clips.encode([...PICTURES, ...TONE, ...X264, '-c:a', 'eac3']),
    options: { tracks: 'all' },
    playlist: { ...USUAL, sounds: 250, tracks: '256:1b,257:87' },
    codecs: 'avc1.42c00d,ec-3',
    beyondHlsJs: true,
  },
  {
    name: 'opus',
    what: 'Opus, which no player of HLS knows in a transport stream: left out',
    make: (clips) => clips.encode([...PICTURES, ...TONE, ...X264, '-c:a', 'libopus']),
    playlist: { ...USUAL, sounds: 0, tracks: '256:1b' },
    codecs: 'avc1.42c00d',
    warnings: ['TRACKS_LEFT_OUT'],
  },
  {
    name: 'opus-all',
    what: 'Opus with HLS_TRACKS=all',
    make: (clips) => clips.encode([...PICTURES, ...TONE, ...X264, '-c:a', 'libopus']),
    options: { tracks: 'all' },
    playlist: { ...USUAL, sounds: 401, tracks: '256:1b,257:6' },
    codecs: 'avc1.42c00d,opus',
    beyondHlsJs: true,
  },
  {
    name: 'two-audio',
    what: 'sound in two languages: the second becomes a rendition',
    make: (clips) =>
      clips.encode([
        ...[...PICTURES, ...TONE, ...OTHER_TONE, '-map', '0', '-map', '1', '-map', '2'],
        ...[...X264, ...AAC, '-metadata:s:a:0', 'language=eng', '-metadata:s:a:1', 'language=fra'],
      ]),
    playlist: USUAL,
    codecs: H264_AAC,
    renditions: { 'audio-2.m3u8': { pictures: 0, sounds: 376, tracks: '258:f' } },
  },

  // How key frames come.
  {
    name: 'gop-of-8s',
    what: 'key frames further apart than a segment may last: it is cut between them',
    make: (clips) => clips.encode([...PICTURES, ...TONE, ...X264, ...gop(240), ...AAC]),
    options: { maxSegmentSec: 4 },
    playlist: { ...USUAL, durations: [4, 4] },
    targetSec: 4,
    independent: false,
    warnings: ['GOP_TOO_LONG'],
  },
  {
    name: 'one-key-frame',
    what: 'one key frame, then 21 s without',
    make: (clips) =>
      clips.encode(
        [...lavfi('testsrc2=s=160x90:r=10'), ...TONE, ...X264, ...gop(100_000), ...AAC],
        21,
      ),
    playlist: { durations: [10, 10, 1], pictures: 210, sounds: 986, tracks: USUAL.tracks },
    targetSec: 10,
    independent: false,
    warnings: ['GOP_TOO_LONG'],
  },
  {
    name: 'irregular-gop',
    what: 'key frames at 0, 0.7, 3.1, 3.9 and 6.2 s',
    make: (clips) =>
      clips.encode([
        ...[...PICTURES, ...TONE, ...X264, ...gop(1000), ...AAC],
        ...['-force_key_frames', '0,0.7,3.1,3.9,6.2'],
      ]),
    playlist: { ...USUAL, durations: [3.1, 3.1, 1.8] },
    targetSec: 3,
  },
  {
    name: 'half-second-gop',
    what: 'key frames every half second: four make a segment',
    make: (clips) => clips.encode([...PICTURES, ...TONE, ...X264, ...gop(15), ...AAC]),
    playlist: USUAL,
  },
  {
    name: 'variable-frame-rate',
    what: 'pictures at uneven distances',
    make: (clips) =>
      clips.encode([
        ...[...PICTURES, ...TONE, '-vf', "select='not(mod(n,3))+not(mod(n,7))'"],
        ...['-fps_mode', 'vfr', ...X264, ...gop(1000), '-force_key_frames', '0,2,4,6', ...AAC],
      ]),
    playlist: { ...USUAL, durations: [2, 2, 2, 2.03], pictures: 103 },
  },
  {
    name: '1-fps',
    what: '1 picture a second',
    make: (clips) =>
      clips.encode([...lavfi('testsrc2=s=320x180:r=1'), ...TONE, ...X264, ...gop(2), ...AAC]),
    playlist: { ...USUAL, pictures: 8 },
  },
  {
    name: '120-fps',
    what: '120 pictures a second',
    make: (clips) =>
      clips.encode([...lavfi('testsrc2=s=320x180:r=120'), ...TONE, ...X264, ...gop(240), ...AAC]),
    playlist: { ...USUAL, pictures: 960 },
  },
  {
    name: '29.97-fps',
    what: '30000/1001 pictures a second',
    make: (clips) =>
      clips.encode([...lavfi('testsrc2=s=320x180:r=30000/1001'), ...TONE, ...X264, ...AAC]),
    playlist: USUAL,
  },
  {
    name: 'huge-key-frames',
    what: 'key frames of more than 1 MB',
    make: (clips) =>
      clips.encode(
        [
          ...[...lavfi('testsrc2=s=1280x720:r=10'), ...TONE, '-vf', 'noise=alls=100:allf=t'],
          ...[...X264, ...gop(20), '-crf', '4', ...AAC],
        ],
        4,
      ),
    playlist: { durations: [2, 2], pictures: 40, sounds: 189, tracks: USUAL.tracks },
  },
  {
    name: 'no-parameter-sets',
    what: 'H.264 without SPS and PPS: nobody could decode it',
    make: recode(usual, ['-c', 'copy', '-bsf:v', 'filter_units=remove_types=7-8']),
    warnings: ['NO_KEY_FRAME'],
  },
  {
    name: 'parameter-sets-once',
    what: 'SPS and PPS before the first key frame only: put before the others too',
    make: altered((clip) =>
      editNalUnits(clip, (nalUnits, unit) =>
        unit === 0 ? nalUnits : nalUnits.filter((nal) => ![7, 8].includes(nal[0]! & 31)),
      ),
    ),
    playlist: USUAL,
    bytesOut: 'completed',
  },
  {
    name: 'no-delimiters',
    what: 'H.264 without access unit delimiters: put before key frames',
    make: altered((clip) =>
      editNalUnits(clip, (nalUnits) => nalUnits.filter((nal) => (nal[0]! & 31) !== 9)),
    ),
    playlist: USUAL,
    bytesOut: 'completed',
  },
  {
    name: 'large-sei',
    what: '1500 bytes of SEI before the slices of key frames',
    make: async (clips) =>
      editNalUnits(await usual(clips), (nalUnits, unit) => {
        if (unit % 60 > 0) return nalUnits
        const payload = Buffer.alloc(1500, 0x55)
        const sei = Buffer.from([0x06, 0x05, ...Array<number>(5).fill(0xff), 1500 - 5 * 255])
        const [delimiter, ...others] = nalUnits
        return [delimiter!, Buffer.concat([sei, payload, Buffer.from([0x80])]), ...others]
      }),
    playlist: USUAL,
  },

  // How muxers put it into packets.
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
  },
  {
    name: 'pts-before-dts',
    what: 'pictures with a PTS one frame before their DTS',
    make: async (clips) =>
      editPes(await usual(clips), VIDEO_PID, ({ payload, ptsTicks = 0, streamId }) =>
        pesPacket(payload, { streamId, ptsTicks, dtsTicks: ptsTicks + 3000, length: 'none' }),
      ),
    playlist: USUAL,
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
    what: 'PAT and PMT every 10 s',
    make: (clips) => clips.encode([...PICTURES, ...TONE, ...X264, ...AAC, '-pat_period', '10']),
    playlist: USUAL,
  },
  {
    name: 'two-programs',
    what: 'two programs: the first with video is taken',
    make: (clips) =>
      clips.encode([
        ...[...PICTURES, ...TONE, ...OTHER_TONE, '-map', '2', '-map', '0', '-map', '1'],
        ...[...X264, ...AAC, '-program', 'program_num=1:st=0'],
        ...['-program', 'program_num=2:st=1:st=2'],
      ]),
    playlist: { ...USUAL, tracks: '257:1b,258:f' },
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

  // Time.
  {
    name: 'pts-wrap',
    what: '33-bit timestamps wrap: no seam',
    make: (clips) =>
      clips.encode([...PICTURES, ...TONE, ...X264, ...AAC, '-output_ts_offset', '95440']),
    playlist: USUAL,
  },
  {
    name: 'jump-forward',
    what: 'timestamps jump 1000 s ahead',
    make: sequence(usual, shifted(usual, 1008)),
    playlist: TWICE,
    seams: [4],
    warnings: ['TIMESTAMP_JUMP'],
  },
  {
    name: 'jump-back',
    what: 'timestamps jump 1000 s back',
    make: sequence(shifted(usual, 1000), usual),
    playlist: TWICE,
    seams: [4],
    warnings: ['TIMESTAMP_JUMP'],
  },
  {
    name: 'gap-of-1s',
    what: '1 s is missing inside a GOP: no seam',
    make: async (clips) => {
      const [before, after] = split(await usual(clips), 210)
      return join(before, shift(after, 1))
    },
    playlist: { ...USUAL, durations: [2, 2, 2, 2, 1] },
    independent: false,
    warnings: ['GOP_TOO_LONG'],
  },
  {
    name: 'gap-of-5s',
    what: '5 s are missing from the timestamps',
    make: sequence(usual, shifted(usual, 13)),
    playlist: TWICE,
    seams: [4],
    warnings: ['TIMESTAMP_JUMP'],
  },
  {
    name: 'audio-late',
    what: 'sound begins 1 s after the picture',
    make: (clips) => clips.encode([...PICTURES, '-itsoffset', '1', ...TONE, ...X264, ...AAC]),
    playlist: { ...USUAL, sounds: 330 },
  },
  {
    name: 'audio-early',
    what: 'sound begins 1 s before the picture',
    make: (clips) => clips.encode(['-itsoffset', '1', ...PICTURES, ...TONE, ...X264, ...AAC]),
    playlist: { ...USUAL, durations: [2, 2, 2, 1], pictures: 210, sounds: 334 },
    bytesOut: 'from-key-frame',
  },
  {
    name: 'audio-drift',
    what: 'sound of a clock that runs 500 ppm fast',
    make: (clips) =>
      clips.encode([
        ...PICTURES,
        ...TONE,
        '-af',
        'asetrate=48024,aresample=48000',
        ...X264,
        ...AAC,
      ]),
    playlist: USUAL,
  },
  {
    name: 'stall-1s',
    what: 'nothing arrives for 1 s',
    make: altered((clip) => stall(clip, 1)),
    playlist: USUAL,
  },
  {
    name: 'stall-5s',
    what: 'nothing arrives for 5 s',
    make: altered((clip) => stall(clip, 5.5)),
    playlist: USUAL,
    warnings: ['NO_MEDIA'],
  },
  {
    name: 'stall-30s',
    what: 'nothing arrives for 30 s',
    make: altered((clip) => stall(clip, 30)),
    playlist: USUAL,
    warnings: ['NO_MEDIA'],
  },

  // What changes on the way.
  {
    name: 'reconnect-2s',
    what: 'the encoder is gone for 2 s and starts anew',
    make: (clips) => reconnect(clips, 2),
    playlist: TWICE,
    seams: [4],
  },
  {
    name: 'reconnect-40s',
    what: 'the encoder is gone for 40 s and starts anew',
    make: (clips) => reconnect(clips, 40),
    playlist: TWICE,
    seams: [4],
  },
  {
    name: 'resolution-change',
    what: '160x90 becomes 320x180',
    make: sequence(small, shifted(usual, 8)),
    playlist: TWICE,
    seams: [4],
    codecs: H264_AAC,
  },
  {
    name: 'codec-change',
    what: 'H.264 becomes H.265',
    make: sequence(usual, shifted(h265, 8)),
    playlist: { ...TWICE, tracks: [USUAL.tracks, '256:24,257:f'] },
    seams: [4],
  },
  {
    name: 'audio-added',
    what: 'sound comes in after 8 s',
    make: sequence(videoOnly, shifted(usual, 8)),
    playlist: { ...TWICE, sounds: 376, tracks: ['256:1b', USUAL.tracks] },
    seams: [4],
  },
  {
    name: 'audio-removed',
    what: 'sound is gone after 8 s',
    make: sequence(usual, shifted(videoOnly, 8)),
    playlist: { ...TWICE, sounds: 376, tracks: [USUAL.tracks, '256:1b'] },
    seams: [4],
  },

  // What networks do.
  {
    name: 'joined-inside-a-packet',
    what: 'the first byte is in the middle of a packet of the first key frame',
    make: altered((clip) => {
      const [head] = split(clip, 30)
      const at = head.bytes.length - 100
      return { bytes: clip.bytes.subarray(at), sec: clip.sec - head.sec }
    }),
    playlist: { ...USUAL, durations: [2, 2, 2], pictures: 180, sounds: 291 },
    bytesOut: 'from-key-frame',
  },
  {
    name: 'junk-between-packets',
    what: '3 bytes too many between two packets',
    make: altered((clip) =>
      editPackets(clip, (packet) =>
        isPicture(90)(packet) && packet.index === 1
          ? [Buffer.from([1, 0x47, 3]), packet.bytes]
          : packet.bytes,
      ),
    ),
    playlist: USUAL,
  },
  {
    name: 'junk-inside-a-packet',
    what: 'a byte too many inside a packet',
    make: altered((clip) =>
      editPackets(clip, (packet) =>
        isPicture(90)(packet) && packet.index === 1
          ? [packet.bytes.subarray(0, 100), Buffer.of(0x47), packet.bytes.subarray(100)]
          : packet.bytes,
      ),
    ),
    playlist: USUAL,
    bytesOut: 'damaged',
  },
  {
    name: 'lost-inside-pictures',
    what: 'a packet of every tenth picture that is no key frame is lost',
    make: altered((clip) =>
      lose(clip, ({ pid, unit, index }) => pid === VIDEO_PID && unit % 10 === 5 && index === 1),
    ),
    playlist: USUAL,
    bytesOut: 'damaged',
  },
  {
    name: 'lost-inside-a-key-frame',
    what: 'a packet of a key frame is lost: no segment starts with it',
    make: altered((clip) => lose(clip, (packet) => isPicture(120)(packet) && packet.index === 2)),
    playlist: { ...USUAL, durations: [2, 2.03, 1.97, 2], pictures: 239 },
    independent: false,
    bytesOut: 'damaged',
    warnings: ['GOP_TOO_LONG'],
  },
  {
    name: 'lost-in-a-burst',
    what: 'a whole key frame and its neighbours are lost',
    make: altered((clip) =>
      lose(clip, ({ pid, unit }) => pid === VIDEO_PID && unit >= 118 && unit <= 122),
    ),
    playlist: { ...USUAL, durations: [2, 2.1, 1.9, 2], pictures: 235 },
    independent: false,
    bytesOut: 'damaged',
    warnings: ['GOP_TOO_LONG'],
  },
  {
    name: 'lost-sound',
    what: 'a packet of every fifth PES packet of the sound is lost',
    make: altered((clip) =>
      lose(clip, ({ pid, unit, index }) => pid === AUDIO_PID && unit % 5 === 2 && index === 1),
    ),
    playlist: { ...USUAL, sounds: 299 },
    bytesOut: 'damaged',
  },
  {
    name: 'duplicates',
    what: 'packets that come twice',
    make: altered((clip) =>
      editPackets(clip, ({ bytes, index }) => (index % 3 === 1 ? [bytes, bytes] : bytes)),
    ),
    playlist: USUAL,
  },
  {
    name: 'reordered',
    what: 'two packets of a picture in the wrong order',
    make: altered((clip) => swap(clip, (packet) => isPicture(90)(packet) && packet.index === 1)),
    playlist: USUAL,
    bytesOut: 'damaged',
  },
  {
    name: 'transport-errors',
    what: 'packets that a demodulator marked as broken',
    make: altered((clip) =>
      editPackets(clip, ({ bytes, pid, unit, index }) =>
        pid === VIDEO_PID && unit % 10 === 5 && index === 1 ? flip(bytes, 1, 0x80) : bytes,
      ),
    ),
    playlist: USUAL,
    bytesOut: 'damaged',
  },
  {
    name: 'scrambled',
    what: 'scrambled packets: nobody could decode them',
    make: altered((clip) =>
      editPackets(clip, ({ bytes, pid }) => (isPsi(pid) ? bytes : flip(bytes, 3, 0x80))),
    ),
    warnings: ['NO_MEDIA'],
  },
  {
    name: 'psi-alone',
    what: 'PAT and PMT, and nothing else',
    make: altered((clip) => lose(clip, ({ pid }) => !isPsi(pid))),
    warnings: ['NO_MEDIA'],
  },
  {
    name: 'no-transport-stream',
    what: 'something else than a transport stream',
    make: altered(({ bytes, sec }) => ({ bytes: Buffer.alloc(bytes.length, 0x55), sec })),
    warnings: ['NO_PAT'],
  },
]

/** Nothing arrives in the middle of a GOP for so long; then all of it does. */
function stall(clip: Clip, silentSec: number): Step[] {
  const [before, after] = split(clip, 90)
  return [before, { silentSec }, after]
}

async function reconnect(clips: ClipFolder, awaySec: number): Promise<Source> {
  const clip = await usual(clips)
  return { steps: [clip, { awaySec }, clip], originals: [clip, clip] }
}
