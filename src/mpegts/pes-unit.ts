/**
 * PES packets as the demuxer outputs them and segments take them.
 *
 * @module
 */
import type { ParameterSet } from '../codec/parameter-sets.ts'
import type { Track } from './track.ts'

/**
 * A PES packet in its transport packets, with its times and the kind of its access unit. The demuxer outputs it when it
 * is complete, so transport packets of two PES packets never interleave.
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
  /** Copy of its elementary stream bytes, in one piece. */
  readonly payload: Buffer
  /**
   * Presentation time, 90 kHz, unwrapped past 33 bits. Negative for a timestamp from before a wrap when the first PES
   * packet of the program came after that wrap. A PES packet without a PTS goes on by the frames that
   * were counted; one in which no frame begins, or of data, has the times of the previous PES packet of its track, or of the
   * program if it is the first of its track.
   */
  readonly ptsTicks: number
  /** Decoding time, 90 kHz, unwrapped; equals `ptsTicks` when the PES packet has no DTS. */
  readonly dtsTicks: number
  /**
   * Whether a decoder can start here. H.264: IDR picture, or I picture with recovery_frame_cnt 0; H.265: IRAP picture,
   * CRA included; both with delimiter and, unless damaged, all parameter sets. Always true for audio and data.
   */
  readonly randomAccess: boolean
  /**
   * Whether it is a random access point with other parameter sets than those before it (H.264 7.4.1.2.1); with `inBandSets`,
   * only sets other than PPS count.
   */
  readonly newParameters: boolean
  /**
   * Whether a PPS of the track has come with other content under the same SPS so far, so that samples need their parameter
   * sets in band (ISO/IEC 14496-15 5.4.1); never becomes false again.
   */
  readonly inBandSets: boolean
  /** Whether it is a recovery point of a gradual decoding refresh (intra refresh), at which players cannot start. */
  readonly gradualRefresh: boolean
  /** Whether it is an H.265 RADL picture: sent after a key frame, presented before it, and decodable from it. */
  readonly decodableLeading: boolean
  /** Whether it starts a frame; false for video that continues one: a second field, later slices, or the rest of its bytes. */
  readonly startsFrame: boolean
  /** Whether bytes were lost in transmission, or LATM cannot be parsed. */
  readonly damaged: boolean
  /** Of video that is repeated while it stays away; undefined for a frame as sent. */
  readonly repetition?: Repetition
  /** Parameter sets of the video so far, in the order of their kinds; undefined while one of some kind is unknown. */
  readonly parameterSets?: readonly ParameterSet[] | undefined
  /**
   * Number of transport packets that the demuxer had read before the PES packet in which it was sent, or began if it is cut
   * anew; undefined for one that did not come from a demuxer.
   */
  readonly packetNumber?: number
}

/** Repetition of the frames of a GOP so far. */
export interface Repetition {
  /** DTS at which it ends: that of the frame behind it or, where the clock jumps there, one at most 4 s after its start. */
  readonly untilTicks: number
  /** Whether that is a frame as sent. */
  readonly isLast: boolean
  /** Whether the PES packet ends the GOP so far, and is shown until then. */
  readonly endsGop: boolean
}

/** Memory of a PES packet beside its bytes: of its objects and buffers. */
const UNIT_BYTES = 1024

/** Memory of a PES packet that is kept with its payload. */
export function memoryOf({ sizeBytes, payload }: PesUnit): number {
  return sizeBytes + payload.length + UNIT_BYTES
}
