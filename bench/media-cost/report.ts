/**
 * Results of the bench of costly streams as a table.
 *
 * @module
 */
import { formatTable } from '../support/table.ts'
import type { CostResult } from './measure.ts'

const COLUMNS = [
  { title: 'stream' },
  { title: 'us a packet', decimals: 2 },
  { title: 'nominal', decimals: 2 },
  { title: 'dropped %' },
  { title: 'segments/s' },
  { title: 'listed' },
]

export function formatMediaCost(results: readonly CostResult[]): string {
  const rows = results.map((result) => [
    result.name,
    result.usPerPacket,
    result.nominalUsPerPacket,
    result.dropped * 100,
    result.segmentsPerSecond,
    result.listed,
  ])
  return formatTable(COLUMNS, rows)
}
