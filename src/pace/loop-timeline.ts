/**
 * Timeline of a clip sent in a loop: timestamps and continuity counters continue from pass to pass (ISO/IEC 13818-1
 * 2.4.3.3).
 *
 * A pass lasts from the first video DTS to the last video DTS plus one frame, so video frames stay evenly spaced. If
 * the audio is longer by more than `MAX_OVERHANG_TICKS`, the pass lasts as long as the audio.
 *
 * Audio with a frame in each PES packet goes on evenly as well: a pass of it begins where the one before has ended, with
 * the PES packet that is nearest to the video. So lip sync is off by half a frame at most, however many passes there
 * are. Longer PES packets of audio overlap the next pass by what exceeds the video.
 *
 * @module
 */
import { TICKS_PER_SEC, TIME_MODULUS, unwrapTimestamp } from '../mpegts/timestamps.ts'
import { hasPayload, isUnitStart, readContinuityCounter, readPid } from '../mpegts/packet.ts'
import { movePcr, movePesTimes, readPesTimes, type PesTimes } from './packet-times.ts'

/** Maximum time by which a track may overlap the next pass; in most files, a few audio frames overlap it. */
const MAX_OVERHANG_TICKS = 0.5 * TICKS_PER_SEC

/** Duration of a pass with one frame, or without timestamps. */
const SINGLE_FRAME_TICKS = TICKS_PER_SEC / 25

/** Maximum distance of PES packets with one frame each: an AAC frame of 16 kHz has 64 ms. */
const MAX_FRAME_TICKS = 0.07 * TICKS_PER_SEC

/** Maximum difference between the steps of evenly spaced timestamps, which are rounded. */
const MAX_ROUNDING_TICKS = 2

interface PidState {
  /** Continuity counter of the latest packet. */
  counter: number
  /** Offset added to the continuity counters in this pass; undefined before its first packet of this PID. */
  counterShift: number | undefined
  /** Range of the unwrapped DTS in this pass; undefined before the first DTS. */
  span: Span | undefined
  /** Offset added to the timestamps in this pass, modulo 2^33; undefined before its first PES packet is sent. */
  shiftTicks: number | undefined
  /** End of the pass before, if its frames are evenly spaced. */
  end: PassEnd | undefined
  /** Whether the current PES packet is dropped. */
  dropped: boolean
}

interface Span {
  readonly isVideo: boolean
  readonly firstTicks: number
  lastTicks: number
  /** Difference between the latest two DTS; 0 after the first. */
  stepTicks: number
  minStepTicks: number
  maxStepTicks: number
}

interface PassEnd {
  /** DTS of the next frame, as sent. */
  readonly ticks: number
  readonly frameTicks: number
}

/** Calling order: `push` every packet; `rewind` before each further pass. */
export class LoopTimeline {
  readonly #pids = new Map<number, PidState>()
  /** Offset added to the timestamps of this pass, modulo 2^33. */
  #shiftTicks = 0

  /**
   * Rewrites the packet at `at` in place.
   *
   * @returns whether to send the packet; false for audio that the pass before has covered
   */
  push(bytes: Buffer, at: number): boolean {
    const state = this.#stateOf(bytes, at)
    const times = readPesTimes(bytes, at)
    if (times !== undefined) measure(state, times)
    if (isUnitStart(bytes, at)) state.dropped = this.#isCovered(state, times?.dtsTicks)
    if (state.dropped) return false
    renumber(state, bytes, at)
    if (this.#shiftTicks > 0) {
      movePcr(bytes, at, this.#shiftTicks)
      movePesTimes(bytes, at, state.shiftTicks ?? this.#shiftTicks)
    }
    return true
  }

  rewind(): void {
    for (const state of this.#pids.values()) state.end = this.#endOf(state)
    this.#shiftTicks = (this.#shiftTicks + this.#passTicks()) % TIME_MODULUS
    for (const state of this.#pids.values()) {
      state.counterShift = undefined
      state.span = undefined
      state.shiftTicks = undefined
    }
  }

  #stateOf(bytes: Buffer, at: number): PidState {
    const pid = readPid(bytes, at)
    const known = this.#pids.get(pid)
    if (known !== undefined) return known
    const first: PidState = {
      counter: readContinuityCounter(bytes, at),
      counterShift: 0,
      span: undefined,
      shiftTicks: undefined,
      end: undefined,
      dropped: false,
    }
    this.#pids.set(pid, first)
    return first
  }

  /** Whether the pass before lasts beyond the middle of this frame; chooses the shift with the first one of which not. */
  #isCovered(state: PidState, dtsTicks: number | undefined): boolean {
    if (state.shiftTicks !== undefined || dtsTicks === undefined) return false
    const gapTicks = state.end && distanceTicks(dtsTicks + this.#shiftTicks, state.end.ticks)
    const halfTicks = (state.end?.frameTicks ?? 0) / 2
    if (gapTicks !== undefined && gapTicks < -halfTicks && gapTicks >= -MAX_OVERHANG_TICKS)
      return true
    const isNext = gapTicks !== undefined && Math.abs(gapTicks) <= halfTicks
    state.shiftTicks = this.#shiftTicks - (isNext ? gapTicks : 0)
    return false
  }

  #endOf({ span, shiftTicks = this.#shiftTicks }: PidState): PassEnd | undefined {
    if (span === undefined || span.isVideo || span.stepTicks <= 0) return undefined
    const { minStepTicks, maxStepTicks } = span
    const isEven = maxStepTicks - minStepTicks <= MAX_ROUNDING_TICKS
    if (!isEven || maxStepTicks > MAX_FRAME_TICKS) return undefined
    return { ticks: span.lastTicks + span.stepTicks + shiftTicks, frameTicks: span.stepTicks }
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

/** @returns signed difference of two timestamps modulo 2^33 */
function distanceTicks(ticks: number, fromTicks: number): number {
  return unwrapTimestamp(ticks, fromTicks) - fromTicks
}

function measure(state: PidState, { isVideo, dtsTicks }: PesTimes): void {
  const { span } = state
  if (span === undefined) {
    state.span = {
      isVideo,
      firstTicks: dtsTicks,
      lastTicks: dtsTicks,
      stepTicks: 0,
      minStepTicks: Infinity,
      maxStepTicks: -Infinity,
    }
    return
  }
  const ticks = unwrapTimestamp(dtsTicks, span.lastTicks)
  span.stepTicks = ticks - span.lastTicks
  span.minStepTicks = Math.min(span.minStepTicks, span.stepTicks)
  span.maxStepTicks = Math.max(span.maxStepTicks, span.stepTicks)
  span.lastTicks = ticks
}

/** Adds one offset to all counters of the PID in this pass, so that losses and duplicates in the file stay visible. */
function renumber(state: PidState, bytes: Buffer, at: number): void {
  const counter = readContinuityCounter(bytes, at)
  if (state.counterShift === undefined) {
    // 2.4.3.3: a packet without payload repeats the counter of the previous packet.
    const step = hasPayload(bytes, at) ? 1 : 0
    state.counterShift = state.counter + step - counter
  }
  state.counter = (counter + state.counterShift) & 0x0f
  bytes[at + 3] = (bytes[at + 3]! & 0xf0) | state.counter
}
