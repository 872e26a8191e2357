/**
 * The endurance bench as a table that grows with the time.
 *
 * @module
 */
import { formatTable } from '../support/table.ts'
import type { EnduranceResult, EnduranceSample } from './measure.ts'

const COLUMNS = [
  { title: 'hours', decimals: 2 },
  { title: '   RSS MB', decimals: 1 },
  { title: '  heap MB', decimals: 1 },
  { title: 'buffers MB', decimals: 1 },
  { title: 'cached MB', decimals: 1 },
  { title: ' spare MB', decimals: 1 },
  { title: ' segments' },
]

/** @returns heading and row for the first sample, a row for others */
export function formatSample(sample: EnduranceSample, isFirst: boolean): string {
  const mb = (bytes: number) => bytes / 1e6
  const [heading, row] = formatTable(COLUMNS, [
    [
      sample.hours,
      ...[sample.rssBytes, sample.heapBytes, sample.externalBytes].map(mb),
      ...[sample.cachedBytes, sample.freeBytes].map(mb),
      sample.segments,
    ],
  ]).split('\n')
  return isFirst ? `${heading}\n${row}` : row!
}

export function formatEndurance({ speed, cpuLoad, growth, failovers }: EnduranceResult): string {
  return [
    `${speed.toFixed(0)} x real time, ${(cpuLoad * 100).toFixed(0)} % of a core.`,
    `RSS of the last quarter: ${(growth * 100).toFixed(1)} % above the quarter before.`,
    ...(failovers > 0 ? [`${failovers} failovers to the backup and back, each told once.`] : []),
  ].join('\n')
}
