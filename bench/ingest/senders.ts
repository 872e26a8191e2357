/**
 * Processes full of publishers, seen from the bench.
 *
 * @module
 */
import { startWorkers } from '../support/worker.ts'
import { startLibsrtSenders } from './libsrt-senders.ts'
import type { PublishersAnswers, PublishersTask } from './publishers.ts'

/** Whose SRT the publishers speak. */
export const SENDERS = ['millrace', 'libsrt'] as const

export interface SendersOptions {
  readonly sender: (typeof SENDERS)[number]
  readonly bitsPerSecond: number
  /** At least so long they can publish. */
  readonly seconds: number
  /** Processes of ours that share the URLs. */
  readonly senders: number
  /** Time between the first frame of the first publisher and that of the last; 0: all cut at the same moment. */
  readonly spreadMs: number
  /** Whether connections may break, as under overload; otherwise a broken one ends the bench. */
  readonly mayBreak?: boolean
  /** Time after which the first publisher sends ten times as fast; default: never. For libsrt only. */
  readonly surgeAfterSec?: number
}

/** Sums over publishers, since their start. */
export interface SenderReport {
  readonly retransmissions: number
  /** Too late to be sent. */
  readonly dropped: number
}

export interface Senders {
  readonly pids: readonly number[]
  /** Rejects when one of the processes ends. */
  readonly failure: Promise<never>
  /** Ends the publishing cleanly. */
  finish(): Promise<readonly SenderReport[]>
  stop(): Promise<void>
}

/** Starts a publisher for each URL. */
export function startSenders(urls: readonly string[], options: SendersOptions): Promise<Senders> {
  return options.sender === 'libsrt'
    ? startLibsrtSenders(urls, options)
    : startOwnSenders(urls, options)
}

async function startOwnSenders(
  urls: readonly string[],
  { bitsPerSecond, senders, spreadMs }: SendersOptions,
): Promise<Senders> {
  const tasks = Array.from({ length: senders }, (_, index): PublishersTask => ({
    urls: urls.filter((_url, place) => place % senders === index),
    bitsPerSecond,
    spreadMs,
  }))
  const program = new URL('publishers.js', import.meta.url)
  const workers = await startWorkers<PublishersAnswers>(program, tasks)
  return {
    pids: workers.pids,
    failure: workers.failure,
    finish: async () => (await workers.ask('finish')).flat(),
    stop: () => workers.stop(),
  }
}
