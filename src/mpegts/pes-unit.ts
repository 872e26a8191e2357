/**
 * PES units, the output of the demuxer and the input of segments.
 *
 * @module
 */
import type { Track } from './track.ts'

/**
 * A PES packet in its transport packets, with its times and the kind of its access unit. The demuxer emits it when it
 * is complete, so the transport packets of two units never interleave.
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
   * Presentation time, 90 kHz, unwrapped past 33 bits. Negative for a timestamp from before a wrap when the first unit
   * of the program came after that wrap. A PES packet without a PTS takes the times of the PES packet before it.
   */
  readonly ptsTicks: number
  /** Decoding time, 90 kHz, unwrapped; equals `ptsTicks` when the PES packet has no DTS. */
  readonly dtsTicks: number
  /**
   * Whether a decoder can start here. H.264: IDR picture, or I picture with an exact recovery point; H.265: IRAP
   * picture, CRA included; both with delimiter and all parameter sets. Always true for audio and data.
   */
  readonly randomAccess: boolean
  /** Whether it is a recovery point of a gradual decoding refresh (intra refresh), at which players cannot start. */
  readonly gradualRefresh: boolean
  /** Whether it is an H.265 RADL picture: presented before the key frame that it follows, but decodable from there. */
  readonly decodableLeading: boolean
  /** Whether it starts a frame; false for video that continues the previous unit: a second field, or later slices. */
  readonly startsFrame: boolean
  /** Whether bytes were lost or damaged in transmission. */
  readonly damaged: boolean
}
