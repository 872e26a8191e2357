/**
 * Results of the cluster bench as a table.
 *
 * @module
 */
import { quantile } from '../support/quantile.ts'
import { formatTable } from '../support/table.ts'
import type { ClusterResult } from './measure.ts'

const COLUMNS = [
  { title: '' },
  { title: 'replies' },
  { title: 'missed' },
  { title: 'failures' },
  { title: 'reconnects' },
  { title: 'gaps' },
  { title: 'segment p99 ms', decimals: 1 },
  { title: 'still s', decimals: 1 },
  { title: 'encoder away s', decimals: 1 },
  { title: 'hole s', decimals: 1 },
  { title: 'compared' },
  { title: 'different' },
  { title: 'back' },
  { title: 'moved' },
]

export function formatCluster(results: readonly ClusterResult[]): string {
  const rows = results.map(({ name, viewers, comparer, encoderAwaySec, hasMoved }) => [
    name,
    viewers.playlistMs.length + viewers.segmentMs.length,
    viewers.missed,
    viewers.failures,
    viewers.reconnects,
    viewers.gaps,
    quantile(
      viewers.segmentMs.toSorted((a, b) => a - b),
      0.99,
    ),
    comparer.longestStillMs / 1000,
    encoderAwaySec,
    comparer.holes.length === 0 ? NaN : Math.max(...comparer.holes),
    comparer.compared,
    comparer.different.length,
    comparer.stepsBack,
    hasMoved ? 'yes' : 'no',
  ])
  const notes = results.flatMap(({ name, findings, comparer }) => [
    `${name}: check ${findings.length === 0 ? 'finds nothing' : `finds ${findings.join(', ')}`}`,
    ...Object.entries(comparer.failures).map(
      ([status, count]) =>
        `${name}: ${count} playlists with ${status === '0' ? 'no answer' : status}`,
    ),
    ...comparer.different.slice(0, 5).map((each) => `${name}: ${each}`),
  ])
  return [formatTable(COLUMNS, rows), '', ...notes].join('\n')
}
