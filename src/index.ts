/**
 * Millrace as a library: `createServer` and its types.
 *
 * @module
 */
export { createServer } from './service/create-server.ts'
export type { ServerOptions } from './service/open-server.ts'
export type { CloseOptions, Server } from './service/server.ts'
export { signPlaybackToken, type PlaybackTokenOptions } from './auth/playback-token.ts'
export { MillraceError, RejectCode, type ErrorCode } from './errors.ts'
export type {
  PlayableStream,
  PlaybackSource,
  StartedStream,
  StartRequest,
  StopRequest,
  StreamFile,
  StreamRecord,
} from './contract/streams.ts'
export type { HttpReport, ServiceReport } from './contract/service-report.ts'
export type { Availability, DeliveryDirectives } from './hls/store/delivery-directives.ts'
export type { StreamFiles } from './hls/store/file-store.ts'
export type { Segment } from './hls/store/segment.ts'
export type { StreamEvents } from './stream/stream-events.ts'
export type { LiveStream } from './stream/live-stream.ts'
export type {
  ConnectionReport,
  PlaylistReport,
  PublisherReport,
  SrtCounters,
  StreamReport,
  StreamTotals,
  TrackReport,
  Warning,
} from './contract/report.ts'
export type { StopReason, StreamState } from './contract/state.ts'
