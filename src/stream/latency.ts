/**
 * Latency that viewers of a stream can expect.
 *
 * @module
 */
import type { LatencyReport } from '../contract/report.ts'
import { holdBackSec } from '../hls/playlist/playlist-format.ts'
import type { TargetDurations } from '../hls/target-durations.ts'

/** @param srtMs  latency of the SRT connection */
export function describeLatency(targets: TargetDurations, srtMs: number): LatencyReport {
  const partMs = Math.ceil((targets.partTargetSec ?? targets.targetSec) * 1000)
  const holdBackMs = Math.ceil(holdBackSec(targets) * 1000)
  return { srtMs, partMs, holdBackMs, expectedMs: srtMs + partMs + holdBackMs }
}
