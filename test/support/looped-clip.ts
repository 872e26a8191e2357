/**
 * The demo clip without end: H.264 with a key frame each second, and AAC.
 *
 * @module
 */
import { readFileSync } from 'node:fs'
import { LoopTimeline } from '../../src/pace/loop-timeline.ts'

const CLIP = readFileSync(new URL('../../fixtures/demo.mpegts', import.meta.url))
const CLIP_SEC = 8
const PACKET_BYTES = 188
const PAYLOAD_BYTES = 7 * PACKET_BYTES

export interface TimedPayload {
  readonly bytes: Buffer
  readonly durationSec: number
}

export class LoopedClip {
  readonly #timeline = new LoopTimeline()
  #pass = Buffer.alloc(0)
  #at = 0

  /** Next payload; its timestamps and counters continue those of the payload before. */
  next(): TimedPayload {
    if (this.#at >= this.#pass.length) this.#rewind()
    const bytes = this.#pass.subarray(this.#at, this.#at + PAYLOAD_BYTES)
    for (let at = 0; at < bytes.length; at += PACKET_BYTES) this.#timeline.push(bytes, at)
    this.#at += bytes.length
    return { bytes, durationSec: (CLIP_SEC * bytes.length) / CLIP.length }
  }

  #rewind(): void {
    if (this.#pass.length > 0) this.#timeline.rewind()
    this.#pass = Buffer.from(CLIP)
    this.#at = 0
  }
}
