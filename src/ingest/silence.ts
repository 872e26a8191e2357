/**
 * Silence of an encoder: one that has sent nothing for 1 s no longer holds its stream, and another may take it over.
 *
 * @module
 */
import type { Clock } from '../timing/clock.ts'
import type { EncoderSource } from '../api/records.ts'
import type { LiveStream } from '../stream/live-stream.ts'

/** Time without a packet after which another encoder with a valid key replaces the current one. */
const TAKEOVER_AFTER_US = 1_000_000

/** Interval at which a waiting publisher checks whether the current encoder still sends. */
const TAKEOVER_POLL_MS = 50

/** A packet that arrives within this time after a request may have been in flight when the current encoder died. */
const IN_FLIGHT_US = 200_000

/**
 * Whether one of these encoders feeds the stream: it sent a packet in the last second, and the stream is not INTERRUPTED.
 */
export function isFed(
  stream: LiveStream,
  sources: readonly EncoderSource[],
  nowUs: number,
): boolean {
  if (stream.status !== 'STREAMING') return false
  return nowUs - lastPacketUs(stream, sources) < TAKEOVER_AFTER_US
}

function lastPacketUs(stream: LiveStream, sources: readonly EncoderSource[]): number {
  return Math.max(...sources.map((it) => stream.encoderOf(it)?.lastPacketUs ?? -Infinity))
}

interface SilenceOptions {
  /** Encoders of the stream to wait for. */
  readonly sources: readonly EncoderSource[]
  readonly clock: Pick<Clock, 'nowUs'>
  /** Waits; may reject, which ends the wait. */
  readonly sleep: (ms: number) => Promise<unknown>
  readonly signal?: AbortSignal
}

/**
 * Waits until none of these encoders feeds a stream.
 *
 * @returns false once one of them has sent a packet more than 200 ms after the call, the signal has aborted, or `sleep` rejects
 */
export async function waitForSilence(
  stream: LiveStream,
  { sources, clock, sleep, signal }: SilenceOptions,
): Promise<boolean> {
  const arrivedUs = clock.nowUs()
  while (isFed(stream, sources, clock.nowUs())) {
    const packetUs = lastPacketUs(stream, sources)
    if (packetUs - arrivedUs > IN_FLIGHT_US || signal?.aborted === true) return false
    try {
      await sleep(TAKEOVER_POLL_MS)
    } catch {
      return false
    }
  }
  return true
}
