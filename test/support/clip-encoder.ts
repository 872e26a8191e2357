/**
 * An encoder in simulated time.
 *
 * @module
 */
import { readFileSync } from 'node:fs'
import { PACKET_BYTES, readPid } from '../../src/mpegts/packet.ts'
import { LoopedClip } from '../../src/pace/looped-clip.ts'
import type { Encoder, Publication } from '../../src/stream/publication.ts'
import { PUBLISHER_REPORT } from '../stream/publisher-report.ts'

/** H.264 with a key frame each second and AAC, 8 s. */
export const CLIP = readClip('demo')
export const VIDEO_PID = 256
export const AUDIO_PID = 257

/** An encoder that sends the clip, from a time of its own on. */
export class ClipEncoder implements Encoder {
  lastPacketUs: number
  lastDataUs: number
  isPaused = false
  /** Whether it sends KEEPALIVE while it is paused. */
  isAlive = false
  /** PID of a track of the clip that is left out, though the PMT lists it. */
  mutedPid: number | undefined
  /** Share of its packets that is lost for good. */
  lossShare = 0
  closed = false
  publication: Publication | undefined
  readonly #clip: LoopedClip
  readonly #startUs: number
  #packets = 0
  #lost = 0
  readonly source: 'main' | 'backup'

  constructor(source: 'main' | 'backup', nowUs: number, clip = CLIP) {
    this.source = source
    this.#clip = new LoopedClip(clip)
    this.#startUs = nowUs
    this.lastPacketUs = nowUs
    this.lastDataUs = nowUs
  }

  step(nowUs: number): void {
    const datagrams = this.#clip.takeUntil(nowUs - this.#startUs)
    if (this.isAlive) this.lastPacketUs = nowUs
    if (this.isPaused || this.closed || datagrams.length === 0) return
    this.lastPacketUs = nowUs
    this.lastDataUs = nowUs
    this.#packets += datagrams.length
    this.#lost += this.lossShare * datagrams.length
    for (const { payload } of datagrams) {
      if (this.mutedPid !== undefined) mute(payload, this.mutedPid)
      this.publication?.push(payload)
    }
  }

  report() {
    const [packetsReceived, lost] = [this.#packets, Math.floor(this.#lost)]
    const losses = { packetsReceived, packetsLost: lost, packetsDropped: lost }
    return { ...PUBLISHER_REPORT, ...losses, remote: `192.0.2.1:${this.source}` }
  }

  close(): void {
    this.closed = true
  }
}

/** @param name  of a fixture */
export function readClip(name: string): Buffer {
  return readFileSync(new URL(`../../fixtures/${name}.mpegts`, import.meta.url))
}

/** Makes null packets of the packets of a track. */
function mute(payload: Buffer, pid: number): void {
  for (let at = 0; at < payload.length; at += PACKET_BYTES)
    if (readPid(payload, at) === pid) payload.writeUInt16BE(0x1fff, at + 1)
}
