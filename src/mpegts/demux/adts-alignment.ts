/**
 * AAC in whole frames: one that crosses the end of its PES packet is put into that in which it begins. hls.js ends where the
 * audio of a segment begins with the rest of a frame.
 *
 * @module
 */
import { ADTS_HEADER_BYTES, adtsFrameBytes, decodeAdtsHeader } from '../../codec/adts.ts'
import { findAudioFrame } from '../../codec/audio-frame.ts'
import { replacePesPayload } from '../mux/pes-packetizer.ts'
import { PES_PREFIX_BYTES } from '../pes.ts'
import type { Times } from '../timestamps.ts'
import type { VideoPes } from './frame-splitter.ts'

/** PES packet with its times, which are those of the first frame that begins in it (ISO/IEC 13818-1 2.4.3.7). */
export interface TimedPes {
  readonly pes: VideoPes
  readonly times: Times
  /** Whether it has a PTS. */
  readonly isStamped: boolean
}

/** PES packet whose last frame is not complete. */
interface Held {
  readonly timed: TimedPes
  /** Its whole frames. */
  readonly frames: Buffer
  /** Start of the last one. */
  readonly rest: Buffer
}

/** Inputs: `push` every PES packet in order, `flush` at the end. PES packets of whole frames stay as they are. */
export class AdtsAlignment {
  readonly #stats: { triedHeaders: number }
  #held: Held | undefined

  /** @param stats  to count in */
  constructor(stats: { triedHeaders: number }) {
    this.#stats = stats
  }

  /** @returns PES packets that are complete: that before this one, this one, both or none */
  push(timed: TimedPes): TimedPes[] {
    const { payload, headerBytes, damaged, afterLoss } = timed.pes
    // Padding is no part of the elementary stream.
    if (headerBytes <= PES_PREFIX_BYTES) return [timed]
    if (damaged || afterLoss) return [...this.flush(), ...(damaged ? [timed] : this.#begin(timed))]
    const held = this.#held
    if (held === undefined) return this.#begin(timed)
    const joined = Buffer.concat([held.rest, payload])
    const sizeBytes = this.#frameBytes(joined, 0)
    if ((sizeBytes ?? ADTS_HEADER_BYTES) > joined.length) {
      this.#held = { ...held, rest: joined }
      return []
    }
    const isFollowed = sizeBytes !== undefined && this.#isStart(joined, sizeBytes)
    if (!isFollowed) return [...this.flush(), ...this.#begin(timed)]
    this.#held = undefined
    const whole = Buffer.concat([held.frames, joined.subarray(0, sizeBytes)])
    return [withPayload(held.timed, whole), ...this.#take(timed, sizeBytes - held.rest.length)]
  }

  /** @returns the PES packet whose last frame is not complete, without that frame */
  flush(): TimedPes[] {
    const held = this.#held
    this.#held = undefined
    return held === undefined || held.frames.length === 0
      ? []
      : [withPayload(held.timed, held.frames)]
  }

  /** Takes a PES packet that may begin within a frame, whose rest is dropped. */
  #begin(timed: TimedPes): TimedPes[] {
    const { payload } = timed.pes
    if (this.#isStart(payload, 0)) return this.#take(timed, 0)
    const found = findAudioFrame(payload, (bytes, at) => {
      this.#stats.triedHeaders++
      return decodeAdtsHeader(bytes, at)
    })
    return found === undefined ? [timed] : this.#take(timed, found.at)
  }

  /** Takes the frames of a PES packet from an offset on, at which one begins, or which is the end. */
  #take(timed: TimedPes, begin: number): TimedPes[] {
    const { payload } = timed.pes
    let end = begin
    while (end < payload.length) {
      const sizeBytes = this.#frameBytes(payload, end)
      // What is no frame, decoders skip.
      if (sizeBytes === undefined && !this.#isStart(payload, end)) end = payload.length
      else if (sizeBytes === undefined || end + sizeBytes > payload.length) break
      else end += sizeBytes
    }
    const frames = payload.subarray(begin, end)
    if (end < payload.length) {
      this.#held = { timed, frames, rest: payload.subarray(end) }
      return []
    }
    if (frames.length === payload.length) return [timed]
    return frames.length === 0 ? [] : [withPayload(timed, frames)]
  }

  /** Whether a frame may begin at an offset: there are the bytes of a header, as many as there are. */
  #isStart(bytes: Buffer, at: number): boolean {
    if (at + ADTS_HEADER_BYTES <= bytes.length) return this.#frameBytes(bytes, at) !== undefined
    return at === bytes.length || bytes[at] === 0xff
  }

  #frameBytes(bytes: Buffer, at: number): number | undefined {
    this.#stats.triedHeaders++
    return adtsFrameBytes(bytes, at)
  }
}

function withPayload({ pes, ...timed }: TimedPes, payload: Buffer): TimedPes {
  const packets = replacePesPayload(pes.chunks, pes.headerBytes, payload)
  return { ...timed, pes: { ...pes, chunks: [packets], sizeBytes: packets.length, payload } }
}
