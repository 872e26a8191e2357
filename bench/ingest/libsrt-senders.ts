/**
 * Publishers over libsrt, all in one process written in C (libsrt-publishers.c): a sender that is not ours, and that is not
 * the bottleneck.
 *
 * @module
 */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { readDatagrams } from '../../src/cli/publisher/paced-file.ts'
import { clipOf } from '../support/clip.ts'
import { isInstalled, startProgram, stopProgram } from '../support/programs.ts'
import type { SenderReport, Senders, SendersOptions } from './senders.ts'

/** Seen from where `npm run` starts a script. */
const SOURCE = 'bench/ingest/libsrt-publishers.c'
const HEADER = '/usr/include/srt/srt.h'

/** In memory: the disk is no contender. */
const SCRATCH = `/dev/shm/millrace-bench-libsrt-${process.pid}`

/** As in the C program. */
const SURGE_FACTOR = 10

const HEADER_BYTES = 8
const RECORD_BYTES = HEADER_BYTES + 1316

export function canUseLibsrt(): boolean {
  return isInstalled('gcc') && existsSync(HEADER)
}

/** Starts a publisher for each URL; resolves once all are connected. */
export async function startLibsrtSenders(
  urls: readonly string[],
  { bitsPerSecond, seconds, spreadMs, mayBreak = false, surgeAfterSec = 0 }: SendersOptions,
): Promise<Senders> {
  mkdirSync(SCRATCH, { recursive: true })
  const [program, recording, calls] = ['publishers', 'recording', 'calls'].map((name) =>
    join(SCRATCH, name),
  ) as [string, string, string]
  execFileSync('gcc', ['-O2', '-Wall', '-Werror', '-o', program, SOURCE, '-lsrt'])
  const surgeSec = surgeAfterSec > 0 ? (seconds - surgeAfterSec) * (SURGE_FACTOR - 1) : 0
  await record(recording, bitsPerSecond, seconds + spreadMs / 1000 + surgeSec)
  const lines = urls.map((url, index) => {
    const startUs = Math.round((index * spreadMs * 1000) / urls.length)
    const { port, searchParams } = new URL(url)
    const surgeUs = index === 0 ? surgeAfterSec * 1e6 : 0
    return `${port} ${startUs} ${surgeUs} ${searchParams.get('streamid')}\n`
  })
  writeFileSync(calls, lines.join(''))

  const child = startProgram(program, [recording, calls], { stdio: ['pipe', 'pipe', 'inherit'] })
  const failure = once(child, 'exit').then(() => {
    throw new Error('libsrt-publishers ended early')
  })
  failure.catch(() => undefined)
  const output = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  await Promise.race([output.next(), failure])
  return {
    pids: [child.pid!],
    failure,
    finish: async () => {
      child.stdin!.end()
      const { value } = await output.next()
      const { broken, ...report } = JSON.parse(value as string) as SenderReport & { broken: number }
      if (broken > 0 && !mayBreak) throw new Error(`${broken} of ${urls.length} connections broke`)
      return [report]
    },
    stop: async () => {
      await stopProgram(child, 'SIGKILL')
      rmSync(SCRATCH, { recursive: true, force: true })
    },
  }
}

/** Writes what the C program reads: due time and length before each payload. */
async function record(file: string, bitsPerSecond: number, seconds: number): Promise<void> {
  const descriptor = openSync(file, 'w')
  for await (const datagrams of readDatagrams(clipOf(bitsPerSecond), { loop: true })) {
    const records = datagrams.map(({ payload, dueUs }) => {
      const bytes = Buffer.alloc(RECORD_BYTES)
      bytes.writeUInt32LE(Math.round(dueUs), 0)
      bytes.writeUInt32LE(payload.length, 4)
      bytes.set(payload, HEADER_BYTES)
      return bytes
    })
    writeSync(descriptor, Buffer.concat(records))
    if ((datagrams.at(-1)?.dueUs ?? 0) > seconds * 1e6) break
  }
  closeSync(descriptor)
}
