/**
 * Low-latency release: time from a complete part in the service to the last byte at each of many viewers.
 *
 *   publisher ─SRT─► service ◄─blocking playlist requests, parts─ viewers
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../test/support/free-port.ts'
import { writeCertificate } from '../../test/support/certificate.ts'
import { until } from '../../test/support/until.ts'
import { startProgram, stopProgram } from '../support/programs.ts'
import { machineCpuSec } from '../support/usage.ts'
import { startWorker } from '../support/worker.ts'
import { startSeeker } from './seeker.ts'
import { startStore, type StoreKind } from '../support/store.ts'
import { startPublisher } from './publisher.ts'
import type { ServiceAnswers, ServiceTask } from './service.ts'
import type { ViewersAnswers, ViewersTask } from './viewers.ts'

const PART_MS = 200
/** By then code is optimized and all viewers are at the live edge. */
const WARM_UP_MS = 8000
/** Time for the last replies. */
const DRAIN_MS = 2000

export interface ReleaseSetup {
  readonly name: string
  readonly viewers: number
  /** HTTP/2 over TLS; otherwise HTTP/1.1. */
  readonly isHttp2?: boolean
  /** Whether viewers are at an edge of the service. */
  readonly isAtEdge?: boolean
  /** Store to which the stream is archived. */
  readonly store?: StoreKind
  /** Number of viewers in addition that seek back every second: each to another segment of the archive. */
  readonly seekers?: number
}

export const SETUPS: readonly ReleaseSetup[] = [
  { name: '100', viewers: 100 },
  { name: '100-edge', viewers: 100, isAtEdge: true },
  { name: '500', viewers: 500 },
  { name: '500-edge', viewers: 500, isAtEdge: true },
  { name: '500-store-away', viewers: 500, store: 'away' },
  { name: '500-archive', viewers: 500, store: 'keeping' },
  { name: '500-archive-seekers', viewers: 500, store: 'keeping', seekers: 20 },
  { name: '2000', viewers: 2000 },
  { name: '200-h2', viewers: 200, isHttp2: true },
]

export interface ReleaseResult {
  readonly name: string
  readonly partTargetSec: number
  /** In ascending order: from a complete part to the last byte of the playlist that lists it. */
  readonly playlistMs: readonly number[]
  /** In ascending order: from a complete part to its last byte. */
  readonly partMs: readonly number[]
  /** Playlists and parts that a viewer did not have at the end. */
  readonly missing: number
  /** Replies without the file. */
  readonly failures: number
  readonly bitsPerSecond: number
  /** CPU of the service, and of the process with the viewers; 1 is one core. */
  readonly serviceCpu: number
  readonly viewersCpu: number
  /** CPU of the publisher and of everything else on the machine. */
  readonly othersCpu: number
  readonly viewersLoopP99Ms: number
  /** Of the service. */
  readonly maxLoopDelayMs: number
  /** At SRT. */
  readonly packets: number
  readonly packetsLost: number
  readonly packetsDropped: number
}

export async function measureRelease(
  {
    name,
    viewers: count,
    isHttp2 = false,
    isAtEdge = false,
    store: kind,
    seekers = 0,
  }: ReleaseSetup,
  { bitsPerSecond, seconds }: { readonly bitsPerSecond: number; readonly seconds: number },
): Promise<ReleaseResult> {
  const closing: (() => unknown)[] = []
  try {
    const tls = isHttp2 ? writeCertificate({ teardown: (close) => closing.push(close) }) : undefined
    const store = kind && (await startStore(kind))
    closing.push(() => store?.close())
    const service = await startWorker<ServiceAnswers>(new URL('service.js', import.meta.url), {
      partMs: PART_MS,
      ...(tls !== undefined && { tls: { cert: tls.cert, key: tls.key } }),
      ...(store !== undefined && { archive: store.archive }),
    } satisfies ServiceTask)
    closing.push(() => service.stop())
    const { srtUrl, playlistUrl } = await service.ask('urls')
    const publisher = startPublisher(srtUrl, bitsPerSecond)
    closing.push(() => publisher.stop())
    await until('a low-latency playlist', () => service.ask('isReady'), { everyMs: 200 })
    const viewers = await startWorker<ViewersAnswers>(new URL('viewers.js', import.meta.url), {
      ...{
        playlistUrl: isAtEdge ? await atEdge(playlistUrl, closing) : playlistUrl,
        viewers: count,
      },
    } satisfies ViewersTask)
    closing.push(() => viewers.stop())

    const measured = async () => {
      await viewers.ask('open')
      await sleep(WARM_UP_MS)
      const seeking = Array.from({ length: seekers }, () => startSeeker(playlistUrl))
      closing.push(...seeking.map((seeker) => () => seeker.stop()))
      await viewers.ask('report')
      const before = await viewers.ask('usage')
      const machineBefore = machineCpuSec()
      const [record, viewersLoopP99Ms] = await Promise.all([
        service.ask('record', seconds * 1000),
        viewers.ask('loopDelayP99Ms', seconds * 1000),
      ])
      const after = await viewers.ask('usage')
      const machineCpu = (machineCpuSec() - machineBefore) / seconds
      const viewersCpu = (after.cpuSec - before.cpuSec) / seconds
      await sleep(DRAIN_MS)
      const { completeMs, cpuShare, ...figures } = record
      const { bytes, failures, ...arrivals } = await viewers.ask('report')
      const playlistMs = delaysMs(completeMs, arrivals.playlistMs)
      const partMs = delaysMs(completeMs, arrivals.partMs)
      const expected = 2 * count * Object.keys(completeMs).length
      return {
        ...{ name, playlistMs, partMs, failures, viewersLoopP99Ms, ...figures },
        missing: expected - playlistMs.length - partMs.length,
        bitsPerSecond: (bytes * 8) / (seconds + DRAIN_MS / 1000),
        serviceCpu: cpuShare,
        viewersCpu,
        othersCpu: machineCpu - cpuShare - viewersCpu,
      }
    }
    return await Promise.race([measured(), service.failure, viewers.failure, publisher.failure])
  } finally {
    for (const close of closing.toReversed()) await close()
  }
}

/** Starts an edge. @returns the URL there */
async function atEdge(playlistUrl: string, closing: (() => unknown)[]): Promise<string> {
  const { origin, pathname } = new URL(playlistUrl)
  const port = String(await freePort())
  const edge = startProgram(process.execPath, ['dist/cli.js', 'edge'], {
    env: { ...process.env, EDGE_OF: origin, HTTP_HOST: '127.0.0.1', HTTP_PORT: port },
  })
  closing.push(() => stopProgram(edge))
  const url = `http://127.0.0.1:${port}${pathname}`
  const answers = async () => (await fetch(url).catch(() => undefined))?.ok
  await until('a playlist at the edge', answers, { everyMs: 200 })
  return url
}

/** @returns delays of all parts that were completed during the measurement, in ascending order */
function delaysMs(
  completeMs: Readonly<Record<number, number>>,
  arrivalsMs: Readonly<Record<number, readonly number[]>>,
): number[] {
  return Object.entries(completeMs)
    .flatMap(([part, atMs]) => (arrivalsMs[Number(part)] ?? []).map((ms) => ms - atMs))
    .toSorted((a, b) => a - b)
}
