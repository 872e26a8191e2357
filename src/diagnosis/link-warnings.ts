/**
 * Warnings about the SRT connection of an encoder.
 *
 * @module
 */
import { figure, megabits, percent } from './figures.ts'
import {
  ADVISED_ROUND_TRIPS,
  adviseLatencyMs,
  isEnough,
  MIN_ROUND_TRIPS,
} from './latency-advice.ts'
import { isSome, rule, type Events } from './warning-rule.ts'

export const LINK_WARNINGS = {
  LATENCY_TOO_LOW: rule<{ latencyMs: number; rttMs: number; steadyRttMs: number }>({
    begins: ({ latencyMs, steadyRttMs }) => !isEnough(latencyMs, MIN_ROUND_TRIPS, steadyRttMs),
    ends: ({ latencyMs, steadyRttMs }) => isEnough(latencyMs, ADVISED_ROUND_TRIPS, steadyRttMs),
    message: ({ latencyMs, rttMs }) => {
      const advisedMs = adviseLatencyMs(rttMs)
      return `Latency is ${latencyMs} ms, ${MIN_ROUND_TRIPS} round trips take ${Math.ceil(MIN_ROUND_TRIPS * rttMs)}. Viewers may see losses. Set latency=${advisedMs * 1000} (ffmpeg, OBS: microseconds) or SRT_LATENCY_MS=${advisedMs}.`
    },
  }),
  PACKETS_UNDECRYPTABLE: rule<Events>({
    begins: isSome,
    message: ({ count, spanSec }) =>
      `${figure(count)} packets in ${spanSec} s could not be decrypted. Viewers see holes. Reconnect the encoder, with the passphrase of this stream.`,
  }),
  WINDOW_OVERFLOW: rule<Events & { latencyMs: number; bitrateBps: number }>({
    begins: isSome,
    message: ({ count, spanSec, latencyMs, bitrateBps }) =>
      `${figure(count)} packets in ${spanSec} s outran a missing one (${megabits(bitrateBps)} Mbit/s, latency ${latencyMs} ms). Viewers see holes. Lower bitrate or latency.`,
  }),
  LOSSES_NOT_REPAIRED: rule<
    // `sent`, `lost` and `count`: packets sent, lost, and lost without repair.
    Events & { sent: number; lost: number; latencyMs: number; rttMs: number; bitrateBps: number }
  >({
    begins: ({ count, sent }) => count > 0.001 * sent,
    ends: ({ count, sent }) => count <= 0.0005 * sent,
    unless: ['LATENCY_TOO_LOW', 'PACKETS_UNDECRYPTABLE', 'WINDOW_OVERFLOW'],
    message: ({ count, sent, lost, latencyMs, rttMs, bitrateBps }) =>
      `${percent(lost / sent)} lost, ${percent(count / sent)} not repaired (latency ${latencyMs} ms, RTT ${Math.ceil(rttMs)} ms). Viewers see holes. Lower the bitrate (now ${megabits(bitrateBps)} Mbit/s) or raise latency.`,
  }),
}
