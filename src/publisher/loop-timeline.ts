/**
 * Timeline of a clip sent in a loop: timestamps and continuity counters continue from pass to pass (ISO/IEC 13818-1
 * 2.4.3.3).
 *
 * A pass lasts from the first video DTS to the last video DTS plus one frame, so video frames stay evenly spaced. Audio
 * that is longer overlaps the next pass; if it is longer by more than `MAX_OVERHANG_TICKS`, the pass lasts as long as
 * the audio.
 *
 * @module
 */
import { TIME_MODULUS, unwrapTimestamp33 } from '../binary/timestamp-33.ts'
import { PACKET_BYTES, payloadOffset, readContinuityCounter, readPid } from '../mpegts/packet.ts'
import { TICKS_PER_SEC } from '../mpegts/timestamps.ts'
import { movePcr, movePesTimes, readPesTimes } from './packet-times.ts'

/** Maximum time by which a track may overlap the next pass; in most files, a few audio frames overlap it. */
const MAX_OVERHANG_TICKS = 0.5 * TICKS_PER_SEC

/** Duration of a pass with one frame, or without timestamps. */
const SINGLE_FRAME_TICKS = TICKS_PER_SEC / 25

interface PidState {
  /** Continuity counter of the latest packet. */
  counter: number
  /** Offset added to the continuity counters in this pass; undefined before its first packet of this PID. */
  counterShift: number | undefined
  /** Range of the unwrapped DTS in this pass; undefined before the first DTS. */
  span: Span | undefined
}

interface Span {
  readonly isVideo: boolean
  readonly firstTicks: number
  lastTicks: number
  /** Difference between the latest two DTS; 0 after the first. */
  stepTicks: number
}

/** Calling order: `push` every packet; `rewind` before each further pass. */
export class LoopTimeline {
  readonly #pids = new Map<number, PidState>()
  /** Offset added to the timestamps of this pass, modulo 2^33. */
  #shiftTicks = 0

  /** Rewrites the packet at `at` in place. */
  push(bytes: Buffer, at: number): void {
    const pid = readPid(bytes, at)
    const state = this.#pids.get(pid)
    if (state === undefined) {
      const counter = readContinuityCounter(bytes, at)
      const first: PidState = { counter, counterShift: 0, span: undefined }
      this.#pids.set(pid, first)
      measure(first, bytes, at)
    } else {
      measure(state, bytes, at)
      renumber(state, bytes, at)
    }
    if (this.#shiftTicks > 0) {
      movePcr(bytes, at, this.#shiftTicks)
      movePesTimes(bytes, at, this.#shiftTicks)
    }
  }

  rewind(): void {
    this.#shiftTicks = (this.#shiftTicks + this.#passTicks()) % TIME_MODULUS
    for (const state of this.#pids.values()) {
      state.counterShift = undefined
      state.span = undefined
    }
  }

  #passTicks(): number {
    const spans = [...this.#pids.values()].flatMap(({ span }) => span ?? [])
    const video = spans.find(({ isVideo }) => isVideo) ?? spans[0]
    let ticks = video === undefined ? 0 : lengthTicks(video)
    for (const span of spans) {
      if (span.lastTicks - span.firstTicks > ticks + MAX_OVERHANG_TICKS) ticks = lengthTicks(span)
    }
    return ticks > 0 ? ticks : SINGLE_FRAME_TICKS
  }
}

function lengthTicks({ firstTicks, lastTicks, stepTicks }: Span): number {
  return lastTicks - firstTicks + stepTicks
}

function measure(state: PidState, bytes: Buffer, at: number): void {
  const times = readPesTimes(bytes, at)
  if (times === undefined) return
  if (state.span === undefined) {
    const { isVideo, dtsTicks } = times
    state.span = { isVideo, firstTicks: dtsTicks, lastTicks: dtsTicks, stepTicks: 0 }
  } else {
    const ticks = unwrapTimestamp33(times.dtsTicks, state.span.lastTicks)
    state.span.stepTicks = ticks - state.span.lastTicks
    state.span.lastTicks = ticks
  }
}

/** Adds one offset to all counters of the PID in this pass, so that losses and duplicates in the file stay visible. */
function renumber(state: PidState, bytes: Buffer, at: number): void {
  const counter = readContinuityCounter(bytes, at)
  if (state.counterShift === undefined) {
    // 2.4.3.3: a packet without payload repeats the counter of the previous packet.
    const step = payloadOffset(bytes, at) === at + PACKET_BYTES ? 0 : 1
    state.counterShift = state.counter + step - counter
  }
  state.counter = (counter + state.counterShift) & 0x0f
  bytes[at + 3] = (bytes[at + 3]! & 0xf0) | state.counter
}
