/**
 * PES units, the output of the demuxer and the input of segments.
 *
 * @module
 */
import type { Track } from './track.ts'

/**
 * A PES packet in its transport packets, with its times and the kind of its access unit. Put out when complete, so the
 * packets of two units never interleave.
 */
export interface PesUnit {
  readonly track: Track
  /**
   * Runs of whole transport packets of this PID: views into the input, to be copied when retained. Packets that the
   * demuxer created have arbitrary continuity counters.
   */
  readonly chunks: readonly Buffer[]
  /** Sum of the chunks' lengths. */
  readonly sizeBytes: number
  /**
   * Presentation time, 90 kHz, unwrapped past 33 bits: negative before a wrap that follows the first unit. A PES packet
   * without a PTS has the times of the one before.
   */
  readonly ptsTicks: number
  /** Decoding time, 90 kHz, unwrapped; equals `ptsTicks` when the PES packet has no DTS. */
  readonly dtsTicks: number
  /**
   * Whether a decoder can start here. H.264: IDR picture, or I picture with an exact recovery point; H.265: IRAP picture,
   * CRA included; both with delimiter and all parameter sets. Always true for audio and data.
   */
  readonly randomAccess: boolean
  /** Recovery point of a gradual decoding refresh (intra refresh), at which players cannot start. */
  readonly gradualRefresh: boolean
  /** H.265 RADL picture: output before the key frame that it follows, and decodable from that key frame. */
  readonly decodableLeading: boolean
  /** False for video that continues the frame of the unit before: a second field, or later slices. */
  readonly startsFrame: boolean
  /** Whether bytes were lost or damaged in transmission. */
  readonly damaged: boolean
}
