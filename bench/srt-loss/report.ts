/**
 * What one network did to the streams of all receivers, as a table.
 *
 * @module
 */
import { formatTable } from '../support/table.ts'
import type { LossResult } from './measure.ts'

const COLUMNS = [
  { title: 'receiver' },
  { title: 'sent' },
  { title: 'lost on the way' },
  { title: 'never delivered' },
  { title: 'residual loss' },
  { title: 'sent again %', decimals: 2 },
  { title: 'NAKs' },
  { title: 'feedback' },
]

export function formatLoss(results: readonly LossResult[]): string {
  const rows = results.map((result) => [
    result.receiver,
    result.sent,
    result.lostOnTheWay,
    result.lost,
    result.lost === 0 ? '0' : (result.lost / result.sent).toExponential(1),
    (result.retransmissions / result.sent) * 100,
    result.naks,
    result.feedback,
  ])
  return formatTable(COLUMNS, rows)
}
