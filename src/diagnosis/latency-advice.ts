/**
 * How much latency a round trip time asks for.
 *
 * @module
 */
import { MAX_LATENCY_MS } from '../srt/wire/limits.ts'

/** A loss is found, asked for and sent again within two round trips; four leave time for a second try. */
export const MIN_ROUND_TRIPS = 4
/** Advised, so that a round trip that varies leaves enough. */
export const ADVISED_ROUND_TRIPS = 4.5

/** Whether a latency is so many round trips, or the longest there is. */
export function isEnough(latencyMs: number, roundTrips: number, rttMs: number): boolean {
  return latencyMs >= Math.min(roundTrips * rttMs, MAX_LATENCY_MS)
}

/** @returns milliseconds, in steps of 10 */
export function adviseLatencyMs(rttMs: number): number {
  return Math.min(Math.ceil((ADVISED_ROUND_TRIPS * rttMs) / 10) * 10, MAX_LATENCY_MS)
}
