/**
 * What viewers, scrapes of metrics and an open dashboard cost the publishers.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../test/support/until.ts'
import { startSenders } from '../ingest/senders.ts'
import type { LiveViewersAnswers, LiveViewersTask } from '../support/live-viewers.ts'
import { readLosses, startService, type Service } from '../support/service.ts'
import { childrenOf, kernelDrops, processTree, usageOf } from '../support/usage.ts'
import { startWorker } from '../support/worker.ts'

/** From the first publisher until streams and viewers run evenly; loop delays are of the latest 10 s. */
const WARM_UP_MS = 20_000
const SAMPLE_MS = 10_000
const SCRAPE_MS = 1000

export interface OperationLoad {
  readonly publishers: number
  readonly bitsPerSecond: number
  readonly viewers: number
  readonly seconds: number
  /** `HTTP_WORKERS`. */
  readonly workers: number
  /** `INGEST_WORKERS`. */
  readonly ingestWorkers: number
}

export interface OperationSetup {
  readonly name: string
  readonly hasViewers: boolean
  /** Whether metrics are scraped each second, and a dashboard is open. */
  readonly isObserved: boolean
  /** Whether a worker is killed every 10 s. */
  readonly isKilled?: boolean
}

export const SETUPS: readonly OperationSetup[] = [
  { name: 'publishers', hasViewers: false, isObserved: false },
  { name: 'viewers', hasViewers: true, isObserved: false },
  { name: 'observed', hasViewers: true, isObserved: true },
  { name: 'killed', hasViewers: true, isObserved: false, isKilled: true },
]

export interface OperationResult {
  readonly name: string
  /** 1 is one core. */
  readonly cpuLoad: number
  readonly lost: number
  readonly dropped: number
  readonly kernelDrops: number
  /** Of the worst 10 s. */
  readonly loopDelayMsP99: number
  readonly loopDelayMsMax: number
  readonly viewers: number
  readonly bitsPerSecond: number
  /** Times to the first byte, ascending. */
  readonly playlistMs: readonly number[]
  readonly segmentMs: readonly number[]
  readonly missed: number
  readonly failures: number
  readonly reconnects: number
  readonly kills: number
  readonly scrapes: number
  readonly snapshots: number
}

export async function measureOperation(
  setup: OperationSetup,
  load: OperationLoad,
): Promise<OperationResult> {
  const { publishers, seconds, workers, ingestWorkers } = load
  const count = setup.hasViewers ? load.viewers : 0
  const [password, token] = [randomBytes(16).toString('hex'), randomBytes(32).toString('hex')]
  const closing: (() => unknown)[] = []
  const stopping = new AbortController()
  try {
    const service = await startService({
      env: { ADMIN_PASSWORD: password, METRICS_TOKEN: token, MAX_PUBLISHERS: '1000' },
      ...{ workers, ingestWorkers },
    })
    closing.push(() => service.stop())
    const ids = Array.from({ length: publishers }, (_, index) => `bench-${index}`)
    const urls = await Promise.all(ids.map((id) => service.start(id)))
    const senders = await startSenders(urls, {
      ...{ sender: 'libsrt', senders: 1, spreadMs: 2000, bitsPerSecond: load.bitsPerSecond },
      seconds: seconds + WARM_UP_MS / 1000 + 15,
    })
    closing.push(() => senders.stop())
    await sleep(WARM_UP_MS / 2)
    const areLive = async () =>
      (await readLosses(service, ids).catch(() => undefined)) !== undefined
    await until('streams that are live', areLive, { timeoutMs: 60_000, everyMs: 1000 })
    const viewers = await startWorker<LiveViewersAnswers>(
      new URL('../support/live-viewers.js', import.meta.url),
      {
        playlistUrls: ids.map((id) => `${service.httpUrl}/video/${id}/playlist.m3u8`),
        viewers: count,
        survive: setup.isKilled === true,
      } satisfies LiveViewersTask,
    )
    closing.push(() => viewers.stop())

    const measured = async (): Promise<OperationResult> => {
      if (count > 0) await viewers.ask('open')
      const observed = { scrapes: 0, snapshots: 0 }
      if (setup.isObserved) {
        void scrape(service, token, stopping.signal, () => observed.scrapes++)
        void watchDashboard(service, password, stopping.signal, () => observed.snapshots++)
      }
      await sleep(WARM_UP_MS / 2)
      await viewers.ask('report')
      const before = usageOf(processTree(service.pid))
      const dropsBefore = kernelDrops([service.srtPort])
      const loopDelays = []
      let kills = 0
      for (let pastMs = 0; pastMs < seconds * 1000; pastMs += SAMPLE_MS) {
        // Long before the next question, which may go to the same worker.
        if (setup.isKilled === true) {
          process.kill(workersOf(service.pid)[kills % workers]!, 'SIGKILL')
          kills++
        }
        await sleep(SAMPLE_MS)
        loopDelays.push((await service.status(ids[0]!)).service)
      }
      const after = usageOf(processTree(service.pid))
      const report = await viewers.ask('report')
      const { lost, dropped } = await readLosses(service, ids)
      return {
        name: setup.name,
        cpuLoad: (after.cpuSec - before.cpuSec) / seconds,
        lost,
        dropped,
        kernelDrops: kernelDrops([service.srtPort]) - dropsBefore,
        loopDelayMsP99: Math.max(...loopDelays.map((load) => load.loop_delay_ms_p99)),
        loopDelayMsMax: Math.max(...loopDelays.map((load) => load.loop_delay_ms_max)),
        viewers: count,
        bitsPerSecond: (report.bytes * 8) / seconds,
        playlistMs: report.playlistMs.toSorted((a, b) => a - b),
        segmentMs: report.segmentMs.toSorted((a, b) => a - b),
        missed: report.missed,
        failures: report.failures,
        reconnects: report.reconnects,
        kills,
        ...observed,
      }
    }
    return await Promise.race([measured(), senders.failure, viewers.failure])
  } finally {
    stopping.abort()
    for (const close of closing.toReversed()) await close()
  }
}

/** Workers of a service in the order of their start. */
function workersOf(pid: number): number[] {
  return childrenOf(pid).filter((child) =>
    readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('worker-process'),
  )
}

async function scrape(
  { httpUrl }: Service,
  token: string,
  signal: AbortSignal,
  onScrape: () => void,
): Promise<void> {
  const headers = { authorization: `Bearer ${token}` }
  while (!signal.aborted) {
    const reply = await fetch(`${httpUrl}/metrics`, { headers })
    await reply.text()
    if (reply.ok) onScrape()
    await sleep(SCRAPE_MS, undefined, { signal }).catch(() => undefined)
  }
}

/** Logs in and reads snapshots, as the page does. */
async function watchDashboard(
  { httpUrl }: Service,
  password: string,
  signal: AbortSignal,
  onSnapshot: () => void,
): Promise<void> {
  const login = await fetch(`${httpUrl}/admin/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: httpUrl },
    body: JSON.stringify({ password }),
  })
  const cookie = login.headers.get('set-cookie')?.split(';', 1)[0] ?? ''
  const events = await fetch(`${httpUrl}/admin/events`, { headers: { cookie }, signal })
  if (!events.ok) throw new Error(`/admin/events answered ${events.status}`)
  const text = new TextDecoder()
  try {
    for await (const piece of events.body! as AsyncIterable<Uint8Array>) {
      for (const _ of text.decode(piece, { stream: true }).matchAll(/^data:/gm)) onSnapshot()
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
