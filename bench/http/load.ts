/**
 * Requests one URL at full speed: with autocannon in a separate process, and with wrk, which is faster.
 *
 * As a program, it takes one `LoadTask` as a message and replies with a `LoadResult`.
 *
 * @module
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import autocannon from 'autocannon'
import { startProgram } from '../support/programs.ts'

export type LoadTool = 'autocannon' | 'wrk'

export interface LoadTask {
  readonly url: string
  readonly connections: number
  readonly seconds: number
}

export interface LoadResult {
  readonly repliesPerSec: number
  readonly bytesPerSec: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Replies other than 2xx, and broken connections. */
  readonly failures: number
}

const THIS_FILE = fileURLToPath(import.meta.url)

export function runLoad(tool: LoadTool, task: LoadTask): Promise<LoadResult> {
  return tool === 'wrk' ? runWrk(task) : runAutocannonApart(task)
}

async function runAutocannonApart(task: LoadTask): Promise<LoadResult> {
  const child = fork(THIS_FILE)
  const reply = once(child, 'message')
  child.send(task)
  const [result] = (await reply) as [LoadResult]
  child.disconnect()
  await once(child, 'exit')
  return result
}

async function runAutocannon({ url, connections, seconds }: LoadTask): Promise<LoadResult> {
  const result = await autocannon({ url, connections, duration: seconds })
  return {
    repliesPerSec: result.requests.total / result.duration,
    bytesPerSec: result.throughput.total / result.duration,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
    failures: result.non2xx + result.errors + result.timeouts,
  }
}

async function runWrk({ url, connections, seconds }: LoadTask): Promise<LoadResult> {
  const args = ['--latency', '-t1', `-c${connections}`, `-d${seconds}s`, url]
  const child = startProgram('wrk', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  return readWrk(await text(child.stdout!))
}

const MS = { us: 1e-3, ms: 1, s: 1e3 } as const
const BYTES = { B: 1, KB: 2 ** 10, MB: 2 ** 20, GB: 2 ** 30 } as const

/** @param output  output of wrk 4 with `--latency` */
function readWrk(output: string): LoadResult {
  const percentile = (percent: number) => {
    const found = new RegExp(`${percent}%\\s+([\\d.]+)(us|ms|s)\\b`).exec(output)
    return Number(found?.[1]) * MS[found?.[2] as keyof typeof MS]
  }
  const transfer = /Transfer\/sec:\s+([\d.]+)(B|KB|MB|GB)/.exec(output)
  const failed = [
    ...(/Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(output) ?? []),
    ...(/Non-2xx or 3xx responses: (\d+)/.exec(output) ?? []),
  ]
  return {
    repliesPerSec: Number(/Requests\/sec:\s+([\d.]+)/.exec(output)?.[1]),
    bytesPerSec: Number(transfer?.[1]) * BYTES[transfer?.[2] as keyof typeof BYTES],
    p50Ms: percentile(50),
    p99Ms: percentile(99),
    failures: failed
      .filter((word) => /^\d+$/.test(word))
      .reduce((sum, word) => sum + Number(word), 0),
  }
}

if (process.argv[1] === THIS_FILE) {
  const [task] = (await once(process, 'message')) as [LoadTask]
  process.send?.(await runAutocannon(task))
}
