/**
 * Table of the metrics of a stream.
 *
 * @module
 */
import { DROP_REASONS, maxLagMs, type EdgeState, type StreamReport } from '../../api/records.ts'
import { snakeCase } from '../../api/wire-names.ts'
import type { PackagerStats } from '../../hls/packager.ts'
import type { MetricFamily } from './metric-family.ts'
import type { SentBytes } from './sent-bytes.ts'

/** A stream as its metrics are read. */
export interface MeasuredStream {
  /** The same object at each scrape. */
  readonly stream: object
  readonly report: StreamReport
  readonly packaging: PackagerStats
  readonly viewers: number
  readonly edges?: readonly EdgeState[] | undefined
  readonly sent: ReturnType<SentBytes['of']>
}

export interface StreamFamily extends MetricFamily<MeasuredStream> {
  /** Whether a sum over streams makes no sense. */
  readonly onlyPerStream?: boolean
}

/** Reasons for which media is dropped, with their labels. */
const LABELED_REASONS = DROP_REASONS.map((reason) => [reason, snakeCase(reason)] as const)

/** Counters of `srt` begin anew with each connection of an encoder. */
export const STREAM_FAMILIES: readonly StreamFamily[] = [
  {
    name: 'millrace_stream_live',
    type: 'gauge',
    help: 'Whether an encoder feeds a playlist that can be played.',
    read: ({ report }) => Number(report.live),
  },
  {
    name: 'millrace_stream_on_air',
    type: 'gauge',
    help: 'Source on air: main, backup or slate.',
    label: 'source',
    read: ({ report: { onAir } }) => (onAir === undefined ? {} : { [onAir]: 1 }),
  },
  {
    name: 'millrace_stream_source_changes_total',
    type: 'counter',
    help: 'Times that another source went on air.',
    read: ({ report }) => report.totals.sourceChanges,
  },
  {
    name: 'millrace_stream_warnings',
    type: 'gauge',
    help: 'Warnings in effect about a source or its connection, by code.',
    label: 'code',
    read: ({ report }) => Object.fromEntries(report.warnings.map(({ code }) => [code, 1])),
  },
  {
    name: 'millrace_stream_latency_seconds',
    type: 'gauge',
    help: 'Expected latency from the SRT sender to the screen of a player.',
    onlyPerStream: true,
    read: ({ report }) => report.latency && report.latency.expectedMs / 1000,
  },
  {
    name: 'millrace_stream_publishers_total',
    type: 'counter',
    help: 'Encoder connections since the stream started.',
    read: ({ report }) => report.totals.publishers,
  },
  {
    name: 'millrace_srt_rtt_seconds',
    type: 'gauge',
    help: 'Smoothed round-trip time to the encoder.',
    onlyPerStream: true,
    read: ({ report: { publisher } }) => publisher?.rttMs && publisher.rttMs / 1000,
  },
  {
    name: 'millrace_srt_line_received_bytes_total',
    type: 'counter',
    help: 'SRT packets of a bonded encoder (SRTLA, socket group), headers included, by line.',
    label: 'line',
    onlyPerStream: true,
    read: ({ report }) =>
      report.publisher?.lines &&
      Object.fromEntries(report.publisher.lines.map((each) => [each.line, each.bytesReceived])),
  },
  {
    name: 'millrace_srt_received_bytes_total',
    type: 'counter',
    help: 'SRT payload received, retransmissions included.',
    read: ({ report }) => report.publisher?.bytesReceived,
  },
  {
    name: 'millrace_srt_packets_received_total',
    type: 'counter',
    help: 'SRT packets received, retransmissions included.',
    read: ({ report }) => report.publisher?.packetsReceived,
  },
  {
    name: 'millrace_srt_packets_lost_total',
    type: 'counter',
    help: 'SRT packets missing when a later one arrived, repaired or not.',
    read: ({ report }) => report.publisher?.packetsLost,
  },
  {
    name: 'millrace_srt_packets_retransmitted_total',
    type: 'counter',
    help: 'Retransmitted SRT packets received.',
    read: ({ report }) => report.publisher?.packetsRetransmitted,
  },
  {
    name: 'millrace_srt_packets_dropped_total',
    type: 'counter',
    help: 'Lost SRT packets not repaired in time.',
    read: ({ report }) => report.publisher?.packetsDropped,
  },
  {
    name: 'millrace_media_dropped_total',
    type: 'counter',
    help: 'Media that was dropped between SRT and the segments, by reason; docs/api-reference.md says at totals.dropped what each reason counts.',
    label: 'reason',
    // Also those of 0: `increase()` needs a value before the first drop.
    read: ({ report: { totals } }) =>
      Object.fromEntries(
        LABELED_REASONS.map(([reason, label]) => [label, totals.dropped[reason] ?? 0]),
      ),
  },
  {
    name: 'millrace_media_packets_damaged_total',
    type: 'counter',
    help: 'PES packets with lost or damaged bytes: of video all but key frames are published, with holes.',
    read: ({ report }) => report.totals.packetsDamaged,
  },
  {
    name: 'millrace_hls_forced_cuts_total',
    type: 'counter',
    help: 'Segments that start without a key frame, since the one before had its maximum duration or size.',
    read: ({ packaging }) => packaging.forcedCuts,
  },
  {
    name: 'millrace_hls_discontinuities_total',
    type: 'counter',
    help: 'Discontinuities of the playlists.',
    read: ({ packaging }) => packaging.discontinuities,
  },
  {
    name: 'millrace_hls_splices_missed_total',
    type: 'counter',
    help: 'Splice points of SCTE 35 that were dropped before their time.',
    read: ({ packaging }) => packaging.missedSplices,
  },
  {
    name: 'millrace_hls_segments_total',
    type: 'counter',
    help: 'Segments of all renditions, gaps excluded.',
    read: ({ report }) => report.totals.segments,
  },
  {
    name: 'millrace_hls_segment_bytes_total',
    type: 'counter',
    help: 'Size of the segments of all renditions.',
    read: ({ report }) => report.totals.segmentBytes,
  },
  {
    name: 'millrace_hls_media_seconds_total',
    type: 'counter',
    help: 'Duration of the main rendition, gaps included.',
    read: ({ report }) => report.totals.durationSec,
  },
  {
    name: 'millrace_hls_gaps_total',
    type: 'counter',
    help: 'Segments not stored for lack of memory.',
    read: ({ report }) => report.playlist.gaps,
  },
  {
    name: 'millrace_viewers',
    type: 'gauge',
    help: 'Estimated viewers: players that requested a file in the last 30 s.',
    read: ({ viewers }) => viewers,
  },
  {
    name: 'millrace_edges',
    type: 'gauge',
    help: 'Edges on other machines that read a stream.',
    read: ({ edges }) => edges?.length,
  },
  {
    name: 'millrace_edge_lag_seconds',
    type: 'gauge',
    help: 'How far the edge that is farthest behind is behind the owner.',
    onlyPerStream: true,
    read: ({ edges }) => edges && maxLagMs(edges) / 1000,
  },
  {
    name: 'millrace_srt_readers',
    type: 'gauge',
    help: 'Readers of the transport stream over SRT.',
    read: ({ report }) => report.readers.length,
  },
  {
    name: 'millrace_srt_sent_bytes_total',
    type: 'counter',
    help: 'SRT payload sent to readers, without retransmissions.',
    read: ({ report }) => report.totals.srtBytesSent,
  },
  {
    name: 'millrace_hls_sent_bytes_total',
    type: 'counter',
    help: 'Bodies of replies to viewers, by kind of file.',
    label: 'kind',
    read: ({ sent }) => sent,
  },
]
