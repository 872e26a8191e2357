/**
 * What leaves the demuxer: programs and PES units, in the order they were completed.
 *
 * @module
 */
import type { SpliceInfo } from '../psi/splice-info.ts'
import type { PesUnit } from '../pes-unit.ts'
import type { Program } from '../track.ts'

/**
 * - `program`: tracks appeared, vanished or changed; describes all units that follow. Sent again when the bitstream
 *   parameters of a track become known or change. `layoutChanged` is true where PIDs, stream types, codec, picture
 *   size, sample rate or channels differ from the program before, so that a player needs a DISCONTINUITY; what becomes
 *   known for the first time is no change, and neither is the first program of a demuxer.
 * - `packets`: TS packets that belong to no PES but must be kept (PCR-only packets of the PCR PID).
 * - `splice`: once for each section of splice information, however often it is repeated; as it arrives, that is, ahead of
 *   its time.
 */
export type DemuxerOutput =
  | { readonly type: 'program'; readonly program: Program; readonly layoutChanged: boolean }
  | { readonly type: 'unit'; readonly unit: PesUnit }
  | { readonly type: 'packets'; readonly pid: number; readonly chunks: readonly Buffer[] }
  | { readonly type: 'splice'; readonly splice: SpliceInfo }
