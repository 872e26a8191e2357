/**
 * `millrace/hls`: demuxed MPEG-TS in, segments and playlists out.
 *
 * @module
 */
export { LivePlaylist, type LivePlaylistOptions, type RenderedPlaylist } from './live-playlist.ts'
export { LivePresentation } from './live-presentation.ts'
export { Packager, type PackagerOutput, type PackagerStats } from './packager.ts'
export { formatMediaPlaylist, formatMultivariantPlaylist } from './playlist-format.ts'
export type {
  DateRange,
  MediaPlaylist,
  MultivariantPlaylist,
  PlaylistSegment,
  Variant,
} from './playlist.ts'
export type { WindowSize } from './memory-share.ts'
export {
  SegmentCache,
  type SegmentCacheStats,
  type SegmentOwner,
  type ShortageCounters,
} from './segment-cache.ts'
export type { Segment } from './segment.ts'
export {
  Segmenter,
  type SegmenterOptions,
  type SegmenterOutput,
  type SegmenterStats,
} from './segmenter.ts'
