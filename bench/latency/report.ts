/**
 * Results of the latency bench as a table.
 *
 * @module
 */
import type { Figures } from '../support/figures.ts'
import { quantile } from '../support/quantile.ts'
import { formatTable } from '../support/table.ts'
import type { LatencyResult } from './measure.ts'

const COLUMNS = [
  { title: 'setup' },
  { title: 'PART-TARGET', decimals: 3 },
  { title: 'PART-HOLD-BACK', decimals: 3 },
  { title: 'median ms' },
  { title: 'p95 ms' },
  { title: 'max ms' },
  { title: 'stalls' },
  { title: 'frames' },
  { title: 'missed' },
  { title: 'unreadable' },
]

export function formatLatency(results: readonly LatencyResult[]): string {
  const rows = results.map((result) => [
    result.name,
    result.partTargetSec,
    result.partHoldBackSec,
    result.medianMs,
    result.p95Ms,
    result.maxMs,
    result.stalls,
    result.shown,
    result.missed,
    result.unreadable,
  ])
  return formatTable(COLUMNS, rows)
}

/** @param delaysMs  from capture to the first datagram, for each frame */
export function formatEncoder(delaysMs: readonly number[]): string {
  const sorted = delaysMs.toSorted((a, b) => a - b)
  const [median, p95] = [quantile(sorted, 0.5), quantile(sorted, 0.95)]
  return `of which encoder and pipe, from capture to the first datagram of a frame: median ${median} ms, p95 ${p95} ms`
}

export function latencyFigures(results: readonly LatencyResult[]): Figures {
  const { medianMs = NaN } = results.find(({ name }) => name === 'part-200') ?? {}
  return { 'glass-to-glass': medianMs / 1000 }
}
