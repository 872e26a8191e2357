/**
 * What it costs to receive N live streams over real UDP, SRT to segment, in Millrace and in other receivers.
 *
 * @module
 */
import type { ChildProcess } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { clipOf } from '../support/clip.ts'
import { freePorts } from '../support/free-ports.ts'
import { isInstalled, startProgram, stopProgram } from '../support/programs.ts'
import { startService } from '../support/service.ts'
import { kernelDrops, usageOf, type Usage } from '../support/usage.ts'
import { startSenders } from './senders.ts'

const SCRATCH = `/dev/shm/millrace-bench-${process.pid}`

const CLIP_SEC = 8
const DATAGRAM_BYTES = 1316

/** From the start of the publishers until their streams run evenly. */
const WARM_UP_MS = 6000

export interface IngestLoad {
  readonly publishers: number
  readonly bitsPerSecond: number
  readonly seconds: number
  /** Processes that share the publishers. */
  readonly senders: number
}

export interface IngestResult {
  readonly receiver: string
  readonly packetsPerSec: number
  /** 1 is one core. */
  readonly cpuLoad: number
  readonly cpuUsPerPacket: number
  readonly rssBytes: number
  /** CPU of the sending processes, for comparison. */
  readonly senderCpuLoad: number
  readonly kernelDrops: number
  /** Found missing by the receiver, repaired or not; NaN where it does not tell. */
  readonly lost: number
  /** Given up by the receiver; NaN where it does not tell. */
  readonly dropped: number
  /** Over all publishers, since their start. */
  readonly retransmissions: number
  /** Given up by the publishers: too late. */
  readonly senderDropped: number
}

/** Something that receives: as many URLs as there are publishers, and what to ask when the time is over. */
interface Receiver {
  readonly name: string
  readonly urls: readonly string[]
  readonly ports: readonly number[]
  readonly pids: readonly number[]
  losses(): Promise<{ lost: number; dropped: number }>
  stop(): Promise<void>
}

/** The receivers that can be measured on this machine. */
export function availableReceivers(): string[] {
  return ['millrace', 'millrace, AES-256', ...['srt-live-transmit', 'ffmpeg'].filter(isInstalled)]
}

export async function measureIngest(name: string, load: IngestLoad): Promise<IngestResult> {
  const receiver = await startReceiver(name, load.publishers)
  const senders = await startSenders(receiver.urls, load)
  try {
    await Promise.race([sleep(WARM_UP_MS), senders.failure])
    const before = [usageOf(receiver.pids), usageOf(senders.pids)] as const
    const dropsBefore = kernelDrops(receiver.ports)
    await Promise.race([sleep(load.seconds * 1000), senders.failure])
    const after = [usageOf(receiver.pids), usageOf(senders.pids)] as const
    const drops = kernelDrops(receiver.ports) - dropsBefore
    const losses = await receiver.losses()
    const reports = (await senders.ask('finish')).flat()
    const clipBytes = clipOf(load.bitsPerSecond).length
    const packetsPerSec = (load.publishers * clipBytes) / CLIP_SEC / DATAGRAM_BYTES
    const cpuLoad = loadBetween(before[0], after[0], load.seconds)
    return {
      receiver: name,
      packetsPerSec,
      cpuLoad,
      cpuUsPerPacket: (cpuLoad / packetsPerSec) * 1e6,
      rssBytes: after[0].rssBytes,
      senderCpuLoad: loadBetween(before[1], after[1], load.seconds),
      kernelDrops: drops,
      ...losses,
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

function startReceiver(name: string, count: number): Promise<Receiver> {
  const [program, encryption] = name.split(', ') as [string, string?]
  return program === 'millrace'
    ? startMillrace(name, count, encryption !== undefined)
    : startPeers(name, count)
}

async function startMillrace(name: string, count: number, encryption: boolean): Promise<Receiver> {
  const service = await startService()
  const ids = Array.from({ length: count }, (_, index) => `bench-${index}`)
  const urls = await Promise.all(ids.map((id) => service.start(id, { encryption })))
  return {
    name,
    urls,
    ports: [service.srtPort],
    pids: [service.pid],
    losses: async () => {
      const all = await Promise.all(ids.map((id) => service.status(id)))
      const dead = all.filter(({ live }) => !live).length
      if (dead > 0) throw new Error(`${dead} of ${count} streams are not live`)
      const sum = (key: 'packets_lost' | 'packets_dropped') =>
        all.reduce((total, { publisher }) => total + publisher![key], 0)
      return { lost: sum('packets_lost'), dropped: sum('packets_dropped') }
    },
    stop: () => service.stop(),
  }
}

/** One process a stream, as these programs are run. */
async function startPeers(name: string, count: number): Promise<Receiver> {
  mkdirSync(SCRATCH, { recursive: true })
  const ports = await freePorts(count)
  const programs = ports.map((port, index) => startPeer(name, port, `${SCRATCH}/${index}`))
  // They do not say when they listen.
  await sleep(1000)
  return {
    name,
    urls: ports.map((port) => `srt://127.0.0.1:${port}?streamid=bench`),
    ports,
    pids: programs.map(({ pid }) => pid!),
    losses: () => Promise.resolve({ lost: NaN, dropped: NaN }),
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
