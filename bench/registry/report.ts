/**
 * Results of the registry bench as a table.
 *
 * @module
 */
import { quantile } from '../support/quantile.ts'
import { formatTable } from '../support/table.ts'
import type { RegistryResult } from './measure.ts'

const COLUMNS = [
  { title: 'call' },
  { title: 'p50 ms', decimals: 2 },
  { title: 'p99 ms', decimals: 2 },
  { title: 'CPU µs', decimals: 0 },
  { title: 'calls/s of a core', decimals: 0 },
]

export function formatRegistry(results: readonly RegistryResult[]): string {
  const rows = results.map(({ call, timesMs, cpuUs }) => {
    const sorted = timesMs.toSorted((a, b) => a - b)
    return [call, quantile(sorted, 0.5), quantile(sorted, 0.99), cpuUs, 1e6 / cpuUs]
  })
  return formatTable(COLUMNS, rows)
}
