/**
 * `millrace/mpegts`: a transport stream demuxer that outputs PES packets as whole transport packets.
 *
 * @module millrace/mpegts
 */
export { Demuxer, type DemuxerOptions, type DemuxerOutput } from './demux/demuxer.ts'
export type { ParameterSet } from '../codec/parameter-sets.ts'
export type { PesUnit, Repetition } from './pes-unit.ts'
export type { ProgramChoice } from './program-choice.ts'
export type { Times } from './timestamps.ts'
export type { DemuxerStats } from './demux/demuxer-stats.ts'
export type { Segmentation } from './psi/segmentation-descriptor.ts'
export type { SpliceCommand, SpliceInfo, SpliceInsert } from './psi/splice-info.ts'
export type { Codec, Program, Track, TrackParameters } from './track.ts'
