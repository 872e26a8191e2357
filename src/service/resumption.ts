/**
 * Streams of the previous process that may resume without an API call: those with a key issued before this process
 * started, unless they have ended since.
 *
 * @module
 */
import {
  KEY_LIFETIME_SEC,
  STREAM_KEY_LIFETIME_SEC,
  type StreamKeyClaims,
} from '../auth/stream-key.ts'
import type { LiveStream } from '../stream/live-stream.ts'

/** Maximum number of ended streams to remember. When one more ends, no stream resumes any more. */
const MAX_ENDED = 100_000

/** Inputs: `end` for each stream that must not resume, `allows` for each verified key without a running stream. */
export class Resumption {
  readonly #startedSec: number
  readonly #ended = new Set<string>()
  #isOver: boolean

  /** @param options.startedMs  time at which this process started, in milliseconds since 1970 */
  constructor({ enabled, startedMs }: { readonly enabled: boolean; readonly startedMs: number }) {
    this.#isOver = !enabled
    this.#startedSec = Math.floor(startedMs / 1000)
  }

  /** Excludes a stream from resumption, because it ended or was stopped before it resumed. */
  end(streamId: string, wallMs: number): void {
    // All keys issued before the start have expired then.
    this.#isOver ||= wallMs >= (this.#startedSec + KEY_LIFETIME_SEC.maximum) * 1000
    this.#isOver ||= this.#ended.size >= MAX_ENDED
    if (this.#isOver) this.#ended.clear()
    else this.#ended.add(streamId)
  }

  allows({ streamId, issuedAtSec, expiresAtSec }: StreamKeyClaims): boolean {
    // The latest time at which a key without it can have been issued.
    const latestSec = issuedAtSec ?? expiresAtSec - STREAM_KEY_LIFETIME_SEC
    // A key issued in the same second as the start may be from this process.
    return !this.#isOver && latestSec < this.#startedSec && !this.#ended.has(streamId)
  }
}

/** Restores state of a resumed stream from the claims of a key. The order in which keys arrive does not matter. */
export function applyClaims(
  stream: LiveStream,
  { encryption, expiresAtSec }: StreamKeyClaims,
): void {
  // Once an encoder has connected, a key neither prolongs the stream nor restarts its reconnect grace.
  if (stream.status === 'READY') stream.renewKey(expiresAtSec * 1000)
  const knownSinceSec = stream.encryption?.sinceSec ?? -Infinity
  if (encryption !== undefined && encryption.sinceSec > knownSinceSec)
    stream.configure({ encryption })
}
