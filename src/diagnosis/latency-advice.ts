/**
 * Latency that a connection needs for its round-trip time.
 *
 * @module
 */
import { MAX_LATENCY_MS } from '../srt/wire/limits.ts'

/** Minimum latency in round trips: loss detection, NAK and retransmission take up to 2, and a second attempt 2 more. */
export const MIN_ROUND_TRIPS = 4
/** Advised latency in round trips, with a reserve for a varying round-trip time. */
export const ADVISED_ROUND_TRIPS = 4.5

/** Whether a latency is at least `roundTrips` round trips, or the maximum latency if that is less. */
export function isEnough(latencyMs: number, roundTrips: number, rttMs: number): boolean {
  return latencyMs >= Math.min(roundTrips * rttMs, MAX_LATENCY_MS)
}

/** @returns advised latency in milliseconds, a multiple of 10 */
export function adviseLatencyMs(rttMs: number): number {
  return Math.min(Math.ceil((ADVISED_ROUND_TRIPS * rttMs) / 10) * 10, MAX_LATENCY_MS)
}
