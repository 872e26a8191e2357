/**
 * What becomes of time.
 *
 * @module
 */
import { AAC, PICTURES, TONE, X264, type Clip } from '../clip.ts'
import { join, shift, split } from '../edit.ts'
import type { MediaCase } from '../media-case.ts'
import type { Step } from '../publish.ts'
import { altered, sequence, shifted, TWICE, usual, USUAL } from '../sources.ts'

export const TIME: readonly MediaCase[] = [
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
      return { ...join(before, shift(after, 1)), sec: 9 }
    },
    playlist: { ...USUAL, durations: [2, 2, 2, 2.47, 0.53] },
    independent: false,
    warnings: ['GOP_TOO_LONG', 'PTS_GAPS'],
  },
  {
    name: 'gap-of-5s',
    what: '5 s are missing from the timestamps',
    make: sequence(usual, shifted(usual, 13)),
    playlist: TWICE,
    seams: [4],
    warnings: ['PTS_GAPS', 'TIMESTAMP_JUMP'],
  },
  {
    name: 'audio-late',
    what: 'sound begins 1 s after the picture',
    make: (clips) => clips.encode([...PICTURES, '-itsoffset', '1', ...TONE, ...X264, ...AAC]),
    playlist: { ...USUAL, sounds: 330 },
    warnings: ['AV_SKEW'],
  },
  {
    name: 'audio-early',
    what: 'sound begins 1 s before the picture',
    make: (clips) => clips.encode(['-itsoffset', '1', ...PICTURES, ...TONE, ...X264, ...AAC]),
    playlist: { ...USUAL, durations: [2, 2, 2, 1], pictures: 210, sounds: 334 },
    bytesOut: 'from-key-frame',
    warnings: ['AV_SKEW'],
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
]

/** Nothing arrives in the middle of a GOP for so long; then all of it does. */
function stall(clip: Clip, silentSec: number): Step[] {
  const [before, after] = split(clip, 90)
  return [before, { silentSec }, after]
}
