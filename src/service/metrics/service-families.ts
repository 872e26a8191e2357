/**
 * Table of the metrics of the service.
 *
 * @module
 */
import type { HttpReport, ServiceLoad } from '../../contract/service-report.ts'
import type { SegmentCacheStats } from '../../hls/store/cache-stats.ts'
import type { ListenerStats } from '../../srt/stats.ts'
import type { WebhookStats } from '../../webhook/dispatcher.ts'
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
  readonly webhooks: WebhookStats
  readonly process: ProcessFigures
}

export interface ProcessFigures {
  readonly cpuSec: number
  readonly residentBytes: number
  readonly heapBytes: number
  readonly startedSec: number
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
    help: 'Rejected encoders by error code.',
    label: 'reason',
    read: ({ rejects }) => rejects,
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
