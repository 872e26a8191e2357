/**
 * Many encoders in one process. `senders.ts` forks it and sends a `PublishersTask`; at the next message the encoders stop,
 * and their reports are the answer.

 *
 * @module
 */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { publish } from '../../src/publisher/publisher.ts'
import { clipOf } from '../support/clip.ts'

export interface PublishersTask {
  readonly urls: readonly string[]
  readonly bitsPerSecond: number
  /** Ends by itself after this time, whatever becomes of whoever started it. */
  readonly atMostSec: number
}

/** Encoders of the world do not tick together: their starts are spread over this time. */
const SPREAD_MS = 1000

const [task] = (await once(process, 'message')) as [PublishersTask]
const stop = new AbortController()
const file = clipOf(task.bitsPerSecond)
const publishing = task.urls.map(async (url, index) => {
  await sleep((index * SPREAD_MS) / task.urls.length)
  return publish({ file, url, loop: true, signal: stop.signal })
})
await Promise.race([
  once(process, 'message'),
  once(process, 'disconnect'),
  sleep(task.atMostSec * 1000),
  // A refused encoder ends the bench: its figures would not be what they say.
  Promise.all(publishing),
])
stop.abort()
process.send?.(await Promise.all(publishing), () => process.disconnect())
