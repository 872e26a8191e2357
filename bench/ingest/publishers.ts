/**
 * A worker full of encoders.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { publish, type PublishReport } from '../../src/publisher/publisher.ts'
import { clipOf } from '../support/clip.ts'
import { answer, readTask } from '../support/worker.ts'

export interface PublishersTask {
  readonly urls: readonly string[]
  readonly bitsPerSecond: number
}

export interface PublishersAnswers {
  /** Ends the publishing cleanly; a report for each URL. */
  finish(): Promise<PublishReport[]>
}

/** Encoders of the world do not tick together: their starts are spread over this time. */
const SPREAD_MS = 1000

const { urls, bitsPerSecond } = (await readTask()) as PublishersTask
const stop = new AbortController()
const file = clipOf(bitsPerSecond)
// A refused encoder ends the bench: its figures would not be what they say.
const publishing = urls.map(async (url, index) => {
  await sleep((index * SPREAD_MS) / urls.length)
  return publish({ file, url, loop: true, signal: stop.signal })
})

answer<PublishersAnswers>({
  finish: () => {
    stop.abort()
    return Promise.all(publishing)
  },
})
