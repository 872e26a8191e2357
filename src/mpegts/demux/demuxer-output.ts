/**
 * Outputs of the demuxer, in order of completion.
 *
 * @module
 */
import type { SpliceInfo } from '../psi/splice-info.ts'
import type { PesUnit } from '../pes-unit.ts'
import type { Times } from '../timestamps.ts'
import type { Program } from '../track.ts'

/**
 * - `program`: describes the PES packets that follow. Emitted when a track appears, vanishes or changes, and when the
 *   bitstream parameters of a track become known or change. `layoutChanged` is true when PIDs, stream types, codec,
 *   video size, sample rate or channels differ from the previous program, so that players need an EXT-X-DISCONTINUITY.
 *   It is false when parameters only become known, and for the first program of a demuxer.
 * - `header`: the times of a video PES packet that has begun, long before it is complete if its length is unbounded.
 *   A `unit` with these times follows, unless the PES packet is dropped.
 * - `unit`: a complete PES packet.
 * - `packets`: transport packets between PES packets that segments need as well: PCR-only packets of the PCR PID.
 * - `splice`: a splice information section, emitted on arrival, usually before its splice time; repetitions are
 *   dropped.
 */
export type DemuxerOutput =
  | { readonly type: 'program'; readonly program: Program; readonly layoutChanged: boolean }
  | { readonly type: 'header'; readonly pid: number; readonly times: Times }
  | { readonly type: 'unit'; readonly unit: PesUnit }
  | { readonly type: 'packets'; readonly pid: number; readonly chunks: readonly Buffer[] }
  | { readonly type: 'splice'; readonly splice: SpliceInfo }
