/**
 * Payloads of a source as they came, from a key frame on: with them a reader of the transport stream begins.
 *
 * They begin with the payload that has the start of the key frame or, if there is one, with the payload that has the PAT
 * before it.
 *
 * @module
 */
import type { DemuxerOutput } from '../mpegts/demux/demuxer.ts'
import { isUnitStart, PACKET_BYTES, PAT_PID, readPid, SYNC_BYTE } from '../mpegts/packet.ts'
import type { Program } from '../mpegts/track.ts'

/** Bound of what is kept: 10 s at 13 Mbit/s, as of `HotGop`. Beyond it, the next key frame is the first. */
const MAX_BYTES = 16 * 1024 * 1024

/** What the demuxer made of a payload, and the program that it carries. */
export interface Demuxed {
  readonly outputs: readonly DemuxerOutput[]
  readonly program: Program | undefined
}

/** Inputs: `push` each payload; `clear` when payloads are not pushed any more. */
export class PayloadLog {
  #payloads: Buffer[] = []
  #sizeBytes = 0
  /** Index of the payload with the newest PAT. */
  #tableAt: number | undefined
  /** Index of the payload from which a reader could begin with the access unit that is arriving. */
  #unitAt: number | undefined
  #begun = false

  /** Whether the payloads begin with a key frame. */
  get begun(): boolean {
    return this.#begun
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  push(payload: Buffer, { outputs, program }: Demuxed): void {
    if (hasTable(payload)) this.#tableAt = this.#payloads.length
    this.#payloads.push(payload)
    this.#sizeBytes += payload.length
    const videoPid = program?.tracks.find(({ kind }) => kind === 'video')?.pid
    for (const output of program === undefined ? [] : outputs) this.#handle(output, videoPid)
    if (!this.#begun) this.#dropBefore(this.#unitAt ?? this.#tableAt ?? this.#payloads.length)
    if (this.#sizeBytes > MAX_BYTES) this.clear()
  }

  /** @returns the payloads, in order; nothing is kept afterwards */
  take(): readonly Buffer[] {
    const payloads = this.#payloads
    this.clear()
    return payloads
  }

  clear(): void {
    if (this.#payloads.length === 0) return
    this.#payloads = []
    this.#sizeBytes = 0
    this.#tableAt = this.#unitAt = undefined
    this.#begun = false
  }

  /** @param videoPid  undefined for a program without video, where playback can start with any unit */
  #handle(output: DemuxerOutput, videoPid: number | undefined): void {
    const current = this.#tableAt ?? this.#payloads.length - 1
    if (output.type === 'header' && output.pid === videoPid) this.#unitAt = current
    if (output.type !== 'unit') return
    const { track, randomAccess, damaged } = output.unit
    const isKeyFrame = track.pid === videoPid && randomAccess && !damaged
    // The start of a key frame that was arriving when the log began is missing.
    const startAt = videoPid === undefined ? current : isKeyFrame ? this.#unitAt : undefined
    if (startAt === undefined) return
    this.#dropBefore(startAt)
    this.#begun = true
  }

  #dropBefore(index: number): void {
    if (index === 0) return
    for (const { length } of this.#payloads.splice(0, index)) this.#sizeBytes -= length
    const moved = (at: number | undefined) =>
      at === undefined || at < index ? undefined : at - index
    this.#tableAt = moved(this.#tableAt)
    this.#unitAt = moved(this.#unitAt)
  }
}

/** Whether a PAT begins in a payload of whole transport packets. */
function hasTable(payload: Buffer): boolean {
  if (payload[0] !== SYNC_BYTE || payload.length % PACKET_BYTES !== 0) return false
  for (let at = 0; at < payload.length; at += PACKET_BYTES)
    if (readPid(payload, at) === PAT_PID && isUnitStart(payload, at)) return true
  return false
}
