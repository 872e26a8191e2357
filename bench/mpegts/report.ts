/**
 * Results of the media bench as a table.
 *
 * @module
 */
import { formatTable } from '../support/table.ts'
import type { MpegtsResult } from './measure.ts'

const COLUMNS = [
  { title: 'Mbit/s' },
  { title: 'demuxer Gbit/s', decimals: 2 },
  { title: 'millrace Gbit/s', decimals: 2 },
  { title: 'ffmpeg Gbit/s', decimals: 2 },
  { title: 'millrace : ffmpeg', decimals: 2 },
  { title: 'copied B/B', decimals: 3 },
  { title: 'heap B/packet', decimals: 0 },
  { title: 'GC %', decimals: 1 },
]

export function formatMpegts(results: readonly MpegtsResult[]): string {
  const rows = results.map((result) => [
    String(result.bitsPerSecond / 1e6),
    result.demuxerBps / 1e9,
    result.streamBps / 1e9,
    result.ffmpegBps / 1e9,
    result.streamBps / result.ffmpegBps,
    result.copiedPerByte,
    result.heapBytesPerPacket,
    result.gcShare * 100,
  ])
  return formatTable(COLUMNS, rows)
}
