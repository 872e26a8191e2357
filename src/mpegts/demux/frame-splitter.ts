/**
 * Cuts video anew where PES packets are not its frames: where they begin or end within one, have several, or begin one
 * without a PTS (ISO/IEC 13818-1 2.4.3.7 allows all of it). Each frame gets a PES packet of its own.
 *
 * @module
 */
import { FrameFinder, type PictureStart } from '../../codec/frame-finder.ts'
import type { VideoCodec } from '../../codec/parameter-sets.ts'
import { VIDEO_READERS } from '../../codec/video-readers.ts'
import { packetizePes } from '../mux/pes-packetizer.ts'
import {
  HAS_ADAPTATION_FIELD,
  HAS_PAYLOAD,
  hasPcr,
  PACKET_BYTES,
  payloadOffset,
  UNIT_START,
} from '../packet.ts'
import { encodePesHeader } from '../pes.ts'
import { TICKS_PER_SEC, type Times } from '../timestamps.ts'
import { FrameClock, type UntimedFrame } from './frame-clock.ts'
import type { DemuxerStats } from './demuxer-stats.ts'
import type { RawPes } from './pes-assembler.ts'

/** Maximum size of an incomplete frame, and of those that wait for their times; a key frame of 4K at 80 Mbit/s has 2 MB. */
const MAX_HELD_BYTES = 4 * 1024 * 1024

/** Maximum number of pieces of an incomplete frame: one of 4 MB in PES packets of a transport packet each. */
const MAX_HELD_PIECES = 32_768

/** Maximum number of pictures of a PES packet: in 0.7 s, the longest time without a PTS (2.7.4), 84 at 120 frames/s. */
const MAX_PICTURES = 256

/** PES packets that are told apart before it is known whether a frame begins in them. */
const MAX_MARKS = 256

/** PES packet of video. */
export interface VideoPes extends RawPes {
  readonly headerBytes: number
  /** Elementary stream bytes. */
  readonly payload: Buffer
}

/** PES packet that was made of a frame, with its times. */
export interface FramePes {
  readonly pes: VideoPes
  readonly times: Times
  /** False for the end of a frame whose beginning was passed on before the first cut. */
  readonly startsFrame: boolean
}

/** PES packet as a place in the elementary stream. */
interface Mark {
  readonly at: number
  /** Times of the first frame that begins in it; undefined once one has. */
  stamp: Times | undefined
  /** See `PesUnit.packetNumber`. */
  readonly packetNumber: number
}

interface Pcr {
  readonly at: number
  /** As sent. */
  readonly bytes: Buffer
}

interface Frame extends UntimedFrame {
  /** See `PesUnit.packetNumber`. */
  readonly packetNumber: number
  readonly payload: Buffer
  readonly damaged: boolean
  readonly pcr: Buffer | undefined
}

/** Frame whose end has not come. */
interface OpenFrame extends UntimedFrame {
  readonly packetNumber: number
  damaged: boolean
  /** Set if this is the rest of a frame that was passed on. */
  readonly rest?: {
    /** Times of the frame. */
    readonly times: Times
    /** Number of its held bytes that were passed on. */
    readonly passedBytes: number
  }
}

/** Highest declared frame rate that is believed before frames are counted. */
const MAX_FRAME_RATE = 120

const NOTHING = Buffer.alloc(0)

/** Offset of stream_id in a PES packet, and its lowest value for video (ISO/IEC 13818-1 Table 2-22). */
const STREAM_ID_AT = 3
const VIDEO_STREAM_ID = 0xe0

/** Length and flags of an adaptation field with nothing but a PCR (ISO/IEC 13818-1 2.4.3.4). */
const PCR_FIELD = Buffer.from([7, 0x10])

/** Calling order: `push` every PES packet in order, `flush` after the last. */
export class FrameSplitter {
  readonly #stats: DemuxerStats
  readonly #finder: FrameFinder
  readonly #clock: FrameClock<Frame>
  #splits = false
  #startsFrame = false
  /** Size of the elementary stream so far. */
  #sizeBytes = 0
  /** Latest PES packet. */
  #latest: VideoPes | undefined
  /** Times of the latest PES packet that was passed on as it is. */
  #passed: Times | undefined
  /** PES packets, from the one in which the next frame may begin. */
  #marks: Mark[] = []
  #pcrs: Pcr[] = []
  #open: OpenFrame | undefined
  /** Bytes of the open frame, and those behind it; before the first cut, those with which the next frame may have begun. */
  #held: Buffer[] = []
  #heldBytes = 0
  /** End of the latest PES packet that lacks bytes. */
  #damagedEnd = 0

  /** @param stats  to count in */
  constructor(codec: VideoCodec, stats: DemuxerStats) {
    this.#stats = stats
    this.#finder = new FrameFinder(codec, stats)
    this.#clock = new FrameClock(VIDEO_READERS[codec].orderStep)
  }

  /** Whether PES packets are made anew. */
  get splits(): boolean {
    return this.#splits
  }

  /** Whether the latest PES packet that was passed on as it is begins a frame, or goes on with the start of one. */
  get startsFrame(): boolean {
    return this.#startsFrame
  }

  /**
   * @param times  undefined without a PTS
   * @param frameRate  as the parameter sets declare it
   * @returns the frames that are complete; undefined while a PES packet is a frame or a part of one: it stays as it is
   */
  push(pes: VideoPes, times: Times | undefined, frameRate?: number): FramePes[] | undefined {
    const isUsual = frameRate !== undefined && frameRate >= 1 && frameRate <= MAX_FRAME_RATE
    this.#clock.declaredTicks = isUsual ? TICKS_PER_SEC / frameRate : undefined
    const { payload, damaged } = pes
    const at = this.#sizeBytes
    this.#sizeBytes += payload.length
    this.#latest = pes
    this.#marks.push({ at, stamp: times, packetNumber: pes.packetNumber })
    const starts = pes.afterLoss ? this.#finder.endNal(true) : []
    if (pes.afterLoss && this.#open !== undefined) this.#open.damaged = true
    starts.push(...this.#finder.push(payload, damaged))
    const cuts = () => {
      if (damaged) return false
      const { hasSlice, sliceBeforeLead } = this.#finder
      if ((hasSlice || this.#passed !== undefined) && !beginsWithNal(payload)) return true
      return hasSlice && (isCut(starts, at, times) || sliceBeforeLead >= at)
    }
    if (!this.#splits && !cuts()) {
      starts.push(...this.#finder.endNal(damaged))
      if (!cuts()) return this.#pass(pes, times, starts)
    }
    if (!this.#splits) this.#beginSplitting()
    return this.#split(pes, starts)
  }

  /** @returns all frames that are held */
  flush(): FramePes[] {
    if (!this.#splits) return []
    const starts = this.#finder.endNal(false)
    const frames = starts.flatMap((start) => this.#begin(start))
    const rest = [...this.#close(this.#sizeBytes), ...this.#time(this.#clock.flush())]
    return [...frames, ...rest]
  }

  #pass(
    { packetNumber, payload }: VideoPes,
    times: Times | undefined,
    starts: readonly PictureStart[],
  ): undefined {
    this.#keepLead(payload)
    this.#startsFrame = starts.some(({ startsFrame }) => startsFrame)
    this.#passed = times ?? this.#passed
    if (this.#startsFrame) this.#marks.at(-1)!.stamp = undefined
    this.#limit()
    // What follows without a PTS goes on from here; a frame with a stamp does not wait.
    const stamp = this.#passed
    for (const { startsFrame, startsOrder, order } of starts) {
      if (!startsFrame) continue
      // Listed, as in FrameFinder.
      this.#clock.push({
        startsOrder,
        order,
        stamp,
        packetNumber,
        payload: NOTHING,
        damaged: false,
        pcr: undefined,
      })
    }
  }

  /** Holds the bytes of a PES packet that is passed on with which the next frame may begin, should it be cut. */
  #keepLead(payload: Buffer): void {
    const leadBytes = this.#sizeBytes - this.#finder.earliestAt
    if (leadBytes <= payload.length) {
      this.#held = leadBytes === 0 ? [] : [payload.subarray(-leadBytes)]
      this.#heldBytes = leadBytes
    } else {
      this.#held.push(payload)
      this.#heldBytes += payload.length
    }
  }

  #beginSplitting(): void {
    this.#splits = true
    if (this.#passed === undefined) return
    const rest = { times: this.#passed, passedBytes: this.#heldBytes }
    const { packetNumber } = this.#marks[0]!
    const frame = { startsOrder: false, order: undefined, stamp: undefined, damaged: false }
    this.#open = { ...frame, packetNumber, rest }
  }

  #split(pes: VideoPes, starts: readonly PictureStart[]): FramePes[] {
    const { payload, damaged } = pes
    const at = this.#sizeBytes - payload.length
    this.#stats.splitPes++
    this.#held.push(payload)
    this.#heldBytes += payload.length
    this.#pcrs.push(...findPcrs(pes, at))
    if (damaged) {
      this.#damagedEnd = this.#sizeBytes
      if (this.#open !== undefined) this.#open.damaged = true
    }
    const frames = starts.slice(0, MAX_PICTURES).flatMap((start) => this.#begin(start))
    if (starts.length > MAX_PICTURES && this.#open !== undefined) {
      this.#open.damaged = true
      this.#stats.oversizedPes++
    }
    this.#limit()
    return frames
  }

  /** Ends the open frame where another begins. A second field takes the PTS that is its own. */
  #begin({ at, startsFrame, startsOrder, order }: PictureStart): FramePes[] {
    const mark = this.#marks.findLast((it) => it.at <= at)!
    const { stamp, packetNumber } = mark
    mark.stamp = undefined
    if (!startsFrame) return []
    const frames = this.#close(at)
    this.#open = { startsOrder, order, stamp, packetNumber, damaged: at < this.#damagedEnd }
    return frames
  }

  #close(endAt: number): FramePes[] {
    const payload = this.#take(endAt)
    const open = this.#open
    this.#open = undefined
    const after = this.#pcrs.findIndex(({ at }) => at >= endAt)
    const [pcr] = this.#pcrs.splice(0, after === -1 ? this.#pcrs.length : after)
    if (open === undefined || payload.length === 0) return []
    const { rest, ...start } = open
    const frame = { ...start, payload, pcr: pcr?.bytes }
    if (rest !== undefined) {
      const left = payload.subarray(rest.passedBytes)
      return left.length === 0 ? [] : [this.#encode({ ...frame, payload: left }, rest.times, false)]
    }
    const timed = this.#clock.push(frame)
    const waitingBytes = this.#clock.waiting.reduce((sum, it) => sum + it.payload.length, 0)
    if (waitingBytes > MAX_HELD_BYTES) timed.push(...this.#clock.flush())
    return this.#time(timed)
  }

  #time(frames: readonly [Frame, Times][]): FramePes[] {
    return frames.map(([frame, times]) => this.#encode(frame, times, true))
  }

  /** @returns the bytes from the start of the open frame to an offset in the elementary stream */
  #take(endAt: number): Buffer {
    let missing = Math.max(0, endAt - (this.#sizeBytes - this.#heldBytes))
    this.#heldBytes -= missing
    const pieces: Buffer[] = []
    let count = 0
    for (const piece of this.#held) {
      if (piece.length > missing) break
      pieces.push(piece)
      missing -= piece.length
      count++
    }
    this.#held.splice(0, count)
    const [next] = this.#held
    if (missing > 0 && next !== undefined) {
      pieces.push(next.subarray(0, missing))
      this.#held[0] = next.subarray(missing)
    }
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
  }

  #limit(): void {
    this.#dropMarks()
    this.#pcrs.length = Math.min(1, this.#pcrs.length)
    if (this.#heldBytes <= MAX_HELD_BYTES && this.#held.length <= MAX_HELD_PIECES) return
    if (this.#open !== undefined) this.#stats.oversizedPes++
    this.#open = undefined
    this.#held = []
    this.#heldBytes = 0
  }

  #dropMarks(): void {
    const { earliestAt } = this.#finder
    while (this.#marks.length > 1 && this.#marks[1]!.at <= earliestAt) this.#marks.shift()
    if (this.#marks.length > MAX_MARKS) this.#marks.splice(1, 1)
  }

  #encode(
    { payload, damaged, pcr, packetNumber }: Frame,
    { ptsTicks, dtsTicks }: Times,
    startsFrame: boolean,
  ): FramePes {
    this.#stats.splitFrames++
    const [packet] = this.#latest!.chunks as [Buffer]
    const header = encodePesHeader(streamIdOf(packet), ptsTicks, payload.length, dtsTicks)
    const bytes = packetizePes(startPacket(packet, pcr), Buffer.concat([header, payload]))
    const pes = {
      chunks: [bytes],
      sizeBytes: bytes.length,
      damaged,
      afterLoss: false,
      packetNumber,
    }
    const times = { ptsTicks, dtsTicks }
    return { pes: { ...pes, headerBytes: header.length, payload }, times, startsFrame }
  }
}

/** Whether a PES packet begins with a NAL unit, or is empty: zero bytes, then a start code (H.264 B.1.1). */
function beginsWithNal(payload: Buffer): boolean {
  let zeros = 0
  while (payload[zeros] === 0) zeros++
  return payload.length === 0 || (zeros >= 2 && payload[zeros] === 1)
}

/**
 * Whether frames must be cut anew: more than one is in a PES packet, or one begins behind slices of another, or without a
 * PTS.
 *
 * @param at  offset of the PES packet in the elementary stream
 */
function isCut(starts: readonly PictureStart[], at: number, times: Times | undefined): boolean {
  const frames = starts.filter(({ startsFrame }) => startsFrame)
  const [start] = frames
  if (start === undefined) return false
  return frames.length > 1 || start.latestSliceAt >= at || (times === undefined && start.at >= at)
}

/** @returns PCRs of a PES packet by their place in the elementary stream, which the PES packet goes on with at `at` */
function findPcrs({ chunks, headerBytes }: VideoPes, at: number): Pcr[] {
  const pcrs: Pcr[] = []
  let place = at - headerBytes
  for (const chunk of chunks) {
    for (let packet = 0; packet < chunk.length; packet += PACKET_BYTES) {
      const payloadAt = payloadOffset(chunk, packet) ?? packet + PACKET_BYTES
      if (hasPcr(chunk, packet)) {
        pcrs.push({
          at: Math.max(at, place),
          bytes: Buffer.from(chunk.subarray(packet + 6, packet + 12)),
        })
      }
      place += packet + PACKET_BYTES - payloadAt
    }
  }
  return pcrs
}

/** @returns stream_id of the PES packet that begins in a transport packet; that of video if it is in the next one */
function streamIdOf(packet: Buffer): number {
  const at = (payloadOffset(packet, 0) ?? PACKET_BYTES) + STREAM_ID_AT
  return at < PACKET_BYTES ? packet[at]! : VIDEO_STREAM_ID
}

/** @returns start of a transport packet with the PID and priority of another, and the given PCR alone */
function startPacket(packet: Buffer, pcr: Buffer | undefined): Buffer {
  const header = Buffer.from(packet.subarray(0, 4))
  header[1]! |= UNIT_START
  header[3] = HAS_PAYLOAD | (pcr === undefined ? 0 : HAS_ADAPTATION_FIELD)
  return pcr === undefined ? header : Buffer.concat([header, PCR_FIELD, pcr])
}
