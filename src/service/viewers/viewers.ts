/**
 * Estimated viewers of all streams, and when to announce that their number has changed.
 *
 * @module
 */
import type { ViewerIdentity } from '../../playback/playback-source.ts'
import type { LiveStream } from '../../stream/live-stream.ts'
import { ViewerCount } from './viewer-count.ts'

/** Minimum time between two announcements of a stream. */
const ANNOUNCE_INTERVAL_US = 30 * 1_000_000

interface ViewersOptions {
  /** Draws 32 random bits. */
  readonly createSalt: () => number
  /** Called when the number has changed, at most every 30 s for a stream. */
  readonly onChange: (stream: LiveStream, figures: ViewerFigures) => void
}

export interface ViewerFigures {
  readonly viewers: number
  /** Largest number since the stream started. */
  readonly peakViewers: number
}

interface Audience {
  readonly count: ViewerCount
  peak: number
  announced: number
  announcedUs: number
}

/**
 * Commands: `push` each request, `tick` about 4 times a second. Query: `count`. Streams share nothing, so that forged
 * session ids of one do not affect the others; a forgotten stream takes its viewers with it.
 */
export class Viewers {
  readonly #options: ViewersOptions
  readonly #audiences = new Map<LiveStream, Audience>()

  constructor(options: ViewersOptions) {
    this.#options = options
  }

  push(stream: LiveStream, viewer: ViewerIdentity, nowUs: number): void {
    let audience = this.#audiences.get(stream)
    if (audience === undefined) {
      const count = new ViewerCount(this.#options.createSalt)
      audience = { count, peak: 0, announced: 0, announcedUs: -Infinity }
      this.#audiences.set(stream, audience)
    }
    audience.count.push(viewer, nowUs)
  }

  count(stream: LiveStream, nowUs: number): number {
    return this.#audiences.get(stream)?.count.count(nowUs) ?? 0
  }

  tick(nowUs: number): void {
    for (const [stream, audience] of this.#audiences) {
      if (stream.forgotten) this.#audiences.delete(stream)
      // The event that a stream has stopped is its last one.
      else if (stream.status !== 'STOPPED') this.#announce(stream, audience, nowUs)
    }
  }

  #announce(stream: LiveStream, audience: Audience, nowUs: number): void {
    const viewers = audience.count.count(nowUs)
    audience.peak = Math.max(audience.peak, viewers)
    if (viewers === audience.announced) return
    if (nowUs - audience.announcedUs < ANNOUNCE_INTERVAL_US) return
    audience.announced = viewers
    audience.announcedUs = nowUs
    this.#options.onChange(stream, { viewers, peakViewers: audience.peak })
  }
}
