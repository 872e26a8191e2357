/**
 * The bench of play over SRT as a table.
 *
 * @module
 */
import type { Figures } from '../support/figures.ts'
import { formatTable } from '../support/table.ts'
import type { PlayLoad, PlayResult } from './measure.ts'

const COLUMNS = [
  { title: 'readers' },
  { title: 'packets/s sent' },
  { title: 'CPU %', decimals: 1 },
  { title: 'CPU µs/packet', decimals: 2 },
  { title: 'RSS MB' },
  { title: 'lost to readers' },
  { title: 'kernel drops' },
  { title: 'lost from encoder' },
  { title: 'given up' },
  { title: 'loop max ms', decimals: 1 },
  { title: 'readers CPU %' },
]

export function formatPlay(results: readonly PlayResult[]): string {
  const rows = results.map((result) => [
    String(result.readers),
    result.packetsPerSec,
    result.cpuLoad * 100,
    result.cpuUsPerPacket,
    result.rssBytes / 1e6,
    result.lostToReaders,
    result.kernelDrops,
    result.lost,
    result.dropped,
    result.loopDelayMsMax,
    result.readerCpuLoad * 100,
  ])
  return formatTable(COLUMNS, rows)
}

/** Figures with an aim, if the load is the one that the aim is about. */
export function playFigures(load: PlayLoad, results: readonly PlayResult[]): Figures {
  const result = results.find(({ readers }) => readers === 50)
  if (result === undefined || load.bitsPerSecond !== 5e6) return {}
  return {
    'play-lost': load.seconds >= 60 ? result.lost : NaN,
    'play-cpu': result.cpuUsPerPacket,
  }
}
