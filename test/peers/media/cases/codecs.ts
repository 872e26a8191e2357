/**
 * Codecs and their variants.
 *
 * @module
 */
import { AAC, gop, lavfi, TEST_PATTERN, TONE, X264, X265 } from '../clip.ts'
import type { MediaCase } from '../media-case.ts'
import { audioOnly, H264_AAC, h265, usual, USUAL, videoOnly } from '../sources.ts'

/** H.265 with 10 bits in the wide color space of HDR. */
function hdr265(transfer: string): string[] {
  const params = `keyint=60:min-keyint=60:open-gop=0:colorprim=bt2020:colormatrix=bt2020nc:${transfer}`
  return [...TEST_PATTERN, ...TONE, ...X265, params, '-pix_fmt', 'yuv420p10le', ...AAC]
}

export const CODECS: readonly MediaCase[] = [
  {
    name: 'h264-aac',
    input: 'H.264 and AAC as ffmpeg sends them',
    make: usual,
    playlist: USUAL,
    codecs: H264_AAC,
  },
  {
    name: 'h264-open-gop',
    input:
      'H.264 with open GOPs: after the first IDR, key frames are I pictures with a recovery point',
    make: (clips) =>
      clips.encode([
        ...[...TEST_PATTERN, ...TONE, ...X264, '-bf', '3', '-x264-params', 'open-gop=1:b-adapt=0'],
        ...AAC,
      ]),
    // With parts, the last EXTINF is a frame longer, in transport stream too.
    options: { partSec: undefined },
    playlist: USUAL,
    independent: false,
    warnings: ['OPEN_GOP'],
    cmaf: { findings: ['SEGMENT_WITHOUT_KEY_FRAME', 'EXTINF_INEXACT'], offTicks: 9000 },
  },
  {
    name: 'h264-intra-refresh',
    input: 'H.264 with intra refresh: one key frame, then none',
    make: (clips) =>
      clips.encode([...TEST_PATTERN, ...TONE, ...X264, '-x264-params', 'intra-refresh=1', ...AAC]),
    options: { maxSegmentSec: 4 },
    bytesOut: 'completed',
    playlist: { ...USUAL, durations: [4.47, 3.53] },
    targetSec: 4,
    independent: false,
    warnings: ['GOP_TOO_LONG', 'INTRA_REFRESH'],
    findings: ['SEGMENT_WITHOUT_KEY_FRAME'],
  },
  {
    name: 'h264-b-pyramid',
    input: 'H.264 with pyramids of 8 B-frames',
    make: (clips) =>
      clips.encode([
        ...[...TEST_PATTERN, ...TONE, ...X264, '-bf', '8', '-b_strategy', '2'],
        ...['-x264-params', 'b-pyramid=normal:open-gop=0', ...AAC],
      ]),
    playlist: USUAL,
  },
  {
    name: 'h264-interlaced',
    input: 'interlaced H.264: two fields per frame',
    make: (clips) =>
      clips.encode([
        ...[...lavfi('testsrc2=s=320x192:r=25'), ...TONE, ...X264, ...gop(50)],
        ...['-profile:v', 'main', '-flags', '+ilme+ildct', '-top', '1', ...AAC],
      ]),
    playlist: { ...USUAL, videoFrames: 200 },
  },
  {
    name: 'h265-closed-gop',
    input: 'H.265 with closed GOPs',
    make: h265,
    playlist: { ...USUAL, tracks: '256:24,257:f' },
  },
  {
    name: 'h265-open-gop',
    input: 'H.265 with open GOPs, the default of x265: CRA with leading pictures',
    make: (clips) =>
      clips.encode([...TEST_PATTERN, ...TONE, ...X265, 'keyint=60:min-keyint=60', ...AAC]),
    // With parts, the last EXTINF is a frame longer, in transport stream too.
    options: { partSec: undefined },
    playlist: { ...USUAL, tracks: '256:24,257:f' },
    independent: false,
    warnings: ['OPEN_GOP'],
    cmaf: { findings: ['EXTINF_INEXACT'], offTicks: 9000 },
  },
  {
    name: 'h264-pq',
    input: 'H.264 in HDR with the PQ transfer function',
    make: (clips) =>
      clips.encode([
        ...[...TEST_PATTERN, ...TONE, ...X264],
        ...['-color_primaries', 'bt2020', '-colorspace', 'bt2020nc', '-color_trc', 'smpte2084'],
        ...AAC,
      ]),
    playlist: USUAL,
    multivariantContains: ['VIDEO-RANGE=PQ'],
  },
  {
    name: 'h264-hlg',
    input: 'H.264 in HDR with the HLG transfer function',
    make: (clips) =>
      clips.encode([
        ...[...TEST_PATTERN, ...TONE, ...X264],
        ...['-color_primaries', 'bt2020', '-colorspace', 'bt2020nc', '-color_trc', 'arib-std-b67'],
        ...AAC,
      ]),
    playlist: USUAL,
    multivariantContains: ['VIDEO-RANGE=HLG'],
  },
  {
    name: 'h265-pq',
    input: 'H.265 in HDR with the PQ transfer function',
    make: (clips) => clips.encode(hdr265('transfer=smpte2084')),
    playlist: { ...USUAL, tracks: '256:24,257:f' },
    multivariantContains: ['VIDEO-RANGE=PQ'],
  },
  {
    name: 'h265-hlg',
    input: 'H.265 in HDR with the HLG transfer function',
    make: (clips) => clips.encode(hdr265('transfer=arib-std-b67')),
    playlist: { ...USUAL, tracks: '256:24,257:f' },
    multivariantContains: ['VIDEO-RANGE=HLG'],
  },
  {
    name: 'h265-hlg-compatible',
    input: 'H.265 in HLG that SDR displays show too: HLG is in an SEI message',
    make: (clips) => clips.encode(hdr265('transfer=bt2020-10:atc-sei=18')),
    playlist: { ...USUAL, tracks: '256:24,257:f' },
    multivariantContains: ['VIDEO-RANGE=HLG'],
  },
  {
    name: 'video-only',
    input: 'H.264 without audio',
    make: videoOnly,
    playlist: { ...USUAL, audioFrames: 0, tracks: '256:1b' },
    codecs: 'avc1.42c00d',
  },
  {
    name: 'audio-only',
    input: 'AAC without video',
    make: audioOnly,
    playlist: {
      durations: [1.81, 1.86, 1.88, 1.88, 0.7],
      ...{ videoFrames: 0, audioFrames: 376, tracks: '256:f' },
    },
    codecs: 'mp4a.40.2',
  },
  {
    name: 'aac-5.1',
    input: 'AAC with 6 channels at 44.1 kHz',
    make: (clips) =>
      clips.encode([...TEST_PATTERN, ...TONE, ...X264, ...AAC, '-ar', '44100', '-ac', '6']),
    playlist: { ...USUAL, audioFrames: 346 },
  },
  {
    name: 'aac-5.1-side',
    input: 'AAC with 6 channels in an order of its own, which is sent once',
    make: (clips) =>
      clips.encode([
        ...[...TEST_PATTERN, ...TONE, ...X264, ...AAC],
        ...['-af', 'aformat=channel_layouts=5.1(side)'],
      ]),
    playlist: USUAL,
    codecs: H264_AAC,
    bytesOut: 'rewrapped',
  },
  {
    name: 'aac-frame-per-pes',
    input: 'one AAC frame per PES packet',
    make: (clips) =>
      clips.encode([...TEST_PATTERN, ...TONE, ...X264, ...AAC, '-pes_payload_size', '0']),
    playlist: USUAL,
  },
  {
    name: 'latm',
    input: 'AAC in LATM: converted to ADTS',
    make: (clips) =>
      clips.encode([...TEST_PATTERN, ...TONE, ...X264, ...AAC, '-mpegts_flags', 'latm']),
    playlist: USUAL,
    codecs: H264_AAC,
    bytesOut: 'rewrapped',
  },
  {
    name: 'mp3',
    input: 'MP3',
    make: (clips) => clips.encode([...TEST_PATTERN, ...TONE, ...X264, '-c:a', 'libmp3lame']),
    playlist: { ...USUAL, audioFrames: 335, tracks: '256:1b,257:3' },
    codecs: 'avc1.42c00d,mp4a.40.34',
  },
  {
    name: 'mp2',
    input: 'MPEG-1 Audio Layer II',
    make: (clips) => clips.encode([...TEST_PATTERN, ...TONE, ...X264, '-c:a', 'mp2']),
    playlist: { ...USUAL, audioFrames: 334, tracks: '256:1b,257:3' },
    codecs: 'avc1.42c00d,mp4a.40.33',
    warnings: ['TRACKS_NOT_IN_CMAF'],
    cmaf: { audio: false },
  },
  {
    name: 'ac3',
    input: 'AC-3 with ATSC signaling',
    make: (clips) => clips.encode([...TEST_PATTERN, ...TONE, ...X264, '-c:a', 'ac3']),
    playlist: { ...USUAL, audioFrames: 250, tracks: '256:1b,257:81' },
    codecs: 'avc1.42c00d,ac-3',
  },
  {
    name: 'ac3-dvb',
    input: 'AC-3 with DVB signaling: converted to ATSC signaling',
    make: (clips) =>
      clips.encode([...TEST_PATTERN, ...TONE, ...X264, '-c:a', 'ac3', '-mpegts_flags', 'system_b']),
    playlist: { ...USUAL, audioFrames: 250, tracks: '256:1b,257:81' },
    codecs: 'avc1.42c00d,ac-3',
  },
  {
    name: 'eac3',
    input: 'E-AC-3, on which hls.js fails in MPEG-TS: in CMAF alone',
    make: (clips) => clips.encode([...TEST_PATTERN, ...TONE, ...X264, '-c:a', 'eac3']),
    playlist: { ...USUAL, audioFrames: 0, tracks: '256:1b' },
    codecs: 'avc1.42c00d',
    cmaf: { audio: true },
  },
  {
    name: 'eac3-all',
    input: 'E-AC-3 with HLS_TRACKS=all',
    make: (clips) => clips.encode([...TEST_PATTERN, ...TONE, ...X264, '-c:a', 'eac3']),
    options: { tracks: 'all' },
    playlist: { ...USUAL, audioFrames: 250, tracks: '256:1b,257:87' },
    codecs: 'avc1.42c00d,ec-3',
    beyondHlsJs: true,
  },
  {
    name: 'opus',
    input: 'Opus, which no HLS player decodes in MPEG-TS: in CMAF alone',
    make: (clips) => clips.encode([...TEST_PATTERN, ...TONE, ...X264, '-c:a', 'libopus']),
    playlist: { ...USUAL, audioFrames: 0, tracks: '256:1b' },
    codecs: 'avc1.42c00d',
    cmaf: { audio: true },
  },
  {
    name: 'opus-all',
    input: 'Opus with HLS_TRACKS=all',
    make: (clips) => clips.encode([...TEST_PATTERN, ...TONE, ...X264, '-c:a', 'libopus']),
    options: { tracks: 'all' },
    playlist: { ...USUAL, audioFrames: 401, tracks: '256:1b,257:6' },
    codecs: 'avc1.42c00d,opus',
    beyondHlsJs: true,
  },
]
