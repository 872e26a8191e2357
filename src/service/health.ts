/**
 * Health of the process: its load, whether it takes new encoders, and whether it is ready for new streams.
 *
 * @module
 */
import { systemClock } from '../timing/clock.ts'
import type { ServiceLoad } from '../api/records.ts'
import type { SegmentCache } from '../hls/store/segment-cache.ts'
import type { Listener } from '../srt/index.ts'
import type { LiveStream } from '../stream/live-stream.ts'
import { CacheReport } from './cache-report.ts'
import { LoadMonitor, MAX_DELAY_P99_MS } from './load-monitor.ts'
import { OverloadGuard } from './overload.ts'

/** Time for which a refused segment makes the process unready, in microseconds. */
const REFUSAL_US = 30_000_000

/** Reason why no new streams are to be sent to this process. */
export type UnreadyReason = 'starting' | 'draining' | 'overloaded' | 'loop-late' | 'memory-short'

interface HealthOptions {
  readonly listener: Pick<Listener, 'kernelDrops' | 'stats'>
  readonly cache: Pick<SegmentCache, 'stats'>
  /** @returns streams with an encoder, the one that connected last at the end */
  readonly listPublished: () => readonly LiveStream[]
  /** See `OverloadGuardOptions`. */
  readonly closeReaders: () => number
  /** Receives warnings for the operator. */
  readonly onWarning: (message: string) => void
}

/** Measures from its creation until `close`; `observe` about 4 times a second. */
export class Health {
  readonly #cache: Pick<SegmentCache, 'stats'>
  readonly #cacheReport: CacheReport
  readonly #onWarning: (message: string) => void
  readonly #load: LoadMonitor
  readonly #overload: OverloadGuard
  #refused: number
  #refusedAtUs = -Infinity

  constructor({ listener, cache, listPublished, closeReaders, onWarning }: HealthOptions) {
    const readKernelDrops = () => listener.kernelDrops()
    this.#cache = cache
    this.#cacheReport = new CacheReport(cache)
    this.#onWarning = onWarning
    this.#refused = cache.stats.refused
    this.#load = new LoadMonitor({ clock: systemClock, readKernelDrops, onWarning })
    const readStats = () => listener.stats()
    this.#overload = new OverloadGuard({
      readKernelDrops,
      readStats,
      listPublished,
      closeReaders,
      onWarning,
    })
  }

  get load(): ServiceLoad {
    return this.#load.load
  }

  /** Whether new encoders are to be refused. */
  get overloaded(): boolean {
    return this.#overload.overloaded
  }

  observe(nowUs: number): void {
    const { refused } = this.#cache.stats
    if (refused > this.#refused) this.#refusedAtUs = nowUs
    this.#refused = refused
    this.#cacheReport.observe(nowUs).forEach(this.#onWarning)
  }

  reasonsAt(nowUs: number): readonly UnreadyReason[] {
    const isLate = this.load.loopDelayMsP99 >= MAX_DELAY_P99_MS
    const isShort = nowUs - this.#refusedAtUs < REFUSAL_US
    return [
      ...(this.overloaded ? (['overloaded'] as const) : []),
      ...(isLate ? (['loop-late'] as const) : []),
      ...(isShort ? (['memory-short'] as const) : []),
    ]
  }

  close(): void {
    this.#load.close()
    this.#overload.close()
  }
}
