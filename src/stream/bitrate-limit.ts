/**
 * Limit of what a publisher may send: its payload with retransmissions, as a mean of 5 s, so that the burst after an
 * outage is no offense.
 *
 * Sans-IO: `observe` takes the figures of the connection now and then (4 times a second is plenty).
 *
 * @module
 */
import type { PublisherReport } from '../contract/report.ts'
import type { Fact } from '../diagnosis/warnings.ts'

const SAMPLE_US = 1_000_000
const WINDOW_US = 5_000_000

interface Sample {
  readonly bytes: number
  readonly atUs: number
}

/** One for each connection. */
export class BitrateLimit {
  readonly #maxBps: number
  /** Samples of the window, a second apart, oldest first. */
  readonly #samples: Sample[] = []
  #meanBps = 0

  /** @param maxBps  bits a second; Infinity for no limit */
  constructor(maxBps: number) {
    this.#maxBps = maxBps
  }

  /** Why the publisher is to be disconnected. */
  get excess(): Fact | undefined {
    const { meanBps, maxBps } = this.#figures
    return meanBps > maxBps ? { code: 'BITRATE_EXCEEDED', meanBps, maxBps } : undefined
  }

  observe({ bytesReceived: bytes }: PublisherReport, nowUs: number): Fact {
    const samples = this.#samples
    if (nowUs - (samples.at(-1)?.atUs ?? -Infinity) >= SAMPLE_US) {
      samples.push({ bytes, atUs: nowUs })
      const oldest = samples[0]!
      if (nowUs - oldest.atUs >= WINDOW_US) {
        samples.shift()
        this.#meanBps = ((bytes - oldest.bytes) * 8e6) / (nowUs - oldest.atUs)
      }
    }
    return { code: 'BITRATE_HIGH', ...this.#figures }
  }

  get #figures() {
    return { meanBps: this.#meanBps, maxBps: this.#maxBps }
  }
}
