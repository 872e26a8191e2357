/**
 * A worker full of encoders.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { publish, type PublishReport } from '../../src/cli/publisher/publisher.ts'
import { clipOf } from '../support/clip.ts'
import { answer, readTask } from '../support/worker.ts'

export interface PublishersTask {
  readonly urls: readonly string[]
  readonly bitsPerSecond: number
  /** Time between the start of the first and that of the last. */
  readonly spreadMs: number
}

export interface PublishersAnswers {
  /** Ends the publishing cleanly; a report for each URL. */
  finish(): Promise<PublishReport[]>
}

const { urls, bitsPerSecond, spreadMs } = (await readTask()) as PublishersTask
const stop = new AbortController()
const file = clipOf(bitsPerSecond)
// A refused encoder ends the bench: its figures would not be what they say.
const publishing = urls.map(async (url, index) => {
  await sleep((index * spreadMs) / urls.length)
  return publish({ file, url, loop: true, signal: stop.signal })
})

answer<PublishersAnswers>({
  finish: () => {
    stop.abort()
    return Promise.all(publishing)
  },
})
