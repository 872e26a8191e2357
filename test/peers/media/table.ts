/**
 * The corpus as the tables of docs/media-cases.md.
 *
 * @module
 */
import type { BytesOut, ExpectedPlaylist, MediaCase } from './media-case.ts'

const COLUMNS = ['Case', 'Input', 'Output', 'Warnings', 'Judges'] as const

const BYTES_OUT: Readonly<Record<BytesOut, string>> = {
  same: 'byte for byte',
  'from-key-frame': 'byte for byte from the first usable key frame',
  damaged: 'without the lost packets',
  completed: 'byte for byte, with inserted NAL units',
  rewrapped: 'video byte for byte, the same AAC frames in ADTS',
  framed: 'byte for byte, each frame in a PES packet of its own',
  silenced: 'byte for byte, then silent audio',
  held: 'byte for byte, and its GOP so far until it is back',
}

/** Tables in Markdown, each under its heading. */
export function describeCorpus(corpus: Readonly<Record<string, readonly MediaCase[]>>): string {
  return Object.entries(corpus)
    .map(([heading, cases]) => {
      const rows = [COLUMNS, COLUMNS.map(() => '---'), ...cases.map(describeCase)]
      return [`## ${heading}`, '', ...rows.map((cells) => `| ${cells.join(' | ')} |`)].join('\n')
    })
    .join('\n\n')
}

/** Cells of one table row, without padding. */
function describeCase(mediaCase: MediaCase): string[] {
  const { name, input, warnings = [] } = mediaCase
  return [
    `\`${name}\``,
    input,
    describeOutput(mediaCase),
    warnings.map((code) => `\`${code}\``).join(', '),
    listJudges(mediaCase).join(', '),
  ]
}

function describeOutput(mediaCase: MediaCase): string {
  const {
    playlist,
    discontinuities = [],
    renditions = {},
    bytesOut = 'same',
    independent = true,
  } = mediaCase
  if (playlist === undefined) return 'no playlist'
  const parts = [
    `${describeDurations(playlist.durations)}: ${describeFrames(playlist)}`,
    ...Object.entries(renditions).map(([uri, it]) => `\`${uri}\`: ${describeFrames(it)}`),
    BYTES_OUT[bytesOut],
  ]
  if (discontinuities.length > 0)
    parts.push(`DISCONTINUITY at segment ${discontinuities.join(', ')}`)
  if (!independent) parts.push('not independent')
  return parts.join('; ')
}

/** Durations, with runs of equal ones joined: `4 × 2 s`. */
function describeDurations(durations: readonly number[]): string {
  const runs: { sec: number; count: number }[] = []
  for (const sec of durations) {
    const last = runs.at(-1)
    if (last?.sec === sec) last.count++
    else runs.push({ sec, count: 1 })
  }
  return runs.map(({ sec, count }) => (count === 1 ? `${sec} s` : `${count} × ${sec} s`)).join(', ')
}

function describeFrames({ videoFrames, audioFrames }: Omit<ExpectedPlaylist, 'durations'>): string {
  const counts = [
    ...(videoFrames > 0 ? [`${videoFrames} video frames`] : []),
    ...(audioFrames > 0 ? [`${audioFrames} audio frames`] : []),
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
