/**
 * Payloads of a source as they came, from a key frame on: with them a reader of the transport stream begins.
 *
 * They begin with the payload that has the start of the key frame's PES packet or, if there is one, with the payload that
 * has the PAT before it.
 *
 * @module
 */
import type { DemuxerOutput } from '../mpegts/demux/demuxer.ts'
import type { PesUnit } from '../mpegts/pes-unit.ts'
import { isUnitStart, PACKET_BYTES, PAT_PID, readPid, SYNC_BYTE } from '../mpegts/packet.ts'
import type { Program } from '../mpegts/track.ts'

/** Bound of what is kept: 10 s at 13 Mbit/s, as of `HotGop`. Beyond it, the next key frame is the first. */
const MAX_BYTES = 16 * 1024 * 1024

/** Payloads of a transport packet each come to `MAX_BYTES`; smaller ones would take more memory than their bytes. */
const MAX_PAYLOADS = Math.floor(MAX_BYTES / PACKET_BYTES)

/** What the demuxer made of a payload, and the program that it carries. */
export interface Demuxed {
  /** Number of transport packets that the demuxer had read before. */
  readonly packetsBefore: number
  readonly outputs: readonly DemuxerOutput[]
  readonly program: Program | undefined
}

interface Entry {
  readonly payload: Buffer
  readonly packetsBefore: number
  /** `packetsBefore` of the payload with the newest PAT or, without one, of this. */
  readonly startsAt: number
}

/** Inputs: `push` each payload; `clear` when payloads are not pushed any more. */
export class PayloadLog {
  #entries: Entry[] = []
  #sizeBytes = 0
  /** `packetsBefore` of the payload with the newest PAT. */
  #tableAt: number | undefined
  #begun = false

  /** Whether the payloads begin with a key frame. */
  get begun(): boolean {
    return this.#begun
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  push(payload: Buffer, { packetsBefore, outputs, program }: Demuxed): void {
    if (hasTable(payload)) this.#tableAt = packetsBefore
    this.#entries.push({ payload, packetsBefore, startsAt: this.#tableAt ?? packetsBefore })
    this.#sizeBytes += payload.length
    const videoPid = program?.tracks.find(({ kind }) => kind === 'video')?.pid
    for (const output of program === undefined ? [] : outputs) {
      if (output.type === 'unit') this.#handle(output.unit, videoPid)
    }
    // No key frame can be in what no program describes.
    if (!this.#begun && program === undefined) this.#dropBefore(this.#tableAt ?? packetsBefore)
    if (this.#sizeBytes > MAX_BYTES || this.#entries.length > MAX_PAYLOADS) this.clear()
  }

  /** @returns the payloads, in order; nothing is kept afterwards */
  take(): readonly Buffer[] {
    const payloads = this.#entries.map(({ payload }) => payload)
    this.clear()
    return payloads
  }

  clear(): void {
    if (this.#entries.length === 0) return
    this.#entries = []
    this.#sizeBytes = 0
    this.#tableAt = undefined
    this.#begun = false
  }

  /**
   * Drops what precedes a key frame or, before there is one, the latest frame: the next key frame cannot begin before it.
   *
   * @param videoPid  undefined for a program without video, where playback can start with any unit
   */
  #handle({ track, packetNumber = 0, randomAccess, damaged }: PesUnit, videoPid?: number): void {
    if (videoPid !== undefined && track.pid !== videoPid) return
    const isKeyFrame = videoPid === undefined || (randomAccess && !damaged)
    if (this.#begun && !isKeyFrame) return
    const start = this.#entries.findLast(({ packetsBefore }) => packetsBefore <= packetNumber)
    // The start of a frame that was arriving when the log began is missing.
    if (start === undefined) return
    this.#dropBefore(start.startsAt)
    this.#begun = isKeyFrame
  }

  #dropBefore(startsAt: number): void {
    const index = this.#entries.findIndex(({ packetsBefore }) => packetsBefore === startsAt)
    for (const { payload } of this.#entries.splice(0, index)) this.#sizeBytes -= payload.length
  }
}

/** Whether a PAT begins in a payload of whole transport packets. */
function hasTable(payload: Buffer): boolean {
  if (payload[0] !== SYNC_BYTE || payload.length % PACKET_BYTES !== 0) return false
  for (let at = 0; at < payload.length; at += PACKET_BYTES)
    if (readPid(payload, at) === PAT_PID && isUnitStart(payload, at)) return true
  return false
}
