/**
 * The SRT bench as a table.
 *
 * @module
 */
import { formatTable } from '../support/table.ts'
import type { SrtResult } from './measure.ts'

const COLUMNS = [
  { title: 'receiver' },
  { title: 'packets/s' },
  { title: 'CPU µs/packet', decimals: 2 },
  { title: 'CPU %', decimals: 1 },
  { title: 'sent' },
  { title: 'received' },
  { title: 'never delivered' },
  { title: 'sent again' },
  { title: 'kernel drops' },
  { title: 'loop p99 ms', decimals: 1 },
  { title: 'RSS MB' },
  { title: 'senders CPU %' },
  { title: 'others CPU %' },
]

export function formatSrt(results: readonly SrtResult[]): string {
  const rows = results.map((result) => [
    result.load.encrypted ? `${result.receiver}, AES-256` : result.receiver,
    result.packetsPerSec,
    result.cpuUsPerPacket,
    result.cpuLoad * 100,
    result.sent,
    result.received,
    // Who does not tell what arrived at least acknowledges it.
    Number.isNaN(result.received) ? result.senderDropped : result.sent - result.received,
    result.retransmissions,
    result.kernelDrops,
    result.loopDelayP99Ms,
    result.rssBytes / 1e6,
    result.senderCpuLoad * 100,
    result.otherCpuLoad * 100,
  ])
  return formatTable(COLUMNS, rows)
}
