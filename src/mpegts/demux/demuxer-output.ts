/**
 * What leaves the demuxer: programs and PES units, in the order they were completed.
 *
 * @module
 */
import type { SpliceInfo } from '../psi/splice-info.ts'
import type { Program, Track } from '../track.ts'

/**
 * A whole PES packet that kept its TS packets (notes: "PES-atomic"). Released when complete, so units of
 * different tracks never interleave.
 */
export interface PesUnit {
  readonly track: Track
  /**
   * Whole TS packets of this PID, each chunk n x 188 bytes; views into the input, to be copied by whoever keeps them.
   * Packets that were made anew stand among them where something was inserted: their counters say nothing.
   */
  readonly chunks: readonly Buffer[]
  /** Sum of the chunks' lengths. */
  readonly sizeBytes: number
  /**
   * Presentation time, 90 kHz, unwrapped past 33 bits: only a jump in the source makes it go back. Negative for units
   * that lie before the first one across a wrap. A PES without PTS has the time of the unit before it.
   */
  readonly ptsTicks: number
  /** Decoding time, same scale; equals `ptsTicks` where the PES has none. */
  readonly dtsTicks: number
  /**
   * A decoder can start here: for H.264 an IDR picture or an I picture with an exact recovery point, for H.265 an IRAP
   * picture, CRA included, with its access unit delimiter and all parameter sets. For all but video always true.
   */
  readonly randomAccess: boolean
  /** Pictures become whole by and by from here on (intra refresh): no player can start here. */
  readonly gradualRefresh: boolean
  /** H.265 RADL picture: shown before the key frame that it follows, but decodable by who starts there. */
  readonly decodableLeading: boolean
  /** False for video that goes on with the frame of the unit before it: a second field, or a later slice. */
  readonly startsFrame: boolean
  /** Bytes of it were lost or damaged on the way. */
  readonly damaged: boolean
}

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
