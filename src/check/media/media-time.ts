/**
 * Differences of media times.
 *
 * @module
 */
import { TIME_MODULUS } from '../../binary/timestamp-33.ts'
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import type { Container } from './inspected-media.ts'

/** Period of the timestamps of MPEG-TS and packed audio, 26.5 hours. */
const WRAP_SEC = TIME_MODULUS / TICKS_PER_SEC

/** @returns seconds from `earlierSec` to `laterSec`, across a wrap of the timestamps if that is nearer */
export function secondsAfter(container: Container, laterSec: number, earlierSec: number): number {
  const difference = laterSec - earlierSec
  if (container === 'fmp4') return difference
  return difference - Math.round(difference / WRAP_SEC) * WRAP_SEC
}
