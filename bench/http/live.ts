/**
 * Viewers of a live stream: each follows its playlist and fetches what is new, with low latency or without.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ViewersAnswers, ViewersReport, ViewersTask } from '../release/viewers.ts'
import type {
  LiveViewersAnswers,
  LiveViewersReport,
  LiveViewersTask,
} from '../support/live-viewers.ts'
import { quantile } from '../support/quantile.ts'
import { processTree, usageOf } from '../support/usage.ts'
import { startWorker } from '../support/worker.ts'
import type { Millrace } from './millrace.ts'
import type { LiveScenario } from './scenarios.ts'

/** From the last connection until all viewers run evenly. */
const SETTLE_MS = 4000

export interface LiveResult {
  readonly server: string
  readonly scenario: string
  readonly viewers: number
  readonly repliesPerSec: number
  readonly bitsPerSecond: number
  /** CPU in cores, that of the publisher's connection included. */
  readonly cpuLoad: number
  readonly cpuUsPerReply: number
  /** Low latency: after the first viewer, the others have the last byte of the same playlist, and of the same part. */
  readonly playlistSpreadP99Ms: number
  readonly partSpreadP99Ms: number
  /** Without low latency: first bytes. */
  readonly playlistP99Ms: number
  readonly segmentP99Ms: number
  readonly missed: number
  readonly failures: number
}

export async function measureLive(
  millrace: Millrace,
  scenario: LiveScenario,
  seconds: number,
): Promise<LiveResult> {
  const closing: (() => unknown)[] = []
  try {
    const stream = await millrace.publish(scenario.name)
    closing.push(() => stream.stop())
    const { playlistUrl, lowLatencyUrl } = stream
    const lowLatency = await startWorker<ViewersAnswers>(
      new URL('../release/viewers.js', import.meta.url),
      {
        ...{ playlistUrl: lowLatencyUrl, viewers: scenario.lowLatencyViewers },
        isPlaylistOnly: !scenario.fetchesParts,
      } satisfies ViewersTask,
    )
    closing.push(() => lowLatency.stop())
    const classic = await startWorker<LiveViewersAnswers>(
      new URL('../support/live-viewers.js', import.meta.url),
      {
        ...{ playlistUrls: [playlistUrl], viewers: scenario.classicViewers },
      } satisfies LiveViewersTask,
    )
    closing.push(() => classic.stop())

    const measured = async (): Promise<LiveResult> => {
      await Promise.all([lowLatency.ask('open'), classic.ask('open')])
      await sleep(SETTLE_MS)
      const pids = processTree(millrace.pid)
      await Promise.all([lowLatency.ask('report'), classic.ask('report')])
      const before = usageOf(pids)
      await sleep(seconds * 1000)
      const cpuSec = usageOf(pids).cpuSec - before.cpuSec
      const reports = await Promise.all([lowLatency.ask('report'), classic.ask('report')])
      const figures = summarize(...reports)
      return {
        server: millrace.name,
        scenario: scenario.name,
        viewers: scenario.lowLatencyViewers + scenario.classicViewers,
        repliesPerSec: figures.replies / seconds,
        bitsPerSecond: (figures.bytes * 8) / seconds,
        cpuLoad: cpuSec / seconds,
        cpuUsPerReply: (cpuSec * 1e6) / figures.replies,
        ...figures.delays,
        missed: figures.missed,
        failures: figures.failures,
      }
    }
    return await Promise.race([measured(), stream.failure, lowLatency.failure, classic.failure])
  } finally {
    for (const close of closing.toReversed()) await close()
  }
}

function summarize(lowLatency: ViewersReport, classic: LiveViewersReport) {
  const playlistSpreadsMs = spreadsMs(lowLatency.playlistMs)
  const partSpreadsMs = spreadsMs(lowLatency.partMs)
  const replies = [playlistSpreadsMs, partSpreadsMs, classic.playlistMs, classic.segmentMs]
  const [playlistSpreadP99Ms, partSpreadP99Ms, playlistP99Ms, segmentP99Ms] = replies.map((all) =>
    quantile(
      all.toSorted((a, b) => a - b),
      0.99,
    ),
  )
  return {
    replies: replies.reduce((sum, { length }) => sum + length, 0),
    bytes: lowLatency.bytes + classic.bytes,
    delays: {
      playlistSpreadP99Ms: playlistSpreadP99Ms!,
      partSpreadP99Ms: partSpreadP99Ms!,
      playlistP99Ms: playlistP99Ms!,
      segmentP99Ms: segmentP99Ms!,
    },
    missed: classic.missed,
    failures: lowLatency.failures + classic.failures,
  }
}

/** @returns delays of all arrivals of the same file after the first of them */
function spreadsMs(arrivalsMs: Readonly<Record<number, readonly number[]>>): number[] {
  return Object.values(arrivalsMs).flatMap((times) => {
    const firstMs = Math.min(...times)
    return times.map((ms) => ms - firstMs)
  })
}
