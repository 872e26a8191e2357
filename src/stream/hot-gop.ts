/**
 * The newest GOP of a source that is not on air: with it the source begins when it goes on air.
 *
 * @module
 */
import type { DemuxerOutput } from '../mpegts/demux/demuxer.ts'
import { storePackets } from '../mpegts/mux/packet-memory.ts'
import { decodePesHeader, pesBytes } from '../mpegts/pes.ts'
import { TICKS_PER_SEC } from '../mpegts/timestamps.ts'

/** Bounds of the GOP: 10 s at 13 Mbit/s, and 10 s of 60 frames and 12 tracks of audio. A longer GOP is not kept. */
const MAX_BYTES = 16 * 1024 * 1024
const MAX_OUTPUTS = 8192

/** Output of the demuxer, and the time at which it arrived, in milliseconds since 1970. */
interface TimedOutput {
  readonly output: DemuxerOutput
  readonly wallMs: number
}

/** Time without a key frame of the video after which audio alone is a start, as that of a program without video is. */
const VIDEO_PATIENCE_MS = 10_000

/** Longest time by which other tracks arrive ahead of the key frame. */
const MAX_AHEAD_TICKS = 1 * TICKS_PER_SEC

const NOTHING = Buffer.alloc(0)

type ProgramOutput = Extract<DemuxerOutput, { readonly type: 'program' }>
type Unit = Extract<DemuxerOutput, { readonly type: 'unit' }>

/** Inputs: `push` every output of the demuxer, also while the source is on air; `clear` when it goes on air. */
export class HotGop {
  /** Newest program, which is that of the outputs to come. */
  #program: ProgramOutput | undefined
  /** Outputs from a key frame on, after the program that it belongs to; empty without one. */
  #outputs: TimedOutput[] = []
  #sizeBytes = 0
  #isFresh = false
  /** Whether it begins with a key frame of video. */
  #hasVideo = false
  /** Time of the newest key frame of video or, until there is one, since which there is a program or it is not on air. */
  #keyMs = 0

  /** Whether a key frame has arrived. */
  get begun(): boolean {
    return this.#outputs.length > 0
  }

  /** Whether the latest outputs had a key frame. */
  get isFresh(): boolean {
    return this.#isFresh && this.begun
  }

  /** Time at which its key frame arrived, in milliseconds since 1970; Infinity without one. */
  get beganMs(): number {
    return this.#outputs[0]?.wallMs ?? Infinity
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /**
   * @param outputs  outputs of one push of the demuxer
   * @param isOnAir  whether the source is on air: then only the program is kept
   */
  push(outputs: readonly DemuxerOutput[], wallMs: number, isOnAir: boolean): void {
    this.#isFresh = false
    for (const output of outputs) {
      if (output.type === 'program') {
        if (this.#program === undefined) this.#keyMs = wallMs
        this.#program = output
      }
      if (isOnAir) this.#keyMs = wallMs
      else this.#add(output, wallMs)
    }
  }

  /** @returns the program and what was kept since the key frame, in order; nothing is kept afterwards */
  take(): readonly TimedOutput[] {
    const outputs = this.#outputs
    this.clear()
    return outputs.map(({ output, wallMs }) => ({ output: withPayload(output), wallMs }))
  }

  clear(): void {
    this.#outputs = []
    this.#sizeBytes = 0
    this.#hasVideo = false
  }

  #add(output: DemuxerOutput, wallMs: number): void {
    // Of use only while its PES packet arrives.
    if (output.type === 'header') return
    if (this.#program !== undefined && this.#isStart(output, this.#program, wallMs)) {
      const beside = this.#takeBeside(output)
      this.clear()
      this.#isFresh = true
      this.#hasVideo = output.unit.track.kind === 'video'
      if (this.#hasVideo) this.#keyMs = wallMs
      this.#outputs.push({ output: this.#program, wallMs })
      for (const each of beside) this.#keep(each)
    }
    if (!this.begun) return
    this.#keep({ output: copyOf(output), wallMs })
    if (this.#sizeBytes > MAX_BYTES || this.#outputs.length > MAX_OUTPUTS) this.clear()
  }

  #keep(timed: TimedOutput): void {
    const { output } = timed
    this.#outputs.push(timed)
    if (output.type === 'unit') this.#sizeBytes += output.unit.sizeBytes
    else if (output.type === 'packets') this.#sizeBytes += sizeOf(output.chunks)
  }

  /** Media of the other tracks that arrived before a frame, which is complete when the next one begins, and belongs to it. */
  #takeBeside({ unit }: Unit): TimedOutput[] {
    return this.#outputs.filter(({ output }) => {
      if (output.type !== 'unit' || output.unit.track.pid === unit.track.pid) return false
      const aheadTicks = output.unit.ptsTicks - unit.ptsTicks
      return aheadTicks >= 0 && aheadTicks < MAX_AHEAD_TICKS
    })
  }

  /** Whether playback can start with an output: an undamaged key frame or, without video, any audio. */
  #isStart(output: DemuxerOutput, { program }: ProgramOutput, wallMs: number): output is Unit {
    if (output.type !== 'unit') return false
    const { track, randomAccess, damaged } = output.unit
    if (!randomAccess || damaged) return false
    const lead = program.tracks.find(({ kind }) => kind === 'video')
    if (track.pid === lead?.pid) return true
    if (track.kind !== 'audio') return false
    return lead === undefined || (!this.#hasVideo && wallMs - this.#keyMs > VIDEO_PATIENCE_MS)
  }
}

/**
 * Copies the packets: what else is in the received payloads, or in a pool of Node.js, is not kept. Nor is the payload of a
 * PES packet, which would take as much memory again.
 */
function copyOf(output: DemuxerOutput): DemuxerOutput {
  if (output.type === 'packets') return { ...output, chunks: copyChunks(output.chunks) }
  if (output.type !== 'unit') return output
  const chunks = copyChunks(output.unit.chunks)
  return { ...output, unit: { ...output.unit, chunks, payload: NOTHING } }
}

/** Reads the payload of a PES packet from its packets again. */
function withPayload(output: DemuxerOutput): DemuxerOutput {
  if (output.type !== 'unit') return output
  const { chunks } = output.unit
  const pes = pesBytes(chunks)
  const payload = pes.subarray(decodePesHeader(pes)?.sizeBytes ?? 0)
  return { ...output, unit: { ...output.unit, payload } }
}

function copyChunks(chunks: readonly Buffer[]): readonly Buffer[] {
  return [storePackets(chunks, sizeOf(chunks))]
}

function sizeOf(chunks: readonly Buffer[]): number {
  return chunks.reduce((sum, { length }) => sum + length, 0)
}
