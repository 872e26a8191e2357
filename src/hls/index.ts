/**
 * `millrace/hls`: demuxed MPEG-TS in, segments and playlists out.
 *
 * @module millrace/hls
 */
export type { SequenceNumbers } from './cut/segment-plan.ts'
export type { DateRange } from './date-range.ts'
export type { Format, RenditionName } from './file-names.ts'
export type { CaptionsPolicy } from './playlist/multivariant.ts'
export type { TrackPolicy } from './rendition/rendition-tracks.ts'
export type { TargetDurations } from './target-durations.ts'
export { LivePresentation, type LivePresentationOptions } from './playlist/live-presentation.ts'
export {
  Packager,
  type PackagerOptions,
  type PackagerOutput,
  type PackagerStats,
} from './packager.ts'
export { formatMediaPlaylist, formatMultivariantPlaylist } from './playlist/playlist-format.ts'
export type {
  AudioRendition,
  ClosedCaptions,
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
export {
  FileStore,
  type FileLoan,
  type FileStoreOptions,
  type OlderMedia,
} from './store/file-store.ts'
export type { SegmentOwner, ShortageCounters } from './store/cache-account.ts'
export type { WindowSize } from './store/memory-share.ts'
export { SegmentCache, type NewSegment, type SegmentCacheStats } from './store/segment-cache.ts'
export type { InitSegment, Part, Segment, SegmentStart } from './store/segment.ts'
export type { BlockingLimits, StreamFile } from './store/stream-file.ts'
