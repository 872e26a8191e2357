/**
 * Results of the operation bench as a table.
 *
 * @module
 */
import { quantile } from '../support/quantile.ts'
import { formatTable } from '../support/table.ts'
import type { OperationResult } from './measure.ts'

const COLUMNS = [
  { title: '' },
  { title: 'CPU %', decimals: 1 },
  { title: 'lost' },
  { title: 'dropped' },
  { title: 'kernel drops' },
  { title: 'loop p99 ms', decimals: 1 },
  { title: 'loop max ms', decimals: 1 },
  { title: 'viewers' },
  { title: 'Mbit/s' },
  { title: 'playlist p99 ms', decimals: 1 },
  { title: 'segment p50 ms', decimals: 1 },
  { title: 'segment p99 ms', decimals: 1 },
  { title: 'missed' },
  { title: 'failures' },
  { title: 'kills' },
  { title: 'reconnects' },
  { title: 'scrapes' },
  { title: 'snapshots' },
]

export function formatOperation(results: readonly OperationResult[]): string {
  const rows = results.map((result) => [
    result.name,
    result.cpuLoad * 100,
    result.lost,
    result.dropped,
    result.kernelDrops,
    result.loopDelayMsP99,
    result.loopDelayMsMax,
    result.viewers,
    result.bitsPerSecond / 1e6,
    quantile(result.playlistMs, 0.99),
    quantile(result.segmentMs, 0.5),
    quantile(result.segmentMs, 0.99),
    result.missed,
    result.failures,
    result.kills,
    result.reconnects,
    result.scrapes,
    result.snapshots,
  ])
  return formatTable(COLUMNS, rows)
}
