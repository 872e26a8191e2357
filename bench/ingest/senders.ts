/**
 * Processes full of publishers, seen from the bench.
 *
 * @module
 */
import { startWorkers, type Workers } from '../support/worker.ts'
import type { PublishersAnswers, PublishersTask } from './publishers.ts'

export interface SendersOptions {
  readonly bitsPerSecond: number
  /** Processes that share the URLs. */
  readonly senders: number
}

/** Starts a publisher for each URL. */
export function startSenders(
  urls: readonly string[],
  { bitsPerSecond, senders }: SendersOptions,
): Promise<Workers<PublishersAnswers>> {
  const tasks = Array.from({ length: senders }, (_, index): PublishersTask => ({
    urls: urls.filter((_url, place) => place % senders === index),
    bitsPerSecond,
  }))
  return startWorkers(new URL('publishers.js', import.meta.url), tasks)
}
