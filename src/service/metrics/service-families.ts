/**
 * Table of the metrics of the service.
 *
 * @module
 */
import type { ArchiveStats } from '../../archive/archive.ts'
import type { HttpReport } from '../../http/guard/http-report.ts'
import type { PeerState, ServiceLoad } from '../../api/records.ts'
import type { SegmentCacheStats } from '../../hls/store/segment-cache.ts'
import type { ListenerStats, SrtlaStats } from '../../srt/stats.ts'
import type { WebhookStats } from '../../webhook/dispatcher.ts'
import type { ProcessUsage } from '../process-usage.ts'
import type { MetricFamily } from './metric-family.ts'

/** Figures of the service at a scrape. */
export interface ServiceFigures {
  readonly streams: Readonly<Record<string, number>>
  readonly rejects: Readonly<Record<string, number>>
  readonly refusals: Readonly<Record<string, number>>
  readonly isReady: boolean
  readonly cache: SegmentCacheStats
  readonly http: HttpReport
  readonly load: ServiceLoad | undefined
  readonly listener: ListenerStats | undefined
  /** Undefined without `SRTLA_PORT`. */
  readonly srtla: SrtlaStats | undefined
  readonly webhooks: WebhookStats
  /** Sources that this service calls, by state, and failed calls by error code. */
  readonly pulls: PeerFigures
  /** The same of listeners that streams are sent to. */
  readonly pushes: PeerFigures
  /** Undefined without an archive. */
  readonly archive: ArchiveStats | undefined
  readonly process: ProcessUsage
}

interface PeerFigures {
  readonly states: Readonly<Record<PeerState, number>>
  readonly failures: Readonly<Record<string, number>>
}

export type ServiceFamily = MetricFamily<ServiceFigures>

export const SERVICE_FAMILIES: readonly ServiceFamily[] = [
  {
    name: 'millrace_streams',
    type: 'gauge',
    help: 'Streams by state.',
    label: 'state',
    read: ({ streams }) => streams,
  },
  {
    name: 'millrace_rejects_total',
    type: 'counter',
    help: 'Rejected encoders and SRT readers by error code.',
    label: 'reason',
    read: ({ rejects }) => rejects,
  },
  {
    name: 'millrace_srt_handshakes_rejected_total',
    type: 'counter',
    help: 'SRT handshakes rejected for any cause, by reject code; docs/troubleshooting.md has the remedies.',
    label: 'code',
    read: ({ listener }) => listener?.rejects,
  },
  {
    name: 'millrace_pulls',
    type: 'gauge',
    help: 'Sources that the service calls, by state.',
    label: 'state',
    read: ({ pulls }) => pulls.states,
  },
  {
    name: 'millrace_pull_failures_total',
    type: 'counter',
    help: 'Calls of sources that failed, by error code.',
    label: 'reason',
    read: ({ pulls }) => pulls.failures,
  },
  {
    name: 'millrace_pushes',
    type: 'gauge',
    help: 'Listeners that the service sends streams to, by state.',
    label: 'state',
    read: ({ pushes }) => pushes.states,
  },
  {
    name: 'millrace_push_failures_total',
    type: 'counter',
    help: 'Calls of such listeners that failed, by error code.',
    label: 'reason',
    read: ({ pushes }) => pushes.failures,
  },
  {
    name: 'millrace_api_refusals_total',
    type: 'counter',
    help: 'Refused requests of the API and of metrics by error code.',
    label: 'reason',
    read: ({ refusals }) => refusals,
  },
  {
    name: 'millrace_ready',
    type: 'gauge',
    help: 'Whether /health/ready answers 200.',
    read: ({ isReady }) => Number(isReady),
  },
  {
    name: 'millrace_cache_bytes',
    type: 'gauge',
    help: 'Memory of segments by class: listed in a playlist, retained after it, or queued for a segment.',
    label: 'class',
    read: ({ cache: { bytes, listedBytes, queuedBytes } }) => ({
      listed: listedBytes,
      retained: bytes - listedBytes,
      queued: queuedBytes,
    }),
  },
  {
    name: 'millrace_cache_max_bytes',
    type: 'gauge',
    help: 'Limit of the memory of segments, CACHE_MAX_MIB.',
    read: ({ cache }) => cache.maxBytes,
  },
  {
    name: 'millrace_cache_shortages_total',
    type: 'counter',
    help: 'Segments by what a shortage of memory did to them.',
    label: 'effect',
    read: ({ cache: { unlistedEarly, releasedEarly, refused, yielded } }) => ({
      unlisted_early: unlistedEarly,
      released_early: releasedEarly,
      gap: refused,
      yielded,
    }),
  },
  {
    name: 'millrace_http_connections',
    type: 'gauge',
    help: 'Open connections of the HTTP port.',
    read: ({ http }) => http.connections,
  },
  {
    name: 'millrace_http_buffered_bytes',
    type: 'gauge',
    help: 'Memory of replies to slow readers, without segments in the cache.',
    read: ({ http }) => http.bufferedBytes,
  },
  {
    name: 'millrace_http_closed_total',
    type: 'counter',
    help: 'Connections and HTTP/2 streams that the HTTP ports refused or closed, by reason.',
    label: 'reason',
    read: ({ http }) => ({
      refused: http.refused,
      refused_per_address: http.refusedPerAddress,
      displaced: http.displaced,
      expired: http.expired,
      slow: http.slow,
      refused_streams: http.refusedStreams,
      flooding: http.flooding,
      over_memory: http.overMemory,
    }),
  },
  {
    name: 'millrace_loop_delay_p99_seconds',
    type: 'gauge',
    help: 'Lateness of the event loop in the latest 10 s, 99th percentile.',
    read: ({ load }) => load && load.loopDelayMsP99 / 1000,
  },
  {
    name: 'millrace_loop_delay_max_seconds',
    type: 'gauge',
    help: 'Lateness of the event loop in the latest 10 s, maximum.',
    read: ({ load }) => load && load.loopDelayMsMax / 1000,
  },
  {
    name: 'millrace_srt_kernel_drops_total',
    type: 'counter',
    help: 'SRT datagrams that the kernel dropped.',
    read: ({ load }) => load?.kernelDrops,
  },
  {
    name: 'millrace_srt_datagrams_total',
    type: 'counter',
    help: 'SRT datagrams read.',
    read: ({ listener }) => listener?.datagrams,
  },
  {
    name: 'millrace_srt_datagrams_discarded_total',
    type: 'counter',
    help: 'SRT datagrams discarded by reason.',
    label: 'reason',
    read: ({ listener }) =>
      listener && {
        inductions: listener.inductionsDropped,
        conclusions: listener.conclusionsDropped,
        control_packets: listener.controlPacketsDropped,
        bad_cookie: listener.badCookies,
        malformed: listener.malformed,
        unknown_socket_id: listener.unknownSocketIds,
        wrong_source: listener.wrongSources,
      },
  },
  {
    name: 'millrace_srtla_groups',
    type: 'gauge',
    help: 'Bonded encoders that have registered at SRTLA_PORT.',
    read: ({ srtla }) => srtla?.groups,
  },
  {
    name: 'millrace_srtla_lines',
    type: 'gauge',
    help: 'Lines of bonded encoders.',
    read: ({ srtla }) => srtla?.lines,
  },
  {
    name: 'millrace_srtla_groups_total',
    type: 'counter',
    help: 'Registrations of bonded encoders.',
    read: ({ srtla }) => srtla?.founded,
  },
  {
    name: 'millrace_srtla_datagrams_discarded_total',
    type: 'counter',
    help: 'SRTLA datagrams discarded, and lines refused for lack of room, by reason.',
    label: 'reason',
    read: ({ srtla }) =>
      srtla && {
        refused: srtla.refused,
        limited: srtla.limited,
        unregistered: srtla.unregistered,
        malformed: srtla.malformed,
      },
  },
  {
    name: 'millrace_webhooks_total',
    type: 'counter',
    help: 'Webhooks by result; failed counts attempts.',
    label: 'result',
    read: ({ webhooks: { delivered, failed, dropped, suppressed } }) => ({
      delivered,
      failed,
      dropped,
      suppressed,
    }),
  },
  {
    name: 'millrace_webhooks_pending',
    type: 'gauge',
    help: 'Webhooks that wait or are being delivered.',
    read: ({ webhooks }) => webhooks.pending,
  },
  {
    name: 'millrace_archive_bytes_total',
    type: 'counter',
    help: 'Media that the store of the archive has confirmed.',
    read: ({ archive }) => archive?.storedBytes,
  },
  {
    name: 'millrace_archive_waiting_bytes',
    type: 'gauge',
    help: 'Memory of what waits for the store of the archive; limit: ARCHIVE_MAX_MIB.',
    read: ({ archive }) => archive?.waitingBytes,
  },
  {
    name: 'millrace_archive_lost_total',
    type: 'counter',
    help: 'Files that the archive lacks, since the store did not take them in time.',
    read: ({ archive }) => archive?.lostFiles,
  },
  {
    name: 'millrace_archive_errors_total',
    type: 'counter',
    help: 'Failed requests at the store of the archive, which are repeated.',
    read: ({ archive }) => archive?.errors,
  },
  {
    name: 'millrace_archive_taken_total',
    type: 'counter',
    help: 'Archives that this process writes no more, since another one goes on with them.',
    read: ({ archive }) => archive?.taken,
  },
  {
    name: 'process_cpu_seconds_total',
    type: 'counter',
    help: 'CPU time of the process.',
    read: ({ process }) => process.cpuSec,
  },
  {
    name: 'process_resident_memory_bytes',
    type: 'gauge',
    help: 'Resident memory of the process.',
    read: ({ process }) => process.residentBytes,
  },
  {
    name: 'process_heap_bytes',
    type: 'gauge',
    help: 'JavaScript heap in use.',
    read: ({ process }) => process.heapBytes,
  },
  {
    name: 'process_start_time_seconds',
    type: 'gauge',
    help: 'Start of the process since 1970.',
    read: ({ process }) => process.startedSec,
  },
]
