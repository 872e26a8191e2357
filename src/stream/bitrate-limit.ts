/**
 * Limit on the bitrate of an encoder: the mean rate over 5 s of its payload, retransmissions included. A shorter mean
 * would count the burst after an outage as excess.
 *
 * Sans-IO: `observe` takes the counters of the connection, about 4 times a second.
 *
 * @module
 */
import type { PublisherReport } from '../api/records.ts'
import type { WarningFact } from '../diagnosis/warnings.ts'

const SAMPLE_US = 1_000_000
const WINDOW_US = 5_000_000

interface Sample {
  readonly bytes: number
  readonly atUs: number
}

/** Meter of one connection. */
export class BitrateLimit {
  readonly #maxBps: number
  /** Samples of the window, a second apart, oldest first. */
  readonly #samples: Sample[] = []
  #meanBps = 0

  /** @param maxBps  bits per second; Infinity for no limit */
  constructor(maxBps: number) {
    this.#maxBps = maxBps
  }

  /** Fact that the bitrate exceeds the limit: the encoder is to be disconnected. Undefined within the limit. */
  get excess(): WarningFact | undefined {
    const { meanBps, maxBps } = this.#figures
    return meanBps > maxBps ? { code: 'BITRATE_EXCEEDED', meanBps, maxBps } : undefined
  }

  /** @returns figures for the warning about a bitrate close to the limit */
  observe({ bytesReceived: bytes }: PublisherReport, nowUs: number): WarningFact {
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
