/**
 * `millrace/mpegts`: a transport stream demuxer that outputs PES packets as whole transport packets.
 *
 * @module
 */
export { Demuxer, type DemuxerOutput } from './demux/demuxer.ts'
export type { PesUnit } from './pes-unit.ts'
export type { DemuxerStats } from './demux/demuxer-stats.ts'
export type { Segmentation } from './psi/segmentation-descriptor.ts'
export type { SpliceCommand, SpliceInfo, SpliceInsert } from './psi/splice-info.ts'
export type { Codec, Program, Track, TrackParameters } from './track.ts'
