/**
 * `millrace/hls`: demuxed MPEG-TS in, segments and playlists out.
 *
 * @module
 */
export type { DateRange } from './date-range.ts'
export { LivePresentation, type LivePresentationOptions } from './playlist/live-presentation.ts'
export {
  Packager,
  type PackagerOptions,
  type PackagerOutput,
  type PackagerStats,
} from './packager.ts'
export { formatMediaPlaylist, formatMultivariantPlaylist } from './playlist/playlist-format.ts'
export type {
  LowLatencyTags,
  MediaPlaylist,
  MultivariantPlaylist,
  OpenSegment,
  PlaylistPart,
  PlaylistSegment,
  RenditionReport,
  Variant,
} from './playlist/playlist.ts'
export type {
  Availability,
  DeliveryDirectives,
  PlaylistPosition,
} from './store/delivery-directives.ts'
export { FileStore, type FileStoreOptions } from './store/file-store.ts'
export type { SegmentOwner, ShortageCounters } from './store/cache-account.ts'
export type { WindowSize } from './store/memory-share.ts'
export { SegmentCache, type SegmentCacheStats } from './store/segment-cache.ts'
export type { Part, Segment } from './store/segment.ts'
export type { BlockingLimits, StreamFile } from './store/stream-file.ts'
