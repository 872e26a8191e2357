/**
 * Processes full of publishers, seen from the bench.
 *
 * @module
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { PublishReport } from '../../src/publisher/publisher.ts'
import type { PublishersTask } from './publishers.ts'

const PUBLISHERS = fileURLToPath(new URL('publishers.js', import.meta.url))

/** Beyond the time they are needed, for starts and ends. */
const SPARE_SEC = 60

export interface SendersOptions {
  readonly bitsPerSecond: number
  /** How long they are needed. */
  readonly seconds: number
  /** Processes that share the URLs. */
  readonly senders: number
}

export interface Senders {
  readonly pids: readonly number[]
  /** Rejects when one ends before it was told to; what it said stands on standard error. */
  readonly failure: Promise<never>
  /** Ends the publishing cleanly; a report for each URL. */
  stop(): Promise<PublishReport[]>
  kill(): void
}

/** Starts a publisher for each URL. */
export function startSenders(urls: readonly string[], options: SendersOptions): Senders {
  const children = Array.from({ length: options.senders }, (_, index) => {
    const child = fork(PUBLISHERS)
    child.send({
      urls: urls.filter((_url, place) => place % options.senders === index),
      bitsPerSecond: options.bitsPerSecond,
      atMostSec: options.seconds + SPARE_SEC,
    } satisfies PublishersTask)
    return child
  })
  const failure = Promise.race(children.map(endsEarly))
  failure.catch(() => undefined)
  return {
    pids: children.map(({ pid }) => pid!),
    failure,
    stop: async () => (await Promise.all(children.map(stopOne))).flat(),
    kill: () => {
      for (const child of children) child.kill('SIGKILL')
    },
  }
}

async function endsEarly(child: ChildProcess): Promise<never> {
  await once(child, 'exit')
  throw new Error('publishers ended early')
}

async function stopOne(child: ChildProcess): Promise<PublishReport[]> {
  const reply = once(child, 'message')
  child.send('stop')
  const [reports] = (await reply) as [PublishReport[]]
  return reports
}
