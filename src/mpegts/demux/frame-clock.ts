/**
 * Times of video frames, not all of which have a PTS: ISO/IEC 13818-1 2.4.3.7 gives it to the first access unit that
 * begins in a PES packet, and 2.7.4 asks for one each 0.7 s.
 *
 * @module
 */
import type { Picture } from '../../codec/picture.ts'
import { TICKS_PER_SEC, type Times } from '../timestamps.ts'

/** Most frames that wait for the second stamp, which tells how long they are. */
const MAX_WAITING = 64

/** Duration of a frame where none was counted or declared. */
const ASSUMED_TICKS = TICKS_PER_SEC / 25

/** Longest duration of a frame that counts: longer ones are pauses or jumps. */
const MAX_FRAME_TICKS = TICKS_PER_SEC

/** Frame in decoding order. */
export interface UntimedFrame extends Omit<Picture, 'startsFrame'> {
  /** Its times as sent; undefined without a PTS. */
  readonly stamp: Times | undefined
}

/**
 * Frames without a PTS go on from the frame before by the duration of a frame, which is counted between two stamps, and are
 * presented in their order. The next stamp corrects what has drifted.
 *
 * Inputs: `push` every frame, `flush` after the last.
 */
export class FrameClock<Frame extends UntimedFrame> {
  /** Duration of a frame as declared, which counts as long as none was counted. */
  declaredTicks: number | undefined
  #waiting: Frame[] = []
  /** Duration of a frame; undefined until it is known. */
  #frameTicks: number | undefined
  /** DTS of the latest stamp, and the number of frames since. */
  #stampTicks: number | undefined
  #framesSince = 0
  /** Order of the latest frame pushed. */
  #pushedOrder: number | undefined
  /** Step of the order from one frame to the next: greatest common divisor of all that were seen. */
  #orderStep: number
  /** DTS of the latest frame released. */
  #dtsTicks: number | undefined
  /** Order of the first frame of this order, and the number of frames released since. */
  #firstOrder: number | undefined
  #framesOfOrder = 0
  /** PTS minus DTS of the latest stamp, and the place of its frame. */
  #stampDelayTicks = 0
  #stampPlace: Place = { order: 0, frames: 0 }

  /** @param orderStep  usual step of the order from one frame to the next: 2 in H.264, which counts fields, 1 in H.265 */
  constructor(orderStep: number) {
    this.#orderStep = orderStep
  }

  /** Frames whose times are not known. */
  get waiting(): readonly Frame[] {
    return this.#waiting
  }

  /** @returns the frames whose times are known now, in decoding order; those before the first stamp never are */
  push(frame: Frame): [Frame, Times][] {
    const { stamp } = frame
    if (stamp === undefined && this.#stampTicks === undefined) return []
    this.#framesSince++
    if (stamp !== undefined) this.#measure(stamp)
    this.#stepOrder(frame)
    this.#waiting.push(frame)
    const mustWait = stamp === undefined && this.#frameTicks === undefined
    return mustWait && this.#waiting.length <= MAX_WAITING ? [] : this.flush()
  }

  flush(): [Frame, Times][] {
    const frames = this.#waiting
    this.#waiting = []
    return frames.map((frame) => [frame, this.#timesOf(frame)])
  }

  #measure({ dtsTicks }: Times): void {
    const ticks = (dtsTicks - (this.#stampTicks ?? dtsTicks)) / this.#framesSince
    if (ticks > 0 && ticks <= MAX_FRAME_TICKS) this.#frameTicks = ticks
    this.#stampTicks = dtsTicks
    this.#framesSince = 0
  }

  #stepOrder({ order, startsOrder }: Frame): void {
    const before = this.#pushedOrder
    this.#pushedOrder = order
    if (startsOrder || order === undefined || before === undefined) return
    this.#orderStep = greatestCommonDivisor(this.#orderStep, Math.abs(order - before))
  }

  #timesOf(frame: Frame): Times {
    const { stamp } = frame
    const place = this.#placeOf(frame)
    const before = this.#dtsTicks
    if (stamp === undefined) {
      const frameTicks = this.#frameTicks ?? this.declaredTicks ?? ASSUMED_TICKS
      this.#dtsTicks = before! + frameTicks
      const framesLate = this.#framesLate(place) - this.#framesLate(this.#stampPlace)
      const delayTicks = this.#stampDelayTicks + framesLate * frameTicks
      const dtsTicks = Math.floor(this.#dtsTicks)
      return { ptsTicks: Math.max(dtsTicks, Math.round(this.#dtsTicks + delayTicks)), dtsTicks }
    }
    this.#stampDelayTicks = stamp.ptsTicks - stamp.dtsTicks
    this.#stampPlace = place
    const driftTicks = before === undefined ? 0 : Math.floor(before) + 1 - stamp.dtsTicks
    const isDrift = driftTicks > 0 && driftTicks <= MAX_FRAME_TICKS
    this.#dtsTicks = stamp.dtsTicks + (isDrift ? driftTicks : 0)
    return { ptsTicks: Math.max(stamp.ptsTicks, this.#dtsTicks), dtsTicks: this.#dtsTicks }
  }

  #placeOf({ order, startsOrder }: Frame): Place {
    if (startsOrder || order === undefined || this.#firstOrder === undefined) {
      this.#firstOrder = order
      this.#framesOfOrder = 0
    } else this.#framesOfOrder++
    return { order: (order ?? 0) - (this.#firstOrder ?? 0), frames: this.#framesOfOrder }
  }

  /** @returns number of frames by which a frame is presented later than it is decoded */
  #framesLate({ order, frames }: Place): number {
    return order / this.#orderStep - frames
  }
}

/** Place of a frame behind the first one of its order: in presentation, and in decoding. */
interface Place {
  readonly order: number
  readonly frames: number
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b)
}
