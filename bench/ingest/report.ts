/**
 * The ingest bench as a table.
 *
 * @module
 */
import type { Figures } from '../support/figures.ts'
import { formatTable } from '../support/table.ts'
import type { IngestLoad, IngestResult } from './measure.ts'
import type { OverloadLoad, OverloadResult } from './overload.ts'
import type { SurgeResult } from './surge.ts'

/** Memory of Millrace without any media. */
const BASE_BYTES = 90e6

const COLUMNS = [
  { title: 'receiver' },
  { title: 'packets/s' },
  { title: 'CPU %', decimals: 1 },
  { title: 'CPU µs/packet', decimals: 2 },
  { title: 'RSS MB' },
  { title: 'cached MB' },
  { title: 'queued MB', decimals: 1 },
  { title: 'major GC/min' },
  { title: 'GC pause %', decimals: 1 },
  { title: 'kernel drops' },
  { title: 'lost' },
  { title: 'dropped' },
  { title: 'gaps' },
  { title: 'loop max ms' },
  { title: 'sent again' },
  { title: 'senders CPU %' },
]

/** Lost: found missing by the receiver, repaired or not. Dropped: given up on either side. */
export function formatIngest(results: readonly IngestResult[]): string {
  const rows = results.map((result) => [
    result.receiver,
    result.packetsPerSec,
    result.cpuLoad * 100,
    result.cpuUsPerPacket,
    result.rssBytes / 1e6,
    result.cachedBytes / 1e6,
    result.queuedBytes / 1e6,
    result.majorCollectionsPerMin,
    result.pauseShare * 100,
    result.kernelDrops,
    result.lost,
    result.dropped + result.senderDropped,
    result.gaps,
    result.loopDelayMsMax,
    result.retransmissions,
    result.senderCpuLoad * 100,
  ])
  return formatTable(COLUMNS, rows)
}

const OVERLOAD_COLUMNS = [
  { title: 'publishers' },
  { title: 'kept' },
  { title: 'of the first' },
  { title: 'kept at end' },
  { title: 'received' },
  { title: 'dropped' },
  { title: 'dropped %', decimals: 3 },
  { title: 'newcomer' },
  { title: 'recovery s', decimals: 1 },
]

/** Received and dropped: packets of the kept publishers, after the process had settled. */
export function formatOverload(result: OverloadResult): string {
  const { received, dropped } = result
  return formatTable(OVERLOAD_COLUMNS, [
    [
      result.publishers,
      result.kept,
      result.keptOfFirst,
      result.keptAtEnd,
      received,
      dropped,
      (dropped * 100) / (received + dropped),
      result.refusedWith,
      result.recoverySec,
    ],
  ])
}

const SURGE_COLUMNS = [
  { title: 'publishers' },
  { title: 'disconnected after s', decimals: 1 },
  { title: 'kernel drops' },
  { title: 'others kept' },
  { title: 'received' },
  { title: 'dropped' },
  { title: 'dropped %', decimals: 3 },
]

/** Received and dropped: packets of the other publishers, from the surge on. */
export function formatSurge(result: SurgeResult): string {
  const { received, dropped } = result
  return formatTable(SURGE_COLUMNS, [
    [
      result.publishers,
      result.disconnectedAfterSec,
      result.kernelDrops,
      result.kept,
      received,
      dropped,
      (dropped * 100) / (received + dropped),
    ],
  ])
}

/** Figures with an aim, if the load is the one that the aim is about. */
export function ingestFigures(load: IngestLoad, results: readonly IngestResult[]): Figures {
  const find = (name: string) => results.find(({ receiver }) => receiver === name)
  const millrace = find('millrace')
  if (millrace === undefined) return {}
  const { publishers, bitsPerSecond, seconds, spreadMs } = load
  const beside = (peer: string, own = 'millrace') =>
    (find(own)?.cpuLoad ?? NaN) / (find(peer)?.cpuLoad ?? NaN)
  if (publishers === 1 && bitsPerSecond === 40e6) {
    return { 'ingest-40-srs': beside('srs'), 'ingest-40-ffmpeg': beside('ffmpeg') }
  }
  if (publishers === 60 && bitsPerSecond === 5e6) {
    return { 'ingest-ts-srs': beside('srs', 'millrace, ts'), 'ingest-srs': beside('srs') }
  }
  if (publishers !== 100 || bitsPerSecond !== 5e6) return {}
  const lost = seconds >= 300 ? millrace.lost : NaN
  if (spreadMs === 0) return { 'ingest-lost-in-phase': lost }
  return {
    'ingest-lost': lost,
    'ingest-cpu': millrace.cpuUsPerPacket,
    'ingest-stall': millrace.loopDelayMsMax,
    memory: (millrace.rssBytes - BASE_BYTES) / millrace.cachedBytes,
  }
}

/** Figures with an aim, if the load is the one that the aim is about. */
export function overloadFigures(load: OverloadLoad, result: OverloadResult): Figures {
  if (load.publishers !== 140 || load.bitsPerSecond !== 5e6) return {}
  const { received, dropped } = result
  return {
    'overload-dropped': (dropped * 100) / (received + dropped),
    'overload-refused': result.refusedWith === 0 ? 0 : 1,
    'overload-recovery': result.recoverySec,
  }
}
