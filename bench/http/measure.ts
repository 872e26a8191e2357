/**
 * Delivery by Millrace, nginx, bare `node:http` and bare Fastify: the same bytes, in alternating rounds.
 *
 * @module
 */
import { gzipSync } from 'node:zlib'
import { writeCertificate } from '../../test/support/certificate.ts'
import { isInstalled } from '../support/programs.ts'
import { machineCpuSec, ownCpuSec, processTree, usageOf } from '../support/usage.ts'
import { recordReplies, startBare } from './bare.ts'
import type { Contender, TlsFiles } from './contender.ts'
import { exchange, fetchBytes } from './exchange.ts'
import { measureLive, type LiveResult } from './live.ts'
import { runLoad, type LoadResult, type LoadTool } from './load.ts'
import { startMillrace, type Millrace } from './millrace.ts'
import { startNginx } from './nginx.ts'
import { PROFILED_ENV, profileDuring, type ProfileResult } from './profile.ts'
import { FILE_SCENARIOS, LIVE_SCENARIOS, type FileScenario } from './scenarios.ts'

export interface HttpLoad {
  readonly connections: number
  /** Duration of each round of a server, an integer. */
  readonly seconds: number
  readonly rounds: number
  /** Names; all of them where undefined. */
  readonly only: readonly string[] | undefined
  /** Millrace is measured once for each number of workers; 0: in one process. */
  readonly workers: readonly number[]
  readonly isProfiled: boolean
}

export interface FileResult extends LoadResult {
  readonly server: string
  readonly scenario: string
  readonly tool: LoadTool
  /** Size of a body. */
  readonly sizeBytes: number
  /** CPU in cores, of all processes of the server. */
  readonly cpuLoad: number
  readonly cpuUsPerReply: number
  /** CPU in cores of all that is neither server nor load generator: what disturbed the round. */
  readonly othersCpuLoad: number
  readonly rssBytes: number
}

export interface HttpResult {
  readonly files: readonly FileResult[]
  readonly live: readonly LiveResult[]
  readonly profiles: readonly ProfileResult[]
}

/** Load before the first round of each server, in seconds: by then its code is optimized. */
const WARM_UP_SEC = 8

/** Min duration of a round with viewers: five segments. */
const LIVE_SEC = 10

export interface HttpProgress {
  /** Takes a line for each program that is not installed. */
  readonly note: (line: string) => void
  /** Takes the results of each scenario when it is over. */
  readonly onResult: (result: HttpResult) => void
}

export async function measureHttp(load: HttpLoad, progress: HttpProgress): Promise<HttpResult> {
  const { note, onResult } = progress
  const isChosen = ({ name }: { readonly name: string }) => load.only?.includes(name) ?? true
  for (const name of ['nginx', 'wrk'].filter((name) => !isInstalled(name))) {
    note(`${name} is not installed: skipped`)
  }
  const all: HttpResult[] = []
  const add = (result: HttpResult) => {
    all.push(result)
    onResult(result)
  }
  const measureAll =
    (scenarios: readonly FileScenario[]) =>
    async (contenders: readonly Contender[], millraces: readonly Millrace[]) => {
      for (const scenario of scenarios) {
        const files = await measureFile(scenario, contenders, load)
        add({ files, live: [], profiles: await profileFile(scenario, millraces, load) })
      }
    }
  const chosen = FILE_SCENARIOS.filter(isChosen)
  const plain = chosen.filter(({ protocol }) => protocol === 'http')
  const chosenLive = LIVE_SCENARIOS.filter(isChosen)
  if (plain.length + chosenLive.length > 0) {
    await withContenders(load, undefined, async (contenders, millraces) => {
      await measureAll(plain)(contenders, millraces)
      for (const scenario of chosenLive) {
        const live: LiveResult[] = []
        for (const millrace of millraces) {
          live.push(await measureLive(millrace, scenario, Math.max(LIVE_SEC, load.seconds)))
        }
        add({ files: [], live, profiles: [] })
      }
    })
  }
  const secure = chosen.filter(({ protocol }) => protocol !== 'http')
  if (secure.length > 0) {
    await withCertificate((tls) => withContenders(load, tls, measureAll(secure)))
  }
  return {
    files: all.flatMap(({ files }) => files),
    live: all.flatMap(({ live }) => live),
    profiles: all.flatMap(({ profiles }) => profiles),
  }
}

async function withCertificate(act: (tls: TlsFiles) => Promise<void>): Promise<void> {
  const closing: (() => void)[] = []
  const { cert, key } = writeCertificate({ teardown: (close) => closing.push(close) })
  try {
    await act({ cert, key })
  } finally {
    for (const close of closing) close()
  }
}

/** Starts all servers, which stop after `act`. */
async function withContenders(
  { workers, isProfiled }: HttpLoad,
  tls: TlsFiles | undefined,
  act: (contenders: readonly Contender[], millraces: readonly Millrace[]) => Promise<void>,
): Promise<void> {
  const running: Contender[] = []
  const started = <Server extends Contender>(server: Server) => {
    running.push(server)
    return server
  }
  try {
    const env = isProfiled ? PROFILED_ENV : {}
    const millraces = await Promise.all(
      workers.map(async (count) => started(await startMillrace({ workers: count, tls, env }))),
    )
    const first = millraces[0]!
    const { paths } = first
    const files = await readFiles(first)
    const recording = await recordReplies(first)
    const peers: Contender[] = []
    for (const count of isInstalled('nginx') ? nginxWorkers(workers) : []) {
      peers.push(started(await startNginx({ workers: count, paths, files, tls })))
    }
    peers.push(started(await startBare('node:http', paths, recording, tls)))
    if (tls === undefined) peers.push(started(await startBare('fastify', paths, recording)))
    await act([...millraces, ...peers], millraces)
  } finally {
    for (const server of running.toReversed()) await server.stop()
  }
}

/** @returns numbers of worker processes: as many as Millrace has, but at least one */
function nginxWorkers(workers: readonly number[]): number[] {
  return [...new Set(workers.map((count) => Math.max(count, 1)))]
}

async function readFiles({ origin, paths }: Contender): Promise<Record<string, Buffer>> {
  const { missing: _, ...present } = paths
  const files = Object.values(present).map(
    async (path) => [path, await fetchBytes(`${origin}${path}`)] as const,
  )
  const all = Object.fromEntries(await Promise.all(files))
  return { ...all, [`${paths.playlist}.gz`]: gzipSync(all[paths.playlist]!) }
}

/** Servers take turns within a round, so that other load affects them alike. The best round of each counts. */
async function measureFile(
  scenario: FileScenario,
  contenders: readonly Contender[],
  load: HttpLoad,
): Promise<FileResult[]> {
  for (const contender of contenders) {
    await runOne(contender, scenario, { ...load, seconds: WARM_UP_SEC })
  }
  const rounds: FileResult[] = []
  for (let round = 0; round < load.rounds; round++) {
    for (const contender of contenders) rounds.push(await runOne(contender, scenario, load))
  }
  const better = scenario.rate === undefined ? isFaster : isSooner
  return contenders.map(({ name }) =>
    rounds.filter(({ server }) => server === name).reduce((a, b) => (better(b, a) ? b : a)),
  )
}

function isFaster(a: FileResult, b: FileResult): boolean {
  return a.repliesPerSec > b.repliesPerSec
}

function isSooner(a: FileResult, b: FileResult): boolean {
  return a.p99Ms < b.p99Ms
}

async function profileFile(
  scenario: FileScenario,
  millraces: readonly Millrace[],
  load: HttpLoad,
): Promise<ProfileResult[]> {
  const profiles: ProfileResult[] = []
  for (const millrace of load.isProfiled ? millraces : []) {
    const whose = {
      scenario: scenario.name,
      server: millrace.name,
      pids: processTree(millrace.pid),
    }
    profiles.push(await profileDuring(whose, () => runOne(millrace, scenario, load)))
  }
  return profiles
}

async function runOne(
  { name, origin, paths, pid }: Contender,
  scenario: FileScenario,
  { connections, seconds }: HttpLoad,
): Promise<FileResult> {
  const url = `${origin}${paths[scenario.file]}`
  const { headers, status, sizeBytes } = await tryOut(url, scenario)
  const tool = toolOf(scenario)
  const pids = processTree(pid)
  const [before, othersBefore] = [usageOf(pids), machineCpuSec() - ownCpuSec()]
  const startMs = performance.now()
  const { rate } = scenario
  const result = await runLoad(tool, { url, headers, connections, seconds, rate, status })
  const [after, othersAfter] = [usageOf(pids), machineCpuSec() - ownCpuSec()]
  const elapsedSec = (performance.now() - startMs) / 1000
  const cpuSec = after.cpuSec - before.cpuSec
  return {
    ...{ server: name, scenario: scenario.name, tool, sizeBytes },
    ...result,
    cpuLoad: cpuSec / seconds,
    cpuUsPerReply: (cpuSec * 1e6) / result.replies,
    othersCpuLoad: Math.max(0, othersAfter - othersBefore - cpuSec) / elapsedSec,
    rssBytes: after.rssBytes,
  }
}

/** @throws {Error} if the server does not do what the scenario is about */
async function tryOut(url: string, { file, variant }: FileScenario) {
  const plain = await exchange(url)
  const index = plain.headers.findIndex((each) => each.toLowerCase() === 'etag')
  const headers: Record<string, string> = {}
  if (variant === 'gzip') headers['accept-encoding'] = 'gzip'
  if (variant === 'not-modified') headers['if-none-match'] = plain.headers[index + 1] ?? ''
  const { status, body } = variant === undefined ? plain : await exchange(url, headers)
  const expected = file === 'missing' ? 404 : variant === 'not-modified' ? 304 : 200
  const isSmaller = variant !== 'gzip' || body.length < plain.body.length
  if (status !== expected || !isSmaller) {
    throw new Error(`${url} answered ${status} with ${body.length} bytes`)
  }
  return { headers, status, sizeBytes: body.length }
}

function toolOf({ protocol, rate }: FileScenario): LoadTool {
  if (protocol === 'h2') return 'node:http2'
  return rate === undefined && isInstalled('wrk') ? 'wrk' : 'autocannon'
}
