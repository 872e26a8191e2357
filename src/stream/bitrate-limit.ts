/**
 * How much a publisher may send: its payload with retransmissions, as a mean of 5 s, so that the burst after an outage
 * is no offense.
 *
 * Sans-IO: `observe` takes the figures of the connection now and then (4 times a second is plenty).
 *
 * @module
 */
import type { PublisherReport, Warning } from '../contract/report.ts'

const SAMPLE_US = 1_000_000
const WINDOW_US = 5_000_000

/** Shares of the limit at which the warning begins and ends. */
const WARNS_AT = 0.8
const EASES_AT = 0.75

interface Sample {
  readonly bytes: number
  readonly atUs: number
}

/** Of one connection. */
export class BitrateLimit {
  readonly #maxBps: number
  /** Oldest first, a second apart: those of the window. */
  readonly #samples: Sample[] = []
  #meanBps = 0
  #isHigh = false

  /** @param maxBps  bits a second; Infinity for no limit */
  constructor(maxBps: number) {
    this.#maxBps = maxBps
  }

  /** Those that hold, with the figure of now. */
  get warnings(): readonly Warning[] {
    if (!this.#isHigh) return []
    const message = `${this.#figures} Over it viewers lose the stream. Lower the bitrate of the encoder, or raise INGEST_MAX_MBPS.`
    return [{ code: 'BITRATE_HIGH', message }]
  }

  /** Why the publisher is to be disconnected. */
  get excess(): Warning | undefined {
    if (this.#meanBps <= this.#maxBps) return undefined
    const message = `${this.#figures} It is disconnected, and viewers wait. Lower the bitrate of the encoder, or raise INGEST_MAX_MBPS.`
    return { code: 'BITRATE_EXCEEDED', message }
  }

  /** @returns the warnings that begin to hold */
  observe({ bytesReceived: bytes }: PublisherReport, nowUs: number): readonly Warning[] {
    const samples = this.#samples
    if (nowUs - (samples.at(-1)?.atUs ?? -Infinity) < SAMPLE_US) return []
    samples.push({ bytes, atUs: nowUs })
    const oldest = samples[0]!
    if (nowUs - oldest.atUs < WINDOW_US) return []
    samples.shift()
    const wasHigh = this.#isHigh
    this.#meanBps = ((bytes - oldest.bytes) * 8e6) / (nowUs - oldest.atUs)
    this.#isHigh = this.#meanBps >= this.#maxBps * (wasHigh ? EASES_AT : WARNS_AT)
    return wasHigh ? [] : this.warnings
  }

  get #figures(): string {
    return `The publisher sends ${megabits(this.#meanBps)} Mbit/s (limit ${megabits(this.#maxBps)}).`
  }
}

function megabits(bitsPerSec: number): string {
  return String(Number((bitsPerSec / 1e6).toPrecision(3)))
}
