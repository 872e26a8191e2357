/**
 * What encoders make of pictures and sound.
 *
 * @module
 */
import { AAC, gop, lavfi, PICTURES, TONE, X264, X265 } from '../clip.ts'
import type { MediaCase } from '../media-case.ts'
import { audioOnly, H264_AAC, h265, usual, USUAL, videoOnly } from '../sources.ts'

export const CODECS: readonly MediaCase[] = [
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
    warnings: ['OPEN_GOP'],
  },
  {
    name: 'h264-intra-refresh',
    what: 'H.264 that is refreshed piece by piece: one key frame, then none',
    make: (clips) =>
      clips.encode([...PICTURES, ...TONE, ...X264, '-x264-params', 'intra-refresh=1', ...AAC]),
    options: { maxSegmentSec: 4 },
    playlist: { ...USUAL, durations: [4.47, 3.53] },
    targetSec: 4,
    independent: false,
    warnings: ['GOP_TOO_LONG', 'INTRA_REFRESH'],
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
    warnings: ['OPEN_GOP'],
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
]
