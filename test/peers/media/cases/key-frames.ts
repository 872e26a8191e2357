/**
 * Key frame intervals and frame rates.
 *
 * @module
 */
import { AAC, gop, lavfi, TEST_PATTERN, TONE, X264 } from '../clip.ts'
import { editNalUnits, join, shift } from '../../../mpegts/edit.ts'
import type { MediaCase } from '../media-case.ts'
import { altered, usual, USUAL } from '../sources.ts'

const withoutParameterSets = (nalUnits: readonly Buffer[]) =>
  nalUnits.filter((nal) => ![7, 8].includes(nal[0]! & 31))

export const KEY_FRAMES: readonly MediaCase[] = [
  {
    name: 'short-first-gop',
    input: 'a GOP of 2 s, then GOPs of 4 s: the longest of the first three segments counts',
    make: (clips) =>
      clips.encode(
        [...TEST_PATTERN, ...TONE, ...X264, ...gop(120), '-force_key_frames', '0,2,6,10', ...AAC],
        14,
      ),
    playlist: { ...USUAL, durations: [2, 4, 4, 4], videoFrames: 420, audioFrames: 658 },
    targetSec: 4,
  },
  {
    name: 'gop-of-8s',
    input: 'a GOP longer than the maximum segment: cut between key frames',
    make: (clips) => clips.encode([...TEST_PATTERN, ...TONE, ...X264, ...gop(240), ...AAC]),
    options: { maxSegmentSec: 4 },
    bytesOut: 'completed',
    playlist: { ...USUAL, durations: [4.47, 3.53] },
    targetSec: 4,
    independent: false,
    warnings: ['GOP_TOO_LONG'],
    findings: ['SEGMENT_WITHOUT_KEY_FRAME'],
  },
  {
    name: 'one-key-frame',
    input: 'one key frame in 21 s',
    make: (clips) =>
      clips.encode(
        [...lavfi('testsrc2=s=160x90:r=10'), ...TONE, ...X264, ...gop(100_000), ...AAC],
        21,
      ),
    bytesOut: 'completed',
    playlist: {
      durations: [10.4, 10.4, 0.2],
      videoFrames: 210,
      audioFrames: 986,
      tracks: USUAL.tracks,
    },
    targetSec: 10,
    independent: false,
    warnings: ['GOP_TOO_LONG'],
    findings: ['SEGMENT_WITHOUT_KEY_FRAME'],
  },
  {
    name: 'irregular-gop',
    input: 'key frames at 0, 0.7, 3.1, 3.9 and 6.2 s',
    make: (clips) =>
      clips.encode([
        ...[...TEST_PATTERN, ...TONE, ...X264, ...gop(1000), ...AAC],
        ...['-force_key_frames', '0,0.7,3.1,3.9,6.2'],
      ]),
    playlist: { ...USUAL, durations: [3.1, 3.1, 1.8] },
    targetSec: 3,
  },
  {
    name: 'half-second-gop',
    input: 'a GOP of 0.5 s: four per segment',
    make: (clips) => clips.encode([...TEST_PATTERN, ...TONE, ...X264, ...gop(15), ...AAC]),
    playlist: USUAL,
  },
  {
    name: 'variable-frame-rate',
    input: 'a variable frame rate',
    make: (clips) =>
      clips.encode([
        ...[...TEST_PATTERN, ...TONE, '-vf', "select='not(mod(n,3))+not(mod(n,7))'"],
        ...['-fps_mode', 'vfr', ...X264, ...gop(1000), '-force_key_frames', '0,2,4,6', ...AAC],
      ]),
    playlist: { ...USUAL, durations: [2, 2, 2, 2.03], videoFrames: 103 },
    cmaf: { offTicks: 3960 },
  },
  {
    name: '1-fps',
    input: '1 frame per second',
    make: (clips) =>
      clips.encode([...lavfi('testsrc2=s=320x180:r=1'), ...TONE, ...X264, ...gop(2), ...AAC]),
    playlist: { ...USUAL, videoFrames: 8 },
  },
  {
    name: '120-fps',
    input: '120 frames per second',
    make: (clips) =>
      clips.encode([...lavfi('testsrc2=s=320x180:r=120'), ...TONE, ...X264, ...gop(240), ...AAC]),
    playlist: { ...USUAL, videoFrames: 960 },
  },
  {
    name: '29.97-fps',
    input: '30000/1001 frames per second',
    make: (clips) =>
      clips.encode([...lavfi('testsrc2=s=320x180:r=30000/1001'), ...TONE, ...X264, ...AAC]),
    playlist: USUAL,
  },
  {
    name: 'huge-key-frames',
    input: 'key frames larger than 1 MB',
    make: (clips) =>
      clips.encode(
        [
          ...[...lavfi('testsrc2=s=1280x720:r=10'), ...TONE, '-vf', 'noise=alls=100'],
          ...[...X264, ...gop(20), '-crf', '4', ...AAC],
        ],
        4,
      ),
    playlist: { durations: [2, 2], videoFrames: 40, audioFrames: 189, tracks: USUAL.tracks },
  },
  {
    name: 'no-parameter-sets',
    input: 'H.264 without SPS and PPS, which no decoder can start',
    make: async (clips) => {
      const clip = editNalUnits(await usual(clips), withoutParameterSets)
      return join(clip, shift(clip, 8))
    },
    warnings: ['NO_KEY_FRAME'],
  },
  {
    name: 'parameter-sets-once',
    input: 'SPS and PPS in the first key frame only: inserted into the others',
    make: altered((clip) =>
      editNalUnits(clip, (nalUnits, unit) =>
        unit === 0 ? nalUnits : withoutParameterSets(nalUnits),
      ),
    ),
    playlist: USUAL,
    bytesOut: 'completed',
  },
  {
    name: 'no-delimiters',
    input: 'H.264 without access unit delimiters: inserted into every access unit',
    make: altered((clip) =>
      editNalUnits(clip, (nalUnits) => nalUnits.filter((nal) => (nal[0]! & 31) !== 9)),
    ),
    playlist: USUAL,
    bytesOut: 'completed',
  },
  {
    name: 'large-sei',
    input: '1500 bytes of SEI before the slices of key frames',
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
]
