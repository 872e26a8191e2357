/**
 * The corpus in words: the tables of docs/media.md.
 *
 * @module
 */
import type { BytesOut, ExpectedPlaylist, MediaCase } from './media-case.ts'

export const COLUMNS = ['Case', 'What is sent', 'What comes out', 'Warnings', 'Judges'] as const

const BYTES_OUT: Readonly<Record<BytesOut, string>> = {
  same: 'byte for byte',
  'from-key-frame': 'byte for byte from a key frame on',
  damaged: 'without what was lost',
  completed: 'byte for byte, and what was left out',
  rewrapped: 'pictures byte for byte, the same sounds in ADTS',
  silenced: 'byte for byte, then silence',
}

/** One row, without the spaces that a formatter may add. */
export function describeCase(mediaCase: MediaCase): string[] {
  const { name, what, warnings = [] } = mediaCase
  return [
    `\`${name}\``,
    what,
    describeOutput(mediaCase),
    warnings.map((code) => `\`${code}\``).join(', '),
    listJudges(mediaCase).join(', '),
  ]
}

function describeOutput(mediaCase: MediaCase): string {
  const { playlist, seams = [], renditions = {}, bytesOut = 'same', independent = true } = mediaCase
  if (playlist === undefined) return 'no playlist'
  const parts = [
    `${describeDurations(playlist.durations)}: ${describeFrames(playlist)}`,
    ...Object.entries(renditions).map(([uri, it]) => `\`${uri}\`: ${describeFrames(it)}`),
    BYTES_OUT[bytesOut],
  ]
  if (seams.length > 0) parts.push(`DISCONTINUITY at segment ${seams.join(', ')}`)
  if (!independent) parts.push('not independent')
  return parts.join('; ')
}

/** Neighbours of the same length together. */
function describeDurations(durations: readonly number[]): string {
  const runs: { sec: number; count: number }[] = []
  for (const sec of durations) {
    const last = runs.at(-1)
    if (last?.sec === sec) last.count++
    else runs.push({ sec, count: 1 })
  }
  return runs.map(({ sec, count }) => (count === 1 ? `${sec} s` : `${count} × ${sec} s`)).join(', ')
}

function describeFrames({ pictures, sounds }: Omit<ExpectedPlaylist, 'durations'>): string {
  const counts = [
    ...(pictures > 0 ? [`${pictures} pictures`] : []),
    ...(sounds > 0 ? [`${sounds} sounds`] : []),
  ]
  return counts.join(', ')
}

function listJudges({ playlist, bytesOut, beyondHlsJs }: MediaCase): string[] {
  if (playlist === undefined) return []
  const hasH264 = [playlist.tracks].flat().some((tracks) => tracks.includes(':1b'))
  return [
    'ffprobe',
    ...(bytesOut === 'damaged' ? [] : ['ffmpeg']),
    ...(beyondHlsJs === true ? [] : ['hls.js']),
    ...(hasH264 ? ['mux.js'] : []),
    'm3u8-parser',
  ]
}
