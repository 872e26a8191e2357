/**
 * Attacks of test/hostile/attacks at full size, with the settings of the attacked service.
 *
 * @module
 */
import type { ServiceOptions } from '../support/service.ts'
import { floodConclusions } from '../../test/hostile/attacks/conclusion-flood.ts'
import {
  holdConnections,
  holdIdleConnections,
} from '../../test/hostile/attacks/held-connections.ts'
import { publishWithLeakedKeys } from '../../test/hostile/attacks/leaked-key.ts'
import { startManyStreams } from '../../test/hostile/attacks/many-streams.ts'
import { sendOnePipeline } from '../../test/hostile/attacks/one-pipeline.ts'
import { crowdSlowly } from '../../test/hostile/attacks/slow-crowd.ts'
import { readSlowly } from '../../test/hostile/attacks/slow-readers.ts'
import { sendSmallPieces } from '../../test/hostile/attacks/small-pieces.ts'
import { sendUnreadPipelines } from '../../test/hostile/attacks/unread-pipelines.ts'
import { floodReaders, stormReaders } from '../../test/hostile/attacks/srt-readers.ts'
import { floodGroups, type GroupAttack } from '../../test/hostile/attacks/socket-groups.ts'
import { floodSrtla } from '../../test/hostile/attacks/srtla.ts'
import { publishLargeStreams } from '../../test/hostile/attacks/large-streams.ts'
import { publishLargeSplices } from '../../test/hostile/attacks/large-splices.ts'
import { holdStreamWithoutMedia } from '../../test/hostile/attacks/silent-publisher.ts'
import { fillWaitingPlaces } from '../../test/hostile/attacks/waiting-places.ts'
import { publishCostly } from '../../test/hostile/attacks/tables.ts'
import { silentReceivers } from '../../test/hostile/attacks/webhooks.ts'
import { usageOf } from '../support/usage.ts'
import { segmentUris } from '../../test/support/viewer.ts'
import type { Target } from '../../test/hostile/target.ts'

export interface Attack extends ServiceOptions {
  readonly name: string
  readonly seconds: number
  /** Memory that the settings allow for the cache and for waiting replies, in MiB; default: RSS has no bound. */
  readonly allowedMib?: { readonly cache: number; readonly buffered: number }
  /** Whether the service has a certificate; default: plain HTTP. */
  readonly tls?: boolean
  /** Runs the attack; bounded, and ends on the signal. */
  carryOut(target: Target, signal: AbortSignal): Promise<object>
}

/** The streams of test/hostile/attacks/costly-streams.ts that used to cost the most CPU, and a clean one to compare. */
const COSTLY = {
  'tables-pat': 'PAT of 8 x 253 programs, one section changes',
  'tables-pmt': 'PMT of one of 1000 programs, all carried',
  'tiny-nal-units': 'NAL units of 3 bytes',
  'clean-audio': 'none: ADTS frames of 1366 bytes',
  'tiny-syncframes': 'E-AC-3 frames of 8 bytes in an AC-3 track',
  'tiny-audio-frames': 'ADTS frames of 8 bytes',
  'audio-formats-in-turn': 'ADTS frames of 8 bytes, two formats in turn',
  'long-audio-pes': 'ADTS frames of 8 bytes in PES packets of 4 MB',
  'nal-units-behind-slice': 'NAL units of 1 byte behind a slice',
  'tiny-segments': 'timestamps jump at each key frame, 24 renditions',
}

/** Streams with which one key holder fills the playlists of 16 renditions; the first is clean, to compare. */
const SPLICES = {
  'no-splices': 'no splices, 16 renditions',
  'large-splices': 'splices of 4 KiB, 16 renditions',
  'open-splices': 'splices of 4 KiB that never end, 16 renditions',
  'timed-splices': 'splices of 4 KiB with a time each, 16 renditions',
  'small-splices': 'splices of 40 bytes, 16 renditions',
}

/** Bodies that come byte by byte and never end: on a route that reads them, and on one that does not. */
const CALL = {
  ...{ method: 'POST', path: '/api/status', headers: { 'lt-signature': '0'.repeat(64) } },
}
const SMALL_PIECES = {
  'small-frames': { protocol: 'h2', connections: 100, bytesPerSec: 524_288, ...CALL },
  'small-frames-unread': { protocol: 'h2', connections: 100, bytesPerSec: 524_288 },
  'small-frames-fast': { protocol: 'h2', connections: 8, bytesPerSec: 4_194_304, ...CALL },
  'small-chunks': { protocol: 'http/1.1', connections: 8, bytesPerSec: 4_194_304, ...CALL },
  'small-chunks-unread': { protocol: 'http/1.1', connections: 8, bytesPerSec: 4_194_304 },
} as const

/** Limits of the cache and of waiting replies beside a slow crowd. */
const CROWD_MIB = 64

/** Floods of the SRTLA port, for 15 s. */
const SRTLA_FLOODS = {
  'srtla-registrations': { what: 'registrations', networks: 3, perSec: 8000, subnet: 81 },
  'srtla-groups': { what: 'groups', networks: 16, perSec: 2000, subnet: 82 },
  'srtla-strangers': { what: 'strangers', networks: 3, perSec: 8000, subnet: 83 },
} as const

/** Floods of handshakes of socket groups. */
const GROUP_FLOODS: Readonly<Record<string, GroupAttack>> = {
  'group-strangers': 'strangers',
  'group-unused-lines': 'unused-lines',
  'group-wrong-sizes': 'wrong-sizes',
}

/** @returns URL of the latest segment of the publisher that must stay unaffected */
async function newestSegment({ host, httpPort }: Target): Promise<string> {
  const folder = `/video/bystander/`
  const playlist = await (await fetch(`http://${host}:${httpPort}${folder}playlist.m3u8`)).text()
  return folder + segmentUris(playlist).at(-1)!
}

export const ATTACKS: readonly Attack[] = [
  {
    name: 'none',
    seconds: 10,
    carryOut: async () => ({}),
  },
  {
    name: 'conclusion-flood',
    seconds: 15,
    carryOut: floodConclusions,
  },
  ...Object.entries(SRTLA_FLOODS).map(([name, flood]) => ({
    name,
    seconds: 15,
    env: { SRTLA_PORT: '19999' },
    carryOut: (target: Target, signal: AbortSignal) =>
      floodSrtla(target, signal, { ...flood, datagrams: Infinity }),
  })),
  ...Object.entries(GROUP_FLOODS).map(([name, what]) => ({
    name,
    seconds: 15,
    carryOut: (target: Target, signal: AbortSignal) => floodGroups(target, signal, what),
  })),
  {
    name: 'reader-flood',
    seconds: 15,
    carryOut: floodReaders,
  },
  {
    name: 'reader-storm',
    seconds: 15,
    carryOut: (target, signal) =>
      stormReaders(target, signal, { readers: 10, naksPerSec: 1000, dataPerSec: 200 }),
  },
  {
    name: 'waiting-places',
    seconds: 10,
    carryOut: fillWaitingPlaces,
  },
  ...Object.entries(COSTLY).map(([name, stream]) => ({
    name,
    seconds: 20,
    carryOut: (target: Target, signal: AbortSignal) =>
      publishCostly(target, signal, { stream, megabitsPerSecond: 10 }),
  })),
  ...Object.entries(SPLICES).map(([name, stream]) => ({
    name,
    seconds: 30,
    carryOut: (target: Target, signal: AbortSignal) =>
      publishLargeSplices(target, signal, {
        stream,
        megabitsPerSecond: 1.2,
        readers: 32,
        reloadMs: 500,
        cpuSec: () => usageOf([target.pid!]).cpuSec,
      }),
  })),
  {
    name: 'silent-publisher',
    seconds: 15,
    carryOut: holdStreamWithoutMedia,
  },
  {
    name: 'unread-pipelines',
    seconds: 20,
    nodeArgs: ['--max-old-space-size=256'],
    carryOut: sendUnreadPipelines,
  },
  {
    name: 'unread-segments',
    seconds: 20,
    nodeArgs: ['--max-old-space-size=256'],
    carryOut: async (target, signal) =>
      sendUnreadPipelines(target, signal, { path: await newestSegment(target) }),
  },
  ...Object.entries(SMALL_PIECES).map(([name, { protocol, ...pieces }]) => ({
    name,
    seconds: 20,
    tls: protocol === 'h2',
    carryOut: (target: Target, signal: AbortSignal) =>
      sendSmallPieces(target, signal, { protocol, ...pieces }),
  })),
  {
    name: 'one-pipeline',
    seconds: 15,
    carryOut: (target, signal) =>
      sendOnePipeline(target, signal, {
        requests: 20_000,
        path: '/video/bystander/playlist.m3u8',
      }),
  },
  {
    name: 'idle-connections',
    seconds: 20,
    carryOut: holdIdleConnections,
  },
  {
    name: 'paused-viewers',
    seconds: 20,
    carryOut: (target, signal) => holdIdleConnections(target, signal, { kind: 'paused' }),
  },
  {
    name: 'held-connections',
    seconds: 30,
    carryOut: (target, signal) => holdConnections(target, signal, { everyMs: 1000 }),
  },
  {
    name: 'slow-readers',
    seconds: 90,
    // Low enough for one stream to reach it in time.
    env: { CACHE_MAX_MIB: '64', HTTP_MAX_BUFFERED_MIB: '16' },
    carryOut: (target, signal) =>
      readSlowly(target, signal, {
        readers: 150,
        path: () => newestSegment(target),
        requestsEach: 20,
        apartMs: 500,
      }),
  },
  {
    name: 'slow-crowd',
    seconds: 180,
    // One stream of 5 Mbit/s makes 112 MB of segments in that time, each with readers.
    env: { CACHE_MAX_MIB: String(CROWD_MIB), HTTP_MAX_BUFFERED_MIB: String(CROWD_MIB) },
    allowedMib: { cache: CROWD_MIB, buffered: CROWD_MIB },
    carryOut: (target, signal) =>
      crowdSlowly(target, signal, {
        slow: 500,
        bytesPerSec: 10_000,
        silent: 200,
        requestEveryMs: 10_000,
        newest: () => newestSegment(target),
      }),
  },
  {
    name: 'many-streams',
    seconds: 30,
    carryOut: startManyStreams,
  },
  {
    name: 'silent-webhooks',
    seconds: 30,
    carryOut: silentReceivers,
  },
  {
    name: 'large-streams',
    seconds: 30,
    env: { CACHE_MAX_MIB: '32' },
    carryOut: publishLargeStreams,
  },
  {
    name: 'leaked-keys',
    seconds: 15,
    carryOut: publishWithLeakedKeys,
  },
]
