/**
 * Frames of a track in decoding order, and the figures that the rules need of them.
 *
 * @module
 */
import type { InspectedTrack } from './media-facts.ts'

export interface Frame {
  readonly ptsTicks: number
  readonly dtsTicks: number
  /** Undefined where only the next frame defines it. */
  readonly durationTicks: number | undefined
  readonly isKey: boolean
}

/** Maximum number of frames that are read of a track; a minute of AAC has 2,813. */
export const MAX_LISTED_FRAMES = 20_000

type FrameFigures = Pick<
  InspectedTrack,
  | 'frames'
  | 'startSec'
  | 'endSec'
  | 'firstDecodeSec'
  | 'nextDecodeSec'
  | 'longestFrameSec'
  | 'keyFrames'
  | 'startsWithKeyFrame'
>

/**
 * @param ticksPerSec  of the frames
 * @param nominalSec  duration of a frame where only one is present; 0 if unknown
 */
export function measureFrames(
  frames: readonly Frame[],
  ticksPerSec: number,
  nominalSec = 0,
): FrameFigures {
  const { steps, usualTicks = nominalSec * ticksPerSec } = measureSteps(frames)
  let start = Number.POSITIVE_INFINITY
  let end = Number.NEGATIVE_INFINITY
  let longest = 0
  let keyFrames = 0
  for (const [index, { ptsTicks, durationTicks, isKey }] of frames.entries()) {
    start = Math.min(start, ptsTicks)
    end = Math.max(end, ptsTicks + (durationTicks ?? usualTicks))
    longest = Math.max(longest, durationTicks ?? steps[index] ?? usualTicks)
    if (isKey) keyFrames++
  }
  const first = frames[0]
  const last = frames.at(-1)
  const next = last === undefined ? 0 : last.dtsTicks + (last.durationTicks ?? usualTicks)
  const seconds = (ticks: number) => (first === undefined ? Number.NaN : ticks / ticksPerSec)
  return {
    frames: frames.length,
    startSec: seconds(start),
    endSec: seconds(end),
    firstDecodeSec: seconds(first?.dtsTicks ?? 0),
    nextDecodeSec: seconds(next),
    longestFrameSec: longest / ticksPerSec,
    keyFrames,
    startsWithKeyFrame: first?.isKey === true,
  }
}

/** @returns frames per second of a usual frame, to three decimals; undefined if unknown */
export function measureFrameRate(frames: readonly Frame[], ticksPerSec: number) {
  const { usualTicks } = measureSteps(frames)
  return usualTicks && Math.round((ticksPerSec / usualTicks) * 1000) / 1000
}

/** Steps of the DTS, and the median of those forward. */
function measureSteps(frames: readonly Frame[]) {
  const steps = frames.slice(1).map(({ dtsTicks }, index) => dtsTicks - frames[index]!.dtsTicks)
  const forward = steps.filter((step) => step > 0).toSorted((a, b) => a - b)
  return { steps, usualTicks: forward[Math.floor(forward.length / 2)] }
}
