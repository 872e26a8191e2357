/**
 * Warnings about what a source costs this service: memory, bitrate and CPU.
 *
 * @module
 */
import { figure, mebibytes, megabits } from './figures.ts'
import type { Shortage } from './shortage-watch.ts'
import { EVENT_HOLD_SEC, rule } from './warning-rule.ts'

export interface Bitrate {
  readonly meanBps: number
  readonly maxBps: number
}

export const SERVICE_WARNINGS = {
  CACHE_TOO_SMALL: rule<Shortage>({
    begins: ({ listed, wanted, cut, short, released, gaps }) =>
      (short && listed < Math.min(wanted, cut)) || released > 0 || gaps > 0,
    holdSec: EVENT_HOLD_SEC,
    merge: (before, now) => ({
      ...now,
      listed: Math.min(before.listed, now.listed),
      released: before.released + now.released,
      gaps: before.gaps + now.gaps,
    }),
    message: ({ listed, wanted, released, gaps, advisedBytes }) =>
      `Memory is short: ${listed} of ${wanted} segments listed, ${figure(released)} released early, ${figure(gaps)} gaps. ${
        gaps > 0
          ? 'Viewers see holes.'
          : released > 0
            ? 'Slow viewers miss segments.'
            : 'Viewers can rewind less.'
      } Set CACHE_MAX_MIB to ${mebibytes(advisedBytes)}.`,
  }),
  BITRATE_HIGH: rule<Bitrate>({
    begins: ({ meanBps, maxBps }) => meanBps >= 0.8 * maxBps,
    ends: ({ meanBps, maxBps }) => meanBps < 0.75 * maxBps,
    message: ({ meanBps, maxBps }) =>
      `The encoder sends ${megabits(meanBps)} Mbit/s (limit ${megabits(maxBps)}). Over it viewers lose the stream. Lower its bitrate, or raise INGEST_MAX_MBPS.`,
  }),
  BITRATE_EXCEEDED: rule<Bitrate>({
    holdSec: Infinity,
    message: ({ meanBps, maxBps }) =>
      `The encoder sent ${megabits(meanBps)} Mbit/s (limit ${megabits(maxBps)}) and was cut off. Viewers wait. Lower its bitrate, or raise INGEST_MAX_MBPS.`,
  }),
  INGEST_TOO_COSTLY: rule<{ dropped: number }>({
    holdSec: EVENT_HOLD_SEC,
    message: ({ dropped }) =>
      `${figure(dropped)} packets dropped: tables, timestamps or tiny frames take 2 x the CPU of clean media. Viewers see holes. Keep PMT, SPS and frame times steady.`,
  }),
}
