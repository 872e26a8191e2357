/**
 * Results of the metrics bench as a table.
 *
 * @module
 */
import { quantile } from '../support/quantile.ts'
import { formatTable } from '../support/table.ts'
import type { MetricsResult } from './measure.ts'

const COLUMNS = [
  { title: '' },
  { title: 'p50 ms', decimals: 1 },
  { title: 'p99 ms', decimals: 1 },
  { title: 'max ms', decimals: 1 },
]

export function formatMetrics(result: MetricsResult): string {
  const { series, bytes, cpuMs, scrapeMs, idleDelaysMs, delaysMs } = result
  const row = (title: string, values: readonly number[]) => [
    title,
    ...[0.5, 0.99, 1].map((share) =>
      quantile(
        values.toSorted((a, b) => a - b),
        share,
      ),
    ),
  ]
  const table = formatTable(COLUMNS, [
    row('scrape', scrapeMs),
    row('loop delay, scraped', delaysMs),
    row('loop delay, else', idleDelaysMs),
  ])
  return `${series} series, ${bytes} bytes, ${cpuMs.toFixed(1)} ms of CPU a scrape\n\n${table}`
}
