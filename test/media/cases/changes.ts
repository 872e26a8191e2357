/**
 * What changes while viewers watch.
 *
 * @module
 */
import { AAC, PICTURES, TONE, X264, type ClipFolder } from '../clip.ts'
import { split } from '../edit.ts'
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
    name: 'reconnect-in-a-gop',
    what: 'the encoder breaks off within a GOP and starts anew',
    make: async (clips) => {
      const clip = await usual(clips)
      const [part] = split(clip, 150)
      return { steps: [part, { awaySec: 2 }, clip], originals: [part, clip] }
    },
    playlist: { ...TWICE, durations: [2, 2, 1, 2, 2, 2, 2], pictures: 390, sounds: 603 },
    seams: [3],
  },
  {
    name: 'pid-change',
    what: 'the same on other PIDs',
    make: sequence(
      usual,
      shifted(
        (clips) =>
          clips.encode([...PICTURES, ...TONE, ...X264, ...AAC, '-mpegts_start_pid', '512']),
        8,
      ),
    ),
    playlist: { ...TWICE, tracks: [USUAL.tracks, '512:1b,513:f'] },
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
    playlist: { ...TWICE, sounds: 0, tracks: ['256:1b', '256:1b'] },
    seams: [4],
    warnings: ['SOUND_TOO_LATE'],
  },
  {
    name: 'audio-removed',
    what: 'sound is gone after 8 s',
    make: sequence(usual, shifted(videoOnly, 8)),
    playlist: { ...TWICE, sounds: 752, tracks: [USUAL.tracks, USUAL.tracks] },
    seams: [4],
    bytesOut: 'silenced',
    warnings: ['SOUND_GONE'],
  },
]

async function reconnect(clips: ClipFolder, awaySec: number): Promise<Source> {
  const clip = await usual(clips)
  return { steps: [clip, { awaySec }, clip], originals: [clip, clip] }
}
