/**
 * A flood of handshakes on the port of publishers that stream.
 *
 *   our callers, srt-live-transmit ─► listener ◄─ inductions and wrong cookies, from one address
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ListenerStats } from '../../src/srt/index.ts'
import type { ReceivedStream, ReceiverAnswers } from '../srt/receive.ts'
import { isInstalled } from '../support/programs.ts'
import { kernelDrops, usageOf } from '../support/usage.ts'
import { startWorker } from '../support/worker.ts'
import type { AttackAnswers, AttackReport, AttackTask } from './attack.ts'
import { startLibsrt, startOurs, type Publisher } from './publishers.ts'

const INDUCTIONS_PER_SEC = 20_000
const CONCLUSIONS_PER_SEC = 5000

/** Streams run evenly by then, and the code is optimized. */
const WARM_UP_MS = 10_000

const RSS_SAMPLE_MS = 250

export interface FloodLoad {
  /** Our callers; where it is installed, srt-live-transmit comes on top. */
  readonly publishers: number
  /** Each. */
  readonly bitsPerSecond: number
  /** Of the flood. */
  readonly seconds: number
}

export interface FloodResult {
  readonly attack: AttackReport
  readonly publishers: readonly PublisherResult[]
  readonly listener: ListenerStats
  /** At the listener's socket: datagrams of the attack and of the streams alike. */
  readonly kernelDrops: number
  /** Of the listener's process. */
  readonly rssBytes: RssBytes
  /** While the flood lasts. */
  readonly loopDelayP99Ms: number
}

export interface PublisherResult extends ReceivedStream {
  readonly name: string
  /** NaN where it does not tell. */
  readonly sent: number
}

interface RssBytes {
  readonly before: number
  readonly highest: number
  readonly atEnd: number
}

export async function measureFlood(load: FloodLoad): Promise<FloodResult> {
  const listener = await startWorker<ReceiverAnswers>(new URL('../srt/receive.js', import.meta.url))
  const port = await listener.ask('port')
  const attacker = await startWorker<AttackAnswers>(new URL('attack.js', import.meta.url), {
    port,
    inductionsPerSec: INDUCTIONS_PER_SEC,
    conclusionsPerSec: CONCLUSIONS_PER_SEC,
  } satisfies AttackTask)
  const publishers = await startPublishers(port, load)
  try {
    await sleep(WARM_UP_MS)
    const durationMs = load.seconds * 1000
    const [attack, loopDelayP99Ms, rssBytes] = await Promise.all([
      attacker.ask('flood', durationMs),
      listener.ask('loopDelayP99Ms', durationMs),
      watchRss(listener.pid, durationMs),
    ])
    const sent = await Promise.all(publishers.map((publisher) => publisher.finish()))
    const streams = await listener.ask('streams')
    return {
      attack,
      publishers: publishers.map(({ name, streamId }, index) => ({
        name,
        sent: sent[index]!,
        ...streams.find((stream) => stream.streamId === streamId)!,
      })),
      listener: await listener.ask('listener'),
      kernelDrops: kernelDrops([port]),
      rssBytes,
      loopDelayP99Ms,
    }
  } finally {
    await Promise.all([attacker, listener, ...publishers].map((each) => each.stop()))
  }
}

function startPublishers(port: number, load: FloodLoad): Promise<Publisher[]> {
  const { publishers, bitsPerSecond } = load
  const ours = Array.from({ length: publishers }, (_, index) =>
    startOurs(port, bitsPerSecond, `publisher-${index}`),
  )
  const theirs = isInstalled('srt-live-transmit') ? [startLibsrt(port, bitsPerSecond)] : []
  return Promise.all([...ours, ...theirs])
}

async function watchRss(pid: number, durationMs: number): Promise<RssBytes> {
  const before = usageOf([pid]).rssBytes
  let [highest, atEnd] = [before, before]
  for (const endMs = performance.now() + durationMs; performance.now() < endMs;) {
    await sleep(RSS_SAMPLE_MS)
    atEnd = usageOf([pid]).rssBytes
    highest = Math.max(highest, atEnd)
  }
  return { before, highest, atEnd }
}
