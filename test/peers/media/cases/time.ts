/**
 * Timestamps.
 *
 * @module
 */
import { AAC, TEST_PATTERN, TONE, X264, X265 } from '../clip.ts'
import { join, shift, split, type Clip } from '../../../mpegts/edit.ts'
import type { MediaCase } from '../media-case.ts'
import type { Step } from '../publish.ts'
import { altered, sequence, shifted, TWICE, usual, USUAL } from '../sources.ts'

export const TIME: readonly MediaCase[] = [
  {
    name: 'pts-wrap',
    input: 'a wrap of the 33-bit timestamps: no discontinuity',
    make: (clips) =>
      clips.encode([...TEST_PATTERN, ...TONE, ...X264, ...AAC, '-output_ts_offset', '95440']),
    playlist: USUAL,
  },
  {
    name: 'jump-forward',
    input: 'timestamps that jump 1000 s forward',
    make: sequence(usual, shifted(usual, 1008)),
    playlist: TWICE,
    discontinuities: [4],
    warnings: ['TIMESTAMP_JUMP'],
  },
  {
    name: 'jump-back',
    input: 'timestamps that jump 1000 s back',
    make: sequence(shifted(usual, 1000), usual),
    playlist: TWICE,
    discontinuities: [4],
    warnings: ['TIMESTAMP_JUMP'],
  },
  {
    name: 'gap-of-1s',
    input: '1 s missing within a GOP: no discontinuity',
    make: async (clips) => {
      const [before, after] = split(await usual(clips), 210)
      return { ...join(before, shift(after, 1)), sec: 9 }
    },
    bytesOut: 'completed',
    playlist: { ...USUAL, durations: [2, 2, 2, 2.47, 0.53] },
    independent: false,
    warnings: ['GOP_TOO_LONG', 'PTS_GAPS'],
    findings: ['SEGMENT_WITHOUT_KEY_FRAME'],
    cmaf: {
      ...{ findings: ['EXTINF_INEXACT', 'SEGMENT_WITHOUT_KEY_FRAME'], audioGaps: true },
      offTicks: 88_800,
    },
  },
  {
    name: 'gap-of-5s',
    input: 'timestamps with 5 s missing',
    make: sequence(usual, shifted(usual, 13)),
    playlist: TWICE,
    discontinuities: [4],
    warnings: ['PTS_GAPS', 'TIMESTAMP_JUMP'],
  },
  {
    name: 'video-away',
    input: '4 s without a frame of the video, between two that refer to each other',
    make: (clips) =>
      clips.encode([
        ...[...TEST_PATTERN, ...TONE, '-vf', 'select=not(between(t\\,2.5\\,6.5))'],
        ...['-fps_mode', 'vfr', ...X264, ...AAC],
      ]),
    bytesOut: 'held',
    // 119 frames, and 8 times the 15 so far in their GOP.
    playlist: { ...USUAL, videoFrames: 239 },
    warnings: ['PTS_GAPS'],
  },
  {
    name: 'video-away-cra',
    input: 'the same in H.265, in a GOP that begins with a CRA picture',
    make: (clips) =>
      clips.encode([
        ...[...TEST_PATTERN, ...TONE, '-vf', 'select=not(between(t\\,2.05\\,6.5))'],
        ...['-fps_mode', 'vfr', ...X265, 'keyint=60:min-keyint=60:bframes=0', ...AAC],
      ]),
    bytesOut: 'held',
    // 106 frames, and 9 times the 2 so far in their GOP.
    playlist: {
      ...{ durations: [2, 2.07, 2, 1.93], videoFrames: 124 },
      ...{ audioFrames: 376, tracks: '256:24,257:f' },
    },
    warnings: ['PTS_GAPS'],
  },
  {
    name: 'audio-late',
    input: 'audio that starts 1 s after the video',
    make: (clips) => clips.encode([...TEST_PATTERN, '-itsoffset', '1', ...TONE, ...X264, ...AAC]),
    playlist: { ...USUAL, audioFrames: 330 },
    warnings: ['AV_SKEW'],
    findings: ['STARTS_APART'],
    cmaf: { findings: [] },
  },
  {
    name: 'audio-early',
    input: 'audio that starts 1 s before the video',
    make: (clips) => clips.encode(['-itsoffset', '1', ...TEST_PATTERN, ...TONE, ...X264, ...AAC]),
    playlist: { ...USUAL, durations: [2, 2, 2, 1], videoFrames: 210, audioFrames: 334 },
    bytesOut: 'from-key-frame',
    warnings: ['AV_SKEW'],
  },
  {
    name: 'audio-drift',
    input: 'audio with a clock 500 ppm fast',
    make: (clips) =>
      clips.encode([
        ...TEST_PATTERN,
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
    input: 'no packets for 1 s',
    make: altered((clip) => stall(clip, 1)),
    playlist: USUAL,
  },
  {
    name: 'stall-5s',
    input: 'no packets for 5 s',
    make: altered((clip) => stall(clip, 5.5)),
    playlist: USUAL,
    warnings: ['NO_MEDIA'],
  },
  {
    name: 'stall-30s',
    input: 'no packets for 30 s',
    make: altered((clip) => stall(clip, 30)),
    playlist: USUAL,
    warnings: ['NO_MEDIA'],
  },
]

/** Sends nothing for a time in the middle of a GOP, then the rest. */
function stall(clip: Clip, silentSec: number): Step[] {
  const [before, after] = split(clip, 90)
  return [before, { silentSec }, after]
}
