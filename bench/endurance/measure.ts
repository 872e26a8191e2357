/**
 * Hours of live streams in minutes: the process below SRT, from payloads to segments and playlists, by a clock that runs
 * fast. Its memory has to stay the same.
 *
 * @module
 */
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { readDatagrams } from '../../src/cli/publisher/paced-file.ts'
import { StreamRegistry } from '../../src/stream/stream-registry.ts'
import { clipOf } from '../support/clip.ts'
import { EnduringStream } from './enduring-stream.ts'

const CACHE_BYTES = 512 * 1024 * 1024

/** As in the service. */
const TICK_US = 250_000

/** Interval at which players load each playlist and its last segment. */
const PLAYER_US = 2_000_000

/** Samples in the whole time. A quarter of them makes a mean. */
const SAMPLES = 48

/** Max growth of the mean RSS from the third quarter to the fourth, as a share. The first half fills all memory. */
const MAX_GROWTH = 0.03

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

export interface EnduranceLoad {
  readonly streams: number
  readonly bitsPerSecond: number
  /** Media time. */
  readonly hours: number
  /** Media time per real time, at most. */
  readonly speed: number
  /** Media time between two failures of a main encoder. Undefined: there are no backups, and encoders reconnect. */
  readonly failoverSec: number | undefined
}

export interface EnduranceSample {
  readonly hours: number
  readonly rssBytes: number
  readonly heapBytes: number
  /** Buffers outside the heap, those of segments included. */
  readonly externalBytes: number
  readonly cachedBytes: number
  /** Slabs that no segment uses. */
  readonly freeBytes: number
  readonly segments: number
}

export interface EnduranceResult {
  /** Media time per real time. */
  readonly speed: number
  /** CPU of all threads; 1 is one core. */
  readonly cpuLoad: number
  /** Growth of the mean RSS from the third quarter of the time to the fourth, as a share. */
  readonly growth: number
  /** Failovers to the backup, and back. */
  readonly failovers: number
}

/** @throws {Error} when memory has grown, or a stream did what it must not */
export async function measureEndurance(
  load: EnduranceLoad,
  onSample: (sample: EnduranceSample) => void,
): Promise<EnduranceResult> {
  const endUs = load.hours * 3600e6
  const samples: EnduranceSample[] = []
  const streams = new Streams(load)
  const startedMs = performance.now()
  let tickUs = 0
  for await (const datagrams of readDatagrams(clipOf(load.bitsPerSecond), { loop: true })) {
    for (const { payload, dueUs } of datagrams) {
      streams.push(payload, dueUs)
      if (dueUs < tickUs) continue
      tickUs += TICK_US
      streams.tick()
      if (dueUs >= ((samples.length + 1) * endUs) / SAMPLES) {
        samples.push(streams.sample())
        onSample(samples.at(-1)!)
      }
      const earlyMs = dueUs / 1000 / load.speed - (performance.now() - startedMs)
      await (earlyMs >= 1 ? sleep(earlyMs) : turn())
    }
    if (samples.length === SAMPLES) break
  }
  const elapsedSec = (performance.now() - startedMs) / 1000
  const [third, fourth] = [
    samples.slice(SAMPLES / 2, (SAMPLES * 3) / 4),
    samples.slice(-SAMPLES / 4),
  ]
  const growth = meanRss(fourth) / meanRss(third) - 1
  if (growth > MAX_GROWTH) {
    throw new Error(`RSS grew by ${(growth * 100).toFixed(1)} % in the last half`)
  }
  const { user, system } = process.cpuUsage()
  return {
    speed: endUs / 1e6 / elapsedSec,
    cpuLoad: (user + system) / 1e6 / elapsedSec,
    growth,
    failovers: streams.failovers,
  }
}

function meanRss(samples: readonly EnduranceSample[]): number {
  return samples.reduce((sum, { rssBytes }) => sum + rssBytes, 0) / samples.length
}

/** Streams with their encoders and players, on one clock: `push` sets the time. */
class Streams {
  readonly #cache = new SegmentCache({ maxBytes: CACHE_BYTES })
  readonly #registry: StreamRegistry
  readonly #streams: readonly EnduringStream[]
  readonly #startedMs = Date.now()
  #nowUs = 0
  #playedUs = 0

  constructor({ streams, failoverSec }: EnduranceLoad) {
    let epochs = 0
    const clock = {
      nowUs: () => this.#nowUs,
      wallMs: () => this.#startedMs + this.#nowUs / 1000,
    }
    this.#registry = new StreamRegistry({
      clock,
      cache: this.#cache,
      createEpoch: () => `e${epochs++}`,
      maxStreams: streams,
      ...{ segmentSec: 2, maxSegmentSec: 10, playlistSegments: 6 },
      ...{ lingerSec: 60, reconnectGraceSec: 120 },
    })
    this.#streams = Array.from({ length: streams }, (_, index) => {
      const phase = (index + 1) / streams
      return new EnduringStream(this.#registry.start(`bench-${index}`), {
        clock,
        phase,
        failoverSec,
      })
    })
  }

  get failovers(): number {
    return this.#streams.reduce((sum, { failovers }) => sum + failovers, 0)
  }

  push(payload: Buffer, dueUs: number): void {
    this.#nowUs = dueUs
    for (const stream of this.#streams) stream.push(payload)
  }

  tick(): void {
    this.#registry.tick()
    if (this.#nowUs < this.#playedUs) return
    this.#playedUs += PLAYER_US
    for (const stream of this.#streams) stream.play()
  }

  sample(): EnduranceSample {
    collectGarbage()
    const { rss, heapUsed, arrayBuffers } = process.memoryUsage()
    return {
      hours: this.#nowUs / 3600e6,
      rssBytes: rss,
      heapBytes: heapUsed,
      externalBytes: arrayBuffers,
      cachedBytes: this.#cache.stats.bytes,
      freeBytes: this.#cache.slabs.freeBytes,
      segments: this.#streams.reduce((sum, { segments }) => sum + segments, 0),
    }
  }
}
