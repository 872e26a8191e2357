/**
 * AAC in whole frames: one that crosses the end of its PES packet is put into that in which it ends. hls.js ends where the
 * audio of a segment begins with the rest of a frame.
 *
 * @module
 */
import { ADTS_HEADER_BYTES, adtsFrameBytes, decodeAdtsHeader } from '../../codec/adts.ts'
import { findAudioFrame, MAX_SEARCHED_BYTES } from '../../codec/audio-frame.ts'
import { replacePesPayload } from '../mux/pes-packetizer.ts'
import { PACKET_BYTES } from '../packet.ts'
import { PES_PREFIX_BYTES } from '../pes.ts'
import { TICKS_PER_SEC, type Times } from '../timestamps.ts'
import type { DemuxerStats } from './demuxer-stats.ts'
import type { VideoPes } from './frame-splitter.ts'

/** PES packet with its times, which are those of the first frame that begins in it (ISO/IEC 13818-1 2.4.3.7). */
export interface TimedPes {
  readonly pes: VideoPes
  readonly times: Times
  /** Whether it has a PTS. */
  readonly isStamped: boolean
}

type Stats = Pick<DemuxerStats, 'triedHeaders' | 'addedPackets' | 'incompleteFrames'>

const NOTHING: Buffer = Buffer.alloc(0)

/** Inputs: `push` every PES packet in order. PES packets of whole frames stay as they are. */
export class AdtsAlignment {
  readonly #stats: Stats
  /** Bytes of earlier PES packets: from the start of a frame on or, until one is found, those in which it may begin. */
  #carried = NOTHING
  /** Whether a frame begins at the start of what is carried, or of the next PES packet. */
  #isLocked = false

  /** @param stats  to count in */
  constructor(stats: Stats) {
    this.#stats = stats
  }

  /** @returns the PES packet with whole frames; undefined when none ends in it */
  push(timed: TimedPes): TimedPes | undefined {
    const { payload, headerBytes, damaged, afterLoss } = timed.pes
    // Padding is no part of the elementary stream.
    if (headerBytes <= PES_PREFIX_BYTES || payload.length === 0) return timed
    if (damaged || afterLoss) this.#restart()
    if (damaged) return timed
    const carriedBytes = this.#carried.length
    const bytes = carriedBytes === 0 ? payload : Buffer.concat([this.#carried, payload])
    if (carriedBytes > 0) this.#stats.addedPackets += bytes.length / PACKET_BYTES
    const begin = this.#begin(bytes, carriedBytes)
    if (begin === undefined) return this.#carried.length > 0 ? undefined : timed
    return this.#take(timed, { bytes, carriedBytes, begin })
  }

  /** @returns where the first frame begins; undefined if none is found */
  #begin(bytes: Buffer, carriedBytes: number): number | undefined {
    if (this.#isLocked || (carriedBytes === 0 && this.#frameBytes(bytes, 0) !== undefined)) return 0
    let isCandidate = false
    const found = findAudioFrame(bytes, (searched, at) => {
      this.#stats.triedHeaders++
      const header = decodeAdtsHeader(searched, at)
      isCandidate ||= header !== undefined
      return header
    })
    // One header alone may be within a frame: the next PES packet tells.
    const isOpen = isCandidate && bytes.length <= MAX_SEARCHED_BYTES
    if (found === undefined) this.#carried = isOpen ? bytes : NOTHING
    else if (found.at > 0) this.#stats.incompleteFrames++
    return found?.at
  }

  #take(
    timed: TimedPes,
    { bytes, carriedBytes, begin }: { bytes: Buffer; carriedBytes: number; begin: number },
  ): TimedPes | undefined {
    const { payload } = timed.pes
    this.#isLocked = true
    let end = begin
    /** Number of frames that begin before this PES packet, and whether one begins in it. */
    let [early, isBegun] = [0, false]
    while (end < bytes.length) {
      const sizeBytes = this.#frameBytes(bytes, end)
      if (sizeBytes === undefined) {
        if (end + ADTS_HEADER_BYTES > bytes.length && bytes[end] === 0xff) break
        // What is no frame, decoders skip.
        this.#isLocked = false
        isBegun = true
        end = bytes.length
      } else if (end + sizeBytes > bytes.length) break
      else {
        if (end < carriedBytes) early++
        else isBegun = true
        end += sizeBytes
      }
    }
    isBegun ||= end < bytes.length && end >= carriedBytes
    const frames = bytes.subarray(begin, end)
    // The PTS is that of no frame where none begins.
    const isKept = isBegun && frames.length > 0
    this.#carried = bytes.subarray(isKept ? end : begin)
    if (!isKept) return undefined
    return frames.length === payload.length && carriedBytes === 0
      ? timed
      : this.#withFrames(timed, frames, early)
  }

  /** @param early  number of frames before the one to which the times belong */
  #withFrames({ pes, times, isStamped }: TimedPes, payload: Buffer, early: number): TimedPes {
    const { samples, parameters } = decodeAdtsHeader(payload, 0) ?? {}
    const frameTicks =
      parameters === undefined ? 0 : ((samples ?? 0) * TICKS_PER_SEC) / parameters.sampleRate
    const ticks = isStamped ? Math.round(early * frameTicks) : 0
    const moved = { ptsTicks: times.ptsTicks - ticks, dtsTicks: times.dtsTicks - ticks }
    const packets = replacePesPayload(
      pes.chunks,
      pes.headerBytes,
      payload,
      isStamped ? moved : undefined,
    )
    this.#stats.addedPackets += packets.length / PACKET_BYTES
    return {
      isStamped,
      times: moved,
      pes: { ...pes, chunks: [packets], sizeBytes: packets.length, payload },
    }
  }

  #restart(): void {
    if (this.#carried.length > 0) this.#stats.incompleteFrames++
    this.#carried = NOTHING
    this.#isLocked = false
  }

  #frameBytes(bytes: Buffer, at: number): number | undefined {
    this.#stats.triedHeaders++
    return adtsFrameBytes(bytes, at)
  }
}
