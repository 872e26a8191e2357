/**
 * Producer reference time (ISO/IEC 14496-12 8.16.5): the wall clock at a decode time.
 *
 *   prft version 1: | track ID 32 | NTP timestamp 64 | media time 64 |
 *
 * @module
 */
import { fullBox, u32, u64 } from './box.ts'

/** Seconds from the epoch of NTP, 1900, to that of Unix. */
const NTP_OFFSET_SEC = 2_208_988_800

/** `flags`: the time at which the media was captured. */
const CAPTURE_TIME = 24

export interface ProducerTime {
  readonly trackId: number
  /** Unix time in milliseconds. */
  readonly unixMs: number
  /** Decode time in ticks of the track's timescale. */
  readonly decodeTicks: number
}

export function encodeProducerTime({ trackId, unixMs, decodeTicks }: ProducerTime): Buffer {
  const seconds = Math.floor(unixMs / 1000)
  const fraction = Math.floor(((unixMs - seconds * 1000) / 1000) * 2 ** 32)
  const ntp = u32(seconds + NTP_OFFSET_SEC, fraction)
  return fullBox('prft', 1, CAPTURE_TIME, u32(trackId), ntp, u64(decodeTicks))
}
