/**
 * Requests one URL again and again: with wrk, which is the fastest, with autocannon, or over HTTP/2.
 *
 * @module
 */
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { startProgram } from '../support/programs.ts'
import { startWorker } from '../support/worker.ts'

export type LoadTool = 'autocannon' | 'wrk' | 'node:http2'

export interface LoadTask {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly connections: number
  /** Integer: wrk takes no other. */
  readonly seconds: number
  /** Requests a second over all connections, for autocannon; undefined: as many as possible. */
  readonly rate?: number | undefined
  /** Status of a reply as expected. */
  readonly status: number
}

export interface LoadResult {
  readonly replies: number
  readonly repliesPerSec: number
  /** Heads included, except over HTTP/2. */
  readonly bytesPerSec: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Replies with another status, and broken connections. */
  readonly failures: number
}

/** Questions to `load-worker.ts`. */
export interface LoadWorkerAnswers {
  autocannon(): Promise<LoadResult>
  http2(): Promise<LoadResult>
}

export async function runLoad(tool: LoadTool, task: LoadTask): Promise<LoadResult> {
  if (tool === 'wrk') return runWrk(task)
  const program = new URL('load-worker.js', import.meta.url)
  const worker = await startWorker<LoadWorkerAnswers>(program, task)
  try {
    return await worker.ask(tool === 'autocannon' ? 'autocannon' : 'http2')
  } finally {
    await worker.stop()
  }
}

async function runWrk(task: LoadTask): Promise<LoadResult> {
  const { url, headers, connections, seconds, status } = task
  const lines = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const args = ['--latency', '-t1', `-c${connections}`, `-d${seconds}s`, ...lines, url]
  const child = startProgram('wrk', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  // Its CPU counts once it has ended.
  const [output] = await Promise.all([text(child.stdout!), once(child, 'exit')])
  return readWrk(output, status)
}

const MS = { us: 1e-3, ms: 1, s: 1e3 } as const
const BYTES = { B: 1, KB: 2 ** 10, MB: 2 ** 20, GB: 2 ** 30 } as const

/**
 * Reads the output of wrk 4 with `--latency`.
 *
 * @param status  expected status; wrk tells only those below 400 from the others
 * @throws {Error} if it has not run
 */
export function readWrk(output: string, status: number): LoadResult {
  const percentile = (percent: number) => {
    const found = new RegExp(`${percent}%\\s+([\\d.]+)(us|ms|s)\\b`).exec(output)
    return Number(found?.[1]) * MS[found?.[2] as keyof typeof MS]
  }
  const transfer = /Transfer\/sec:\s+([\d.]+)(B|KB|MB|GB)/.exec(output)
  const replies = Number(/(\d+) requests in/.exec(output)?.[1])
  if (Number.isNaN(replies)) throw new Error(`wrk has not run: ${output}`)
  const refused = Number(/Non-2xx or 3xx responses: (\d+)/.exec(output)?.[1] ?? 0)
  const broken = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(output)
  return {
    replies,
    repliesPerSec: Number(/Requests\/sec:\s+([\d.]+)/.exec(output)?.[1]),
    bytesPerSec: Number(transfer?.[1]) * BYTES[transfer?.[2] as keyof typeof BYTES],
    p50Ms: percentile(50),
    p99Ms: percentile(99),
    failures:
      (status < 400 ? refused : replies - refused) +
      (broken?.slice(1) ?? []).reduce((sum, count) => sum + Number(count), 0),
  }
}
