/**
 * Results of the HTTP bench as tables, and its figures.
 *
 * @module
 */
import type { Figures } from '../support/figures.ts'
import { formatTable } from '../support/table.ts'
import type { LiveResult } from './live.ts'
import type { FileResult, HttpResult } from './measure.ts'
import type { ProfileResult } from './profile.ts'
import { FILE_SCENARIOS, LIVE_SCENARIOS } from './scenarios.ts'

const FILE_COLUMNS = [
  { title: 'server' },
  { title: 'replies/s' },
  { title: 'MB/s' },
  { title: 'p50 ms', decimals: 2 },
  { title: 'p99 ms', decimals: 2 },
  { title: 'CPU %' },
  { title: 'CPU µs/reply', decimals: 1 },
  { title: 'others CPU %' },
  { title: 'RSS MB' },
  { title: 'failures' },
  { title: 'millrace by rate', decimals: 2 },
  { title: 'by CPU', decimals: 2 },
]

const LIVE_COLUMNS = [
  { title: 'server' },
  { title: 'viewers' },
  { title: 'replies/s' },
  { title: 'Mbit/s' },
  { title: 'CPU %' },
  { title: 'CPU µs/reply', decimals: 1 },
  { title: 'LL playlist p99 ms', decimals: 1 },
  { title: 'LL part p99 ms', decimals: 1 },
  { title: 'playlist p99 ms', decimals: 1 },
  { title: 'segment p99 ms', decimals: 1 },
  { title: 'missed' },
  { title: 'failures' },
]

export function formatHttp({ files, live, profiles }: HttpResult): string {
  const fileTables = FILE_SCENARIOS.flatMap(({ name, title }) => {
    const results = files.filter(({ scenario }) => scenario === name)
    return results.length === 0 ? [] : [formatFiles(title, results)]
  })
  const liveTables = LIVE_SCENARIOS.flatMap(({ name, title }) => {
    const results = live.filter(({ scenario }) => scenario === name)
    return results.length === 0 ? [] : [`${title}\n${formatLive(results)}`]
  })
  return [...fileTables, ...liveTables, ...profiles.map(formatProfile)].join('\n\n')
}

function formatFiles(title: string, results: readonly FileResult[]): string {
  const millrace = results[0]!
  const rows = results.map((result) => [
    result.server,
    result.repliesPerSec,
    result.bytesPerSec / 1e6,
    ...[result.p50Ms, result.p99Ms, result.cpuLoad * 100, result.cpuUsPerReply],
    ...[result.othersCpuLoad * 100, result.rssBytes / 1e6, result.failures],
    millrace.repliesPerSec / result.repliesPerSec,
    millrace.cpuUsPerReply / result.cpuUsPerReply,
  ])
  const heading = `${title}: ${millrace.sizeBytes} bytes, ${millrace.tool}`
  return `${heading}\n${formatTable(FILE_COLUMNS, rows)}`
}

function formatLive(results: readonly LiveResult[]): string {
  const rows = results.map((result) => [
    ...[result.server, result.viewers, result.repliesPerSec, result.bitsPerSecond / 1e6],
    ...[result.cpuLoad * 100, result.cpuUsPerReply],
    ...[result.playlistSpreadP99Ms, result.partSpreadP99Ms],
    ...[result.playlistP99Ms, result.segmentP99Ms],
    ...[result.missed, result.failures],
  ])
  return formatTable(LIVE_COLUMNS, rows)
}

function formatProfile({ scenario, server, files, top }: ProfileResult): string {
  const lines = top.map(
    ({ share, name, place }) => `${(share * 100).toFixed(1).padStart(5)} %  ${name}  ${place}`,
  )
  return [`Profile of ${server}, ${scenario}: ${files.join(' ')}`, ...lines].join('\n')
}

/** Max CPU of other processes, in cores, for a round to count as a figure. */
const MAX_OTHERS_CPU = 0.25

/** Figures with an aim; NaN where a server was not measured, or other processes disturbed its best round. */
export function httpFigures({ files }: Pick<HttpResult, 'files'>): Figures {
  const find = (scenario: string, server: string) =>
    files.find(
      (each) =>
        each.scenario === scenario &&
        each.server === server &&
        each.othersCpuLoad <= MAX_OTHERS_CPU,
    )
  const ratio = (
    read: (result: FileResult) => number,
    ours: FileResult | undefined,
    theirs: FileResult | undefined,
  ) => (ours === undefined || theirs === undefined ? NaN : read(ours) / read(theirs))
  const rate = (scenario: string, ours: string, theirs: string) =>
    ratio(({ repliesPerSec }) => repliesPerSec, find(scenario, ours), find(scenario, theirs))
  const bytes = (scenario: string, ours: string, theirs: string) =>
    ratio(({ bytesPerSec }) => bytesPerSec, find(scenario, ours), find(scenario, theirs))
  return {
    'segment-nginx': bytes('segment', 'millrace', 'nginx'),
    'small-segment-nginx': bytes('small-segment', 'millrace', 'nginx'),
    'part-nginx': bytes('part', 'millrace', 'nginx'),
    'playlist-node': rate('playlist', 'millrace', 'node:http'),
    'segment-2-nginx-2': bytes('segment', 'millrace-2', 'nginx-2'),
    'playlist-2-nginx-2': rate('playlist', 'millrace-2', 'nginx-2'),
    'not-found-hit': ratio(
      ({ cpuUsPerReply }) => cpuUsPerReply,
      find('not-found', 'millrace'),
      find('playlist', 'millrace'),
    ),
  }
}
