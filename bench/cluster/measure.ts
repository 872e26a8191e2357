/**
 * What viewers and the encoder of a stream see when a part of the cluster fails.
 *
 *   ffmpeg in a loop ─► ingest nodes ─► edges ─► viewers, millrace check, comparer
 *                             Redis, Sentinels
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { checkStream } from '../../src/check/index.ts'
import { until } from '../../test/support/until.ts'
import type {
  LiveViewersAnswers,
  LiveViewersReport,
  LiveViewersTask,
} from '../support/live-viewers.ts'
import { startWorker } from '../support/worker.ts'
import { startCluster, type Cluster } from './cluster.ts'
import type { ComparerAnswers, ComparerReport, ComparerTask } from './comparer.ts'
import type { Fault } from './faults.ts'

/** From the first viewer to the fault, and from its end to the last figure. */
const MARGIN_MS = 10_000
/** Time for an encoder to be back. */
const RETURN_MS = 30_000
const POLL_MS = 50
const MAX_CHECK_SEC = 3600

export interface ClusterLoad {
  readonly viewers: number
  /** Duration of the series. */
  readonly seconds: number
}

export interface ClusterResult {
  readonly name: string
  readonly viewers: LiveViewersReport
  readonly comparer: ComparerReport
  /** From the fault until the stream has an encoder at another node, in seconds; NaN where it keeps its own. */
  readonly encoderAwaySec: number
  /** Whether the stream had another owner at the end. */
  readonly hasMoved: boolean
  /** Rules of `millrace check` that were broken, and how often. */
  readonly findings: readonly string[]
}

export async function measureFault(fault: Fault, load: ClusterLoad): Promise<ClusterResult> {
  const ends: (() => unknown)[] = []
  const over = new AbortController()
  try {
    const teardown = (end: () => unknown) => ends.push(end)
    const cluster = await startCluster(
      { teardown },
      { isLinked: fault.isLinked === true, env: fault.env ?? {} },
    )
    const urls = fault.isBehindNginx ? [cluster.nginxUrl] : cluster.edges.map(({ url }) => url)
    const bases = urls.map((url) => `${url}/video/studio/`)
    const viewers = await startWorker<LiveViewersAnswers>(
      new URL('../support/live-viewers.js', import.meta.url),
      {
        playlistUrls: bases.map((base) => `${base}playlist.m3u8`),
        viewers: load.viewers,
        survive: true,
      } satisfies LiveViewersTask,
    )
    ends.push(() => viewers.stop())
    const comparer = await startWorker<ComparerAnswers>(new URL('comparer.js', import.meta.url), {
      bases,
    } satisfies ComparerTask)
    ends.push(() => comparer.stop())
    await viewers.ask('open')
    await sleep(MARGIN_MS)
    const check = checkStream({
      url: `${bases[0]}master.m3u8`,
      seconds: MAX_CHECK_SEC,
      signal: over.signal,
    })
    await viewers.ask('report')

    const before = (await cluster.status()).node
    const atMs = performance.now()
    const isOver = fault.run(cluster, load.seconds)
    const encoderAwaySec = fault.movesEncoder ? await awaySec(cluster, before, atMs) : NaN
    await isOver
    await sleep(2 * MARGIN_MS)
    over.abort()
    const { findings } = await check
    return {
      name: fault.name,
      viewers: await viewers.ask('report'),
      comparer: await comparer.ask('report'),
      encoderAwaySec,
      hasMoved: (await cluster.status()).node !== before,
      findings: findings.map(({ rule, count }) => `${rule.id} × ${count}`),
    }
  } finally {
    over.abort()
    for (const end of ends.toReversed()) await end()
  }
}

async function awaySec(
  cluster: Cluster,
  before: string | undefined,
  atMs: number,
): Promise<number> {
  await until(
    'the encoder at another node',
    async () => {
      const { status, node } = await cluster.status()
      return status === 'STREAMING' && node !== before
    },
    { timeoutMs: RETURN_MS, everyMs: POLL_MS },
  )
  return (performance.now() - atMs) / 1000
}
