/**
 * `millrace/mpegts`: a transport stream demuxer that keeps PES packets as the transport packets they came in.
 *
 * @module
 */
export { Demuxer } from './demuxer.ts'
export type { DemuxerOutput, PesUnit } from './demuxer-output.ts'
export type { DemuxerStats } from './demuxer-stats.ts'
export type { Segmentation } from './segmentation-descriptor.ts'
export type { SpliceCommand, SpliceInfo, SpliceInsert } from './splice-info.ts'
export type { Codec, Program, Track, TrackParameters } from './track.ts'
