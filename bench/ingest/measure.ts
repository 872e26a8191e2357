/**
 * What it costs to receive N live streams over real UDP, SRT to segment, in Millrace and in other receivers.
 *
 * @module
 */
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { clipOf } from '../support/clip.ts'
import { freePorts } from '../../test/support/free-port.ts'
import { isInstalled, startProgram, stopProgram } from '../support/programs.ts'
import { readLosses, startService, type Collections, type Service } from '../support/service.ts'
import { kernelDrops, processTree, usageOf, type Usage } from '../support/usage.ts'
import { startSenders, type SendersOptions } from './senders.ts'
import { archiveEnvironment, startStore } from '../support/store.ts'

const SCRATCH = `/dev/shm/millrace-bench-${process.pid}`

const CLIP_SEC = 8
const DATAGRAM_BYTES = 1316

/** From the start of the publishers until windows are full: before that, each packet is written to fresh memory. */
const WARM_UP_MS = 40_000

/** At most, to ask the receiver for its figures. */
const REPORT_MS = 4000

export interface IngestLoad extends SendersOptions {
  readonly publishers: number
  /** `CACHE_MAX_MIB` of Millrace; its default where undefined. */
  readonly cacheMib: number | undefined
  /** `INGEST_WORKERS` of Millrace. */
  readonly ingestWorkers: number
}

export interface IngestResult {
  readonly receiver: string
  readonly packetsPerSec: number
  /** 1 is one core. */
  readonly cpuLoad: number
  readonly cpuUsPerPacket: number
  readonly rssBytes: number
  /** Segments held in memory; NaN where the receiver does not tell. */
  readonly cachedBytes: number
  /** Media in no segment yet, and that of backups; NaN where the receiver does not tell. */
  readonly queuedBytes: number
  /** Collections of the whole heap, per minute; NaN where there is none. */
  readonly majorCollectionsPerMin: number
  /** Pauses for garbage collection, as a share of the time; NaN where there are none. */
  readonly pauseShare: number
  /** CPU of the sending processes, for comparison. */
  readonly senderCpuLoad: number
  readonly kernelDrops: number
  /** Found missing by the receiver, repaired or not; NaN where it does not tell. */
  readonly lost: number
  /** Given up by the receiver; NaN where it does not tell. */
  readonly dropped: number
  /** Segments that are missing in playlists; NaN where the receiver does not tell. */
  readonly gaps: number
  /** Longest lateness of the event loop in the last 10 s; NaN where there is none. */
  readonly loopDelayMsMax: number
  /** Over all publishers, since their start. */
  readonly retransmissions: number
  /** Given up by the publishers: too late. */
  readonly senderDropped: number
}

type Report = Pick<
  IngestResult,
  'cachedBytes' | 'queuedBytes' | 'lost' | 'dropped' | 'gaps' | 'loopDelayMsMax'
>

/** Something that receives: as many URLs as there are publishers, and what to ask when the time is over. */
interface Receiver {
  readonly name: string
  readonly urls: readonly string[]
  readonly ports: readonly number[]
  readonly pids: readonly number[]
  collections(): Collections
  report(): Promise<Report>
  stop(): Promise<void>
}

const ENCRYPTED = 'millrace, AES-256'

const BACKED_UP = 'millrace, backups'

/** Receivers of the same streams, without and with a backup encoder for each. */
export const BACKUPS = ['millrace', BACKED_UP] as const

const ARCHIVED = 'millrace, archive'
const STORE_AWAY = 'millrace, store away'

/** Receivers of the same streams, without and with an archive, and with a store that never answers. */
export const ARCHIVES = ['millrace', ARCHIVED, STORE_AWAY] as const

/** Settings of Millrace as a receiver. */
const MILLRACE: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  millrace: {},
  [BACKED_UP]: {},
  'millrace, ts': { HLS_FORMATS: 'ts' },
  [ENCRYPTED]: {},
  [ARCHIVED]: {},
  [STORE_AWAY]: {},
}

/** The receivers that can be measured on this machine. */
export function availableReceivers({ sender }: Pick<IngestLoad, 'sender'>): string[] {
  const own = ['millrace', 'millrace, ts', ...(sender === 'millrace' ? [ENCRYPTED] : [])]
  return [...own, ...['srs', 'srt-live-transmit', 'ffmpeg'].filter(isInstalled)]
}

export async function measureIngest(name: string, load: IngestLoad): Promise<IngestResult> {
  const receiver = await startReceiver(name, load)
  const senders = await startSenders(receiver.urls, {
    ...load,
    seconds: load.seconds + (WARM_UP_MS + REPORT_MS) / 1000,
  })
  try {
    await Promise.race([sleep(WARM_UP_MS), senders.failure])
    const before = [usageOf(receiver.pids), usageOf(senders.pids)] as const
    const dropsBefore = kernelDrops(receiver.ports)
    const collectionsBefore = receiver.collections()
    await Promise.race([sleep(load.seconds * 1000), senders.failure])
    const after = [usageOf(receiver.pids), usageOf(senders.pids)] as const
    const collections = receiver.collections()
    const drops = kernelDrops(receiver.ports) - dropsBefore
    const report = await receiver.report()
    const reports = await senders.finish()
    const clipBytes = clipOf(load.bitsPerSecond).length
    const packetsPerSec = (receiver.urls.length * clipBytes) / CLIP_SEC / DATAGRAM_BYTES
    const cpuLoad = loadBetween(before[0], after[0], load.seconds)
    return {
      receiver: name,
      packetsPerSec,
      cpuLoad,
      cpuUsPerPacket: (cpuLoad / packetsPerSec) * 1e6,
      rssBytes: after[0].rssBytes,
      majorCollectionsPerMin: ((collections.major - collectionsBefore.major) * 60) / load.seconds,
      pauseShare: (collections.pauseMs - collectionsBefore.pauseMs) / 1000 / load.seconds,
      senderCpuLoad: loadBetween(before[1], after[1], load.seconds),
      kernelDrops: drops,
      ...report,
      retransmissions: reports.reduce((sum, report) => sum + report.retransmissions, 0),
      senderDropped: reports.reduce((sum, report) => sum + report.dropped, 0),
    }
  } finally {
    await senders.stop()
    await receiver.stop()
  }
}

function loadBetween(before: Usage, after: Usage, seconds: number): number {
  return (after.cpuSec - before.cpuSec) / seconds
}

function startReceiver(name: string, load: IngestLoad): Promise<Receiver> {
  if (name in MILLRACE) return startMillrace(name, load)
  return name === 'srs' ? startSrs(load.publishers) : startPeers(name, load.publishers)
}

async function startMillrace(
  name: string,
  { publishers: count, cacheMib, ingestWorkers }: IngestLoad,
): Promise<Receiver> {
  const encryption = name === ENCRYPTED
  const metricsToken = randomBytes(32).toString('hex')
  const hasStore = name === ARCHIVED || name === STORE_AWAY
  const store = hasStore ? await startStore(name === STORE_AWAY ? 'away' : 'forgetful') : undefined
  const env: Record<string, string> = {
    ...MILLRACE[name],
    ...(store && archiveEnvironment(store)),
    MAX_PUBLISHERS: '1000',
    METRICS_TOKEN: metricsToken,
  }
  if (cacheMib !== undefined) env['CACHE_MAX_MIB'] = String(cacheMib)
  const service = await startService({ env, ingestWorkers, nodeArgs: ['--trace-gc'] })
  const ids = Array.from({ length: count }, (_, index) => `bench-${index}`)
  const urls = await Promise.all(
    ids.map((id) =>
      name === BACKED_UP ? service.startWithBackup(id) : service.start(id, { encryption }),
    ),
  )
  return {
    name,
    urls: urls.flat(),
    ports: [service.srtPort],
    pids: processTree(service.pid),
    collections: () => service.collections(),
    report: async () => {
      const { load, ...losses } = await readLosses(service, ids)
      const cache = await readCache(service, metricsToken)
      return { ...losses, ...cache, loopDelayMsMax: load.loop_delay_ms_max }
    },
    stop: async () => {
      store?.close()
      await service.stop()
    },
  }
}

async function readCache({ httpUrl }: Service, token: string) {
  const headers = { authorization: `Bearer ${token}` }
  const metrics = await (await fetch(`${httpUrl}/metrics`, { headers })).text()
  // One sample of each of `INGEST_WORKERS`.
  const bytesOf = (name: string) => {
    const sample = new RegExp(`^millrace_cache_bytes{.*class="${name}"} (.+)$`, 'gm')
    return [...metrics.matchAll(sample)].reduce((sum, [, bytes]) => sum + Number(bytes), 0)
  }
  return { cachedBytes: bytesOf('listed') + bytesOf('retained'), queuedBytes: bytesOf('queued') }
}

/** One process a stream, as these programs are run. */
async function startPeers(name: string, count: number): Promise<Receiver> {
  mkdirSync(SCRATCH, { recursive: true })
  const ports = await freePorts(count)
  const programs = ports.map((port, index) => startPeer(name, port, `${SCRATCH}/${index}`))
  const urls = ports.map((port) => `srt://127.0.0.1:${port}?streamid=bench`)
  return receiverOf(name, urls, programs)
}

/** One process for all, which cuts segments of 2 s into memory, as Millrace does. */
async function startSrs(count: number): Promise<Receiver> {
  mkdirSync(SCRATCH, { recursive: true })
  const [port = 0, rtmpPort = 0] = await freePorts(2)
  const config = `${SCRATCH}/srs.conf`
  writeFileSync(
    config,
    `listen ${rtmpPort}; max_connections 1000; daemon off; pid ${SCRATCH}/srs.pid;
     srs_log_tank console; srs_log_level error;
     srt_server { enabled on; listen ${port}; }
     vhost __defaultVhost__ {
       srt { enabled on; srt_to_rtmp on; }
       hls { enabled on; hls_path ${SCRATCH}; hls_fragment 2; hls_window 12; }
     }`,
  )
  const program = startProgram('srs', ['-c', config], { cwd: SCRATCH })
  const urls = Array.from({ length: count }, (_, index) => {
    const streamId = encodeURIComponent(`#!::r=live/bench-${index},m=publish`)
    return `srt://127.0.0.1:${port}?streamid=${streamId}`
  })
  return receiverOf('srs', urls, [program])
}

async function receiverOf(
  name: string,
  urls: readonly string[],
  programs: readonly ChildProcess[],
): Promise<Receiver> {
  // They do not say when they listen.
  await sleep(1000)
  return {
    name,
    urls,
    ports: [...new Set(urls.map((url) => Number(new URL(url).port)))],
    pids: programs.map(({ pid }) => pid!),
    collections: () => ({ major: NaN, pauseMs: NaN }),
    report: () =>
      Promise.resolve({
        ...{
          cachedBytes: NaN,
          queuedBytes: NaN,
          lost: NaN,
          dropped: NaN,
          gaps: NaN,
          loopDelayMsMax: NaN,
        },
      }),
    stop: async () => {
      await Promise.all(programs.map((program) => stopProgram(program, 'SIGKILL')))
      rmSync(SCRATCH, { recursive: true, force: true })
    },
  }
}

function startPeer(name: string, port: number, folder: string): ChildProcess {
  const url = `srt://127.0.0.1:${port}?mode=listener`
  if (name === 'srt-live-transmit') return startProgram(name, ['-quiet', url, 'file://con'])
  mkdirSync(folder)
  return startProgram('ffmpeg', [
    ...['-v', 'error', '-nostdin', '-i', url, '-c', 'copy', '-f', 'hls', '-hls_time', '2'],
    ...['-hls_list_size', '6', '-hls_flags', 'delete_segments', `${folder}/playlist.m3u8`],
  ])
}
