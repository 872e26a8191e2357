/**
 * Figures that Millrace is to reach, each with the bench that measures it.
 *
 * @module
 */

export interface Aim {
  readonly figure: string
  /** Bound, in words and with its unit. */
  readonly aim: string
  readonly atMost?: number
  readonly atLeast?: number
  readonly unit: string
  readonly decimals: number
  /** Arguments behind `npm run bench --`; undefined: no bench measures it. */
  readonly bench?: string
}

const INGEST_100 = 'ingest --sender libsrt --publishers 100 --seconds 300'
const INGEST_60 = 'ingest --sender libsrt --publishers 60 --seconds 60'
const INGEST_40 = 'ingest --sender libsrt --publishers 1 --mbit 40 --seconds 60'
const OVERLOAD = 'ingest --overload --publishers 140 --seconds 60'
const PLAY_50 = 'play --readers 50 --seconds 60'

const NONE = { aim: 'none', atMost: 0, unit: '', decimals: 0 } as const

export const AIMS = {
  'ingest-lost': {
    ...NONE,
    figure: 'ingest, 100 × 5 Mbit/s for 5 minutes: packets lost',
    bench: INGEST_100,
  },
  'ingest-lost-in-phase': {
    ...NONE,
    figure: 'the same, all streams cut at the same instant',
    bench: `${INGEST_100} --in-phase`,
  },
  'ingest-cpu': {
    figure: 'ingest, 100 × 5 Mbit/s: CPU a packet',
    ...atMost(12, 'µs', 1),
    bench: INGEST_100,
  },
  'ingest-ts-srs': {
    figure: 'ingest, 60 × 5 Mbit/s, transport stream alone: CPU beside SRS',
    ...atMost(0.5, '×', 2),
    bench: INGEST_60,
  },
  'ingest-srs': {
    figure: 'the same, transport stream and CMAF',
    ...atMost(0.75, '×', 2),
    bench: INGEST_60,
  },
  'ingest-stall': {
    figure: 'ingest, 100 × 5 Mbit/s: longest stall of the event loop',
    ...atMost(20, 'ms', 0),
    bench: INGEST_100,
  },
  'overload-dropped': {
    figure: 'overload, 140 × 5 Mbit/s: packets that the admitted publishers lose',
    ...{ aim: 'none that the core can read', unit: '%', decimals: 3 },
    bench: OVERLOAD,
  },
  'overload-refused': {
    figure: 'overload, 140 × 5 Mbit/s: newcomers refused, of one',
    ...{ aim: '1', atLeast: 1, unit: '', decimals: 0 },
    bench: OVERLOAD,
  },
  'overload-recovery': {
    figure: 'overload: time until publishers are admitted again',
    ...{ aim: 'by itself', unit: 's', decimals: 1 },
    bench: OVERLOAD,
  },
  'ingest-40-srs': {
    figure: 'ingest, one stream of 40 Mbit/s: CPU beside SRS',
    ...atMost(1, '×', 2),
    bench: INGEST_40,
  },
  'ingest-40-ffmpeg': {
    figure: 'ingest, one stream of 40 Mbit/s: CPU beside ffmpeg -c copy',
    ...atMost(1.7, '×', 2),
    bench: INGEST_40,
  },
  memory: {
    figure: 'memory above 90 MB, for each byte of the segments held',
    ...atMost(1.15, 'B', 2),
    bench: INGEST_100,
  },
  'play-lost': {
    ...NONE,
    figure: 'play over SRT, 50 readers of 5 Mbit/s: packets of the encoder lost',
    bench: PLAY_50,
  },
  'play-cpu': {
    figure: 'the same: CPU a packet sent',
    ...atMost(12, 'µs', 1),
    bench: PLAY_50,
  },
  'segment-nginx': {
    figure: 'segments of 1.25 MB: bytes/s beside nginx',
    ...atLeast(1.3),
    bench: 'http',
  },
  'small-segment-nginx': {
    figure: 'segments of 0.5 MB: bytes/s beside nginx',
    ...atLeast(1),
    bench: 'http',
  },
  'part-nginx': {
    figure: 'parts of 100 KB: bytes/s beside nginx',
    ...atLeast(1),
    bench: 'http',
  },
  'playlist-node': {
    figure: 'playlists: replies/s beside bare node:http',
    ...atLeast(0.7),
    bench: 'http',
  },
  'not-found-hit': {
    figure: '404: CPU a reply beside a playlist',
    ...atMost(1, '×', 2),
    bench: 'http',
  },
  'segment-2-nginx-2': {
    figure: 'two workers, segments: bytes/s beside nginx with two',
    ...atLeast(1),
    bench: 'http --workers 0,2',
  },
  'playlist-2-nginx-2': {
    figure: 'two workers, playlists: replies/s beside nginx with two',
    ...atLeast(1),
    bench: 'http --workers 0,2',
  },
  'release-p99': {
    figure: 'low latency, 500 blocked viewers: from a complete part to its playlist, p99',
    ...atMost(50, 'ms', 0),
    bench: 'release',
  },
  'glass-to-glass': {
    figure: 'glass to glass in hls.js, parts of 200 ms, median',
    ...atMost(1, 's', 2),
    bench: 'latency',
  },
} satisfies Record<string, Aim>

export type AimKey = keyof typeof AIMS

function atMost(bound: number, unit: string, decimals: number) {
  return { aim: `≤ ${bound} ${unit}`, atMost: bound, unit, decimals }
}

function atLeast(ratio: number) {
  return { aim: `≥ ${ratio} ×`, atLeast: ratio, unit: '×', decimals: 2 }
}
