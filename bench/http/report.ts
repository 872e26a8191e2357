/**
 * Results of the HTTP bench as a table, with ratios.
 *
 * @module
 */
import { formatTable } from '../support/table.ts'
import type { HttpResult } from './measure.ts'

const COLUMNS = [
  { title: 'server' },
  { title: 'file' },
  { title: 'bytes' },
  { title: 'tool' },
  { title: 'replies/s' },
  { title: 'MB/s' },
  { title: 'p50 ms', decimals: 2 },
  { title: 'p99 ms', decimals: 2 },
  { title: 'CPU %' },
  { title: 'CPU µs/reply', decimals: 1 },
  { title: 'RSS MB' },
  { title: 'failures' },
]

export function formatHttp(results: readonly HttpResult[]): string {
  const rows = results.map((result) => [
    result.server,
    result.file,
    result.sizeBytes,
    result.tool,
    result.repliesPerSec,
    result.bytesPerSec / 1e6,
    result.p50Ms,
    result.p99Ms,
    result.cpuLoad * 100,
    result.cpuUsPerReply,
    result.rssBytes / 1e6,
    result.failures,
  ])
  return [formatTable(COLUMNS, rows), ...ratios(results)].join('\n')
}

function ratios(results: readonly HttpResult[]): string[] {
  return results
    .filter(({ server }) => server === 'millrace')
    .flatMap((ours) => {
      const theirs = results.find(
        ({ server, file, tool }) => server === 'nginx' && file === ours.file && tool === ours.tool,
      )
      if (theirs === undefined) return []
      const speed = (ours.repliesPerSec / theirs.repliesPerSec).toFixed(2)
      const cost = (ours.cpuUsPerReply / theirs.cpuUsPerReply).toFixed(2)
      return [`${ours.file}s (${ours.tool}): ${speed} × nginx's rate, ${cost} × its CPU a reply`]
    })
}
