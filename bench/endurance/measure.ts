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
import { readDatagrams } from '../../src/publisher/paced-file.ts'
import type { LiveStream } from '../../src/stream/live-stream.ts'
import type { Publication } from '../../src/stream/publication.ts'
import { StreamRegistry } from '../../src/stream/registry.ts'
import { clipOf } from '../support/clip.ts'

const CACHE_BYTES = 512 * 1024 * 1024
const KEY_LIFETIME_MS = 7_200_000

/** As in the service. */
const TICK_US = 250_000

/** Interval at which players load each playlist and its last segment. */
const PLAYER_US = 2_000_000

/** Interval at which each encoder connects anew, a different moment for each. */
const RECONNECT_US = 30 * 60_000_000

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
}

/** @throws {Error} when memory has grown */
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
  }
}

function meanRss(samples: readonly EnduranceSample[]): number {
  return samples.reduce((sum, { rssBytes }) => sum + rssBytes, 0) / samples.length
}

interface Encoder {
  readonly stream: LiveStream
  publication: Publication
  reconnectUs: number
}

/** Streams with their encoders and players, on one clock: `push` sets the time. */
class Streams {
  readonly #cache = new SegmentCache({ maxBytes: CACHE_BYTES })
  readonly #registry: StreamRegistry
  readonly #encoders: Encoder[]
  readonly #startedMs = Date.now()
  #nowUs = 0
  #playedUs = 0
  #bytes = 0

  constructor({ streams }: EnduranceLoad) {
    let epochs = 0
    this.#registry = new StreamRegistry({
      clock: {
        nowUs: () => this.#nowUs,
        wallMs: () => this.#startedMs + this.#nowUs / 1000,
      },
      cache: this.#cache,
      createEpoch: () => `e${epochs++}`,
      maxStreams: streams,
      ...{ segmentSec: 2, maxSegmentSec: 10, playlistSegments: 6 },
      ...{ lingerSec: 60, reconnectGraceSec: 120 },
    })
    this.#encoders = Array.from({ length: streams }, (_, index) => {
      const stream = this.#registry.start(`bench-${index}`)
      const reconnectUs = (RECONNECT_US * (index + 1)) / streams
      return { stream, publication: this.#publish(stream), reconnectUs }
    })
  }

  push(payload: Buffer, dueUs: number): void {
    this.#nowUs = dueUs
    this.#bytes += payload.length
    for (const encoder of this.#encoders) {
      if (dueUs >= encoder.reconnectUs) {
        encoder.publication.end('shutdown')
        encoder.publication = this.#publish(encoder.stream)
        encoder.reconnectUs += RECONNECT_US
      }
      // A buffer each, as a socket hands them out.
      const datagram = Buffer.allocUnsafeSlow(payload.length)
      payload.copy(datagram)
      encoder.publication.push(datagram)
    }
  }

  tick(): void {
    this.#registry.tick()
    if (this.#nowUs < this.#playedUs) return
    this.#playedUs += PLAYER_US
    for (const { stream } of this.#encoders) play(stream)
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
      segments: this.#encoders.reduce(
        (sum, { stream }) => sum + stream.report().totals.segments,
        0,
      ),
    }
  }

  #publish(stream: LiveStream): Publication {
    stream.renewKey(this.#startedMs + this.#nowUs / 1000 + KEY_LIFETIME_MS)
    const nowUs = () => this.#nowUs
    return stream.publish({
      get lastPacketUs() {
        return nowUs()
      },
      report: () => ({ remote: '127.0.0.1:1', bitrateBps: 0, bytesReceived: this.#bytes }),
      close: () => undefined,
    })
  }
}

/** Loads the playlist and its last segment. */
function play({ files }: LiveStream): void {
  const playlist = files.get('playlist.m3u8')?.chunks.join('')
  const segment = playlist?.trimEnd().split('\n').at(-1)
  if (segment === undefined) return
  const loan = files.lend(segment)
  if (loan === undefined) throw new Error(`${segment} is listed, but not there`)
  loan.end?.()
}
