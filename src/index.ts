/**
 * Millrace as a library: `createServer`, and the types of what it hands out.
 *
 * @module
 */
export {
  createServer,
  type CloseOptions,
  type Server,
  type ServerOptions,
} from './service/server.ts'
export { MillraceError, RejectCode, type ErrorCode } from './errors.ts'
export type { StartedStream, StartRequest } from './contract/streams.ts'
export type { StreamFiles, WaitOptions } from './hls/store/file-store.ts'
export type { Segment } from './hls/store/segment.ts'
export type { StreamFile } from './hls/store/stream-file.ts'
export type { StreamEvents } from './stream/event-queue.ts'
export type { LiveStream } from './stream/live-stream.ts'
export type {
  PublisherReport,
  StreamReport,
  StreamTotals,
  TrackReport,
  Warning,
} from './contract/report.ts'
export type { StopReason, StreamState } from './contract/state.ts'
