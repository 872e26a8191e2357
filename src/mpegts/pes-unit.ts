/**
 * What a demuxed stream consists of: one PES packet of one track.
 *
 * @module
 */
import type { Track } from './track.ts'

/**
 * A whole PES packet that kept its TS packets. Released when complete, so units of
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
