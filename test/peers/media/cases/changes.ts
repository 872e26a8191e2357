/**
 * Changes of a stream while viewers watch.
 *
 * @module
 */
import { AAC, TEST_PATTERN, TONE, X264, type ClipFolder } from '../clip.ts'
import { split } from '../../../mpegts/edit.ts'
import type { MediaCase, Source } from '../media-case.ts'
import {
  H264_AAC,
  h265,
  sequence,
  shifted,
  small,
  TWICE,
  usual,
  USUAL,
  videoOnly,
} from '../sources.ts'

export const CHANGES: readonly MediaCase[] = [
  {
    name: 'reconnect-2s',
    input: 'an encoder that reconnects after 2 s and restarts its timestamps',
    make: (clips) => reconnect(clips, 2),
    playlist: TWICE,
    discontinuities: [4],
  },
  {
    name: 'reconnect-40s',
    input: 'an encoder that reconnects after 40 s and restarts its timestamps',
    make: (clips) => reconnect(clips, 40),
    playlist: TWICE,
    discontinuities: [4],
  },
  {
    name: 'reconnect-in-a-gop',
    input: 'an encoder that disconnects within a GOP and restarts its timestamps',
    make: async (clips) => {
      const clip = await usual(clips)
      const [part] = split(clip, 150)
      return { steps: [part, { awaySec: 2 }, clip], originals: [part, clip] }
    },
    playlist: { ...TWICE, durations: [2, 2, 1, 2, 2, 2, 2], videoFrames: 390, audioFrames: 603 },
    discontinuities: [3],
  },
  {
    name: 'pid-change',
    input: 'a change of all PIDs',
    make: sequence(
      usual,
      shifted(
        (clips) =>
          clips.encode([...TEST_PATTERN, ...TONE, ...X264, ...AAC, '-mpegts_start_pid', '512']),
        8,
      ),
    ),
    playlist: { ...TWICE, tracks: [USUAL.tracks, '512:1b,513:f'] },
    discontinuities: [4],
  },
  {
    name: 'resolution-change',
    input: 'a change of the video size from 160x90 to 320x180',
    make: sequence(small, shifted(usual, 8)),
    playlist: TWICE,
    discontinuities: [4],
    codecs: H264_AAC,
  },
  {
    name: 'codec-change',
    input: 'a change from H.264 to H.265',
    make: sequence(usual, shifted(h265, 8)),
    playlist: { ...TWICE, tracks: [USUAL.tracks, '256:24,257:f'] },
    discontinuities: [4],
  },
  {
    name: 'audio-added',
    input: 'audio that starts after 8 s',
    make: sequence(videoOnly, shifted(usual, 8)),
    playlist: { ...TWICE, audioFrames: 0, tracks: ['256:1b', '256:1b'] },
    discontinuities: [4],
    warnings: ['AUDIO_TOO_LATE'],
  },
  {
    name: 'audio-removed',
    input: 'audio that ends after 8 s',
    make: sequence(usual, shifted(videoOnly, 8)),
    playlist: { ...TWICE, audioFrames: 752, tracks: [USUAL.tracks, USUAL.tracks] },
    discontinuities: [4],
    bytesOut: 'silenced',
    warnings: ['AUDIO_GONE'],
  },
]

async function reconnect(clips: ClipFolder, awaySec: number): Promise<Source> {
  const clip = await usual(clips)
  return { steps: [clip, { awaySec }, clip], originals: [clip, clip] }
}
