/**
 * Results of the release bench as tables.
 *
 * @module
 */
import type { Figures } from '../support/figures.ts'
import { quantile } from '../support/quantile.ts'
import { formatTable } from '../support/table.ts'
import type { ReleaseResult } from './measure.ts'

const DELAY_COLUMNS = [
  { title: 'viewers' },
  { title: 'last byte of the' },
  { title: 'p50 ms', decimals: 1 },
  { title: 'p95 ms', decimals: 1 },
  { title: 'p99 ms', decimals: 1 },
  { title: 'max ms', decimals: 1 },
  { title: 'replies' },
  { title: 'missing' },
  { title: 'failures' },
]

const PROCESS_COLUMNS = [
  { title: 'viewers' },
  { title: 'PART-TARGET', decimals: 3 },
  { title: 'packets' },
  { title: 'lost' },
  { title: 'dropped' },
  { title: 'loop max ms', decimals: 1 },
  { title: 'service CPU %' },
  { title: 'viewers CPU %' },
  { title: 'others CPU %' },
  { title: 'viewers loop p99 ms', decimals: 1 },
  { title: 'Mbit/s' },
]

export function formatRelease(results: readonly ReleaseResult[]): string {
  const delays = results.flatMap(({ name, playlistMs, partMs, missing, failures }) => [
    [name, 'playlist', ...quantiles(playlistMs), playlistMs.length, '', ''],
    ['', 'part', ...quantiles(partMs), partMs.length, missing, failures],
  ])
  const processes = results.map((result) => [
    ...[
      result.name,
      result.partTargetSec,
      result.packets,
      result.packetsLost,
      result.packetsDropped,
    ],
    ...[result.maxLoopDelayMs, result.serviceCpu * 100, result.viewersCpu * 100],
    result.othersCpu * 100,
    ...[result.viewersLoopP99Ms, result.bitsPerSecond / 1e6],
  ])
  return [formatTable(DELAY_COLUMNS, delays), formatTable(PROCESS_COLUMNS, processes)].join('\n\n')
}

function quantiles(sorted: readonly number[]): number[] {
  return [0.5, 0.95, 0.99, 1].map((share) => quantile(sorted, share))
}

export function releaseFigures(results: readonly ReleaseResult[]): Figures {
  const { playlistMs = [] } = results.find(({ name }) => name === '500') ?? {}
  return { 'release-p99': quantile(playlistMs, 0.99) }
}
