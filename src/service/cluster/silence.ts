/**
 * Encoders that are gone without a word.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../../clock.ts'
import type { LiveStream } from '../../stream/live-stream.ts'

/** Time without a packet after which an encoder no longer holds its stream, and what may have been in flight. */
const SILENT_US = 1_000_000
const IN_FLIGHT_US = 200_000
const POLL_MS = 50

/**
 * Waits until the encoder of a stream has been silent for 1 s.
 *
 * @returns true, also without an encoder; false once the encoder has sent something
 */
export async function staysSilent(stream: LiveStream | undefined): Promise<boolean> {
  const arrivedUs = systemClock.nowUs()
  for (;;) {
    const encoder = stream?.status === 'STREAMING' ? stream.encoder : undefined
    const lastPacketUs = encoder?.lastPacketUs ?? -Infinity
    if (systemClock.nowUs() - lastPacketUs >= SILENT_US) return true
    if (lastPacketUs - arrivedUs > IN_FLIGHT_US) return false
    await sleep(POLL_MS)
  }
}
