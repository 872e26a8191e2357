/**
 * Millrace as a library: `createServer` and its types.
 *
 * @module millrace
 */
export {
  createServer,
  type LiveStream,
  type RequestHandler,
  type Server,
  type ServerEvents,
} from './library.ts'
export type { ServerOptions } from './service/open-server.ts'
export type { CloseOptions } from './service/server.ts'
export { signPlaybackToken, type PlaybackTokenOptions } from './auth/playback-token.ts'
export { MillraceError, type ErrorCode } from './errors.ts'
export { RejectCode } from './srt/wire/reject-code.ts'
export type {
  FileLoan,
  FileRefusals,
  PlayableStream,
  PlaybackSource,
  StreamFile,
  ViewerIdentity,
} from './playback/playback-source.ts'
export type { ClipReport, StartedStream, StreamPage, StreamRecord } from './api/records.ts'
export type { StreamControl } from './api/control.ts'
export type { ClusterNode, EncoderSource, SourceName, SourceReport } from './api/records.ts'
export type { UnreadyReason } from './service/health.ts'
export type { ExpiringKey } from './stream/key-expiry.ts'
export type {
  ClipRequest,
  KickRequest,
  ListRequest,
  StartRequest,
  StopRequest,
} from './api/requests.ts'
export type { Logger } from './logger.ts'
export type { ConnectedEncoder as Encoder, LeaveReason } from './stream/publication.ts'
export type { HttpReport } from './http/guard/http-report.ts'
export type { ServiceReport } from './api/records.ts'
export type { Availability, DeliveryDirectives } from './hls/store/delivery-directives.ts'
export type { StreamFiles } from './hls/store/file-store.ts'
export type { Segment } from './hls/store/segment.ts'
export type { StreamEvents } from './stream/live-stream.ts'
export type {
  ConnectionReport,
  PlaylistReport,
  PublisherReport,
  SrtCounters,
  StreamReport,
  StreamTotals,
  TrackReport,
  Warning,
} from './api/records.ts'
export type {
  InterruptionReason,
  PushEndReason,
  StopReason,
  StreamState,
  SwitchReason,
} from './api/records.ts'
