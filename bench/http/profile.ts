/**
 * CPU profiles of servers that have `profiler.ts` preloaded, and the functions in which they spend the most time.
 *
 * @module
 */
import { existsSync, readFileSync, renameSync } from 'node:fs'
import type { Profiler } from 'node:inspector/promises'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { until } from '../../test/support/until.ts'
import { RESULTS } from '../support/figures.ts'

const FOLDER = `${RESULTS}/profiles`
/** Time in which a process begins to profile. */
const START_MS = 200

/** Environment of a server that can be profiled, with all Node processes that it starts. */
export const PROFILED_ENV: Readonly<Record<string, string>> = {
  NODE_OPTIONS: `--import=${new URL('profiler.js', import.meta.url).href}`,
  MILLRACE_BENCH_PROFILES: FOLDER,
}

export interface ProfileResult {
  readonly scenario: string
  readonly server: string
  /** One for each process. */
  readonly files: readonly string[]
  readonly top: readonly SelfTime[]
}

export interface SelfTime {
  /** Share of the time in which the processes were not idle. */
  readonly share: number
  readonly name: string
  /** File and line; empty for native code. */
  readonly place: string
}

/** Profiles processes while `run` lasts. */
export async function profileDuring(
  { scenario, server, pids }: { scenario: string; server: string; pids: readonly number[] },
  run: () => Promise<unknown>,
): Promise<ProfileResult> {
  for (const pid of pids) process.kill(pid, 'SIGUSR2')
  await sleep(START_MS)
  await run()
  for (const pid of pids) process.kill(pid, 'SIGUSR2')
  const files = await Promise.all(
    pids.map(async (pid, index) => {
      const left = `${FOLDER}/${pid}.cpuprofile`
      await until('a profile', () => existsSync(left))
      const file = `${FOLDER}/${scenario}-${server}${pids.length > 1 ? `-${index}` : ''}.cpuprofile`
      renameSync(left, file)
      return file
    }),
  )
  const profiles = files.map((file) => JSON.parse(readFileSync(file, 'utf8')) as Profiler.Profile)
  return { scenario, server, files, top: topSelfTimes(profiles, 5) }
}

/** @returns functions with the most time of their own, over all profiles, without idle time */
export function topSelfTimes(profiles: readonly Profiler.Profile[], count: number): SelfTime[] {
  const times = new Map<string, { us: number; name: string; place: string }>()
  let totalUs = 0
  for (const { nodes, samples = [], timeDeltas = [] } of profiles) {
    const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]))
    samples.forEach((id, index) => {
      const { functionName, url, lineNumber } = frames.get(id)!
      if (functionName === '(idle)' || functionName === '(root)') return
      // A delta is the time before its sample: the time in it lasts until the next one.
      const us = timeDeltas[index + 1] ?? 0
      const name = functionName === '' ? '(anonymous)' : functionName
      const place = url === '' ? '' : `${shortPath(url)}:${lineNumber + 1}`
      const time = times.get(`${name} ${place}`) ?? { us: 0, name, place }
      times.set(`${name} ${place}`, time)
      time.us += us
      totalUs += us
    })
  }
  return [...times.values()]
    .toSorted((a, b) => b.us - a.us)
    .slice(0, count)
    .map(({ us, name, place }) => ({ share: us / totalUs, name, place }))
}

function shortPath(url: string): string {
  if (!url.startsWith('file:')) return url
  const path = fileURLToPath(url)
  return /(?:node_modules|dist)\/.*/.exec(path)?.[0] ?? basename(path)
}
