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
export interface UntimedFrame extends Pick<Picture, 'startsOrder' | 'order'> {
  /** Its times as sent; undefined without a PTS. */
  readonly stamp: Times | undefined
  /** Whether bytes were lost: frames may be missing. */
  readonly damaged: boolean
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
  /** DTS of the latest stamp pushed, the number of frames since, and whether bytes of one were lost. */
  #stampTicks: number | undefined
  #framesSince = 0
  #hasLoss = false
  /** Order of the latest frame pushed. */
  #pushedOrder: number | undefined
  readonly #usualStep: number
  /** Step of the order from one frame to the next: greatest common divisor of all that were seen in this order. */
  #orderStep: number
  /** DTS of the latest frame released, and that of the latest stamp released, with the number of frames since. */
  #dtsTicks: number | undefined
  #baseTicks = 0
  #framesOfBase = 0
  /** Order of the first frame of this order, and the number of frames released since. */
  #firstOrder: number | undefined
  #framesOfOrder = 0
  /** PTS minus DTS of the latest stamp, and the place of its frame. */
  #stampDelayTicks = 0
  #stampPlace: Place = { order: 0, frames: 0 }

  /** @param orderStep  usual step of the order from one frame to the next */
  constructor(orderStep: number) {
    this.#usualStep = orderStep
    this.#orderStep = orderStep
  }

  /** Frames whose times are not known. */
  get waiting(): readonly Frame[] {
    return this.#waiting
  }

  /** @returns the frames whose times are known now, in decoding order; those before the first stamp never are */
  push(frame: Frame): [Frame, Times][] {
    const { stamp, damaged } = frame
    if (stamp === undefined && this.#stampTicks === undefined) return []
    this.#framesSince++
    this.#hasLoss ||= damaged
    if (stamp !== undefined) this.#measure(stamp)
    this.#stepOrder(frame)
    this.#waiting.push(frame)
    if (this.#waiting.length > MAX_WAITING) this.#frameTicks ??= this.#assumedTicks
    return stamp === undefined && this.#frameTicks === undefined ? [] : this.flush()
  }

  flush(): [Frame, Times][] {
    const frames = this.#waiting
    this.#waiting = []
    return frames.map((frame) => [frame, this.#timesOf(frame)])
  }

  #measure({ dtsTicks }: Times): void {
    const ticks = (dtsTicks - (this.#stampTicks ?? dtsTicks)) / this.#framesSince
    if (ticks > 0 && ticks <= MAX_FRAME_TICKS && !this.#hasLoss) this.#frameTicks = ticks
    this.#stampTicks = dtsTicks
    this.#framesSince = 0
    this.#hasLoss = false
  }

  get #assumedTicks(): number {
    return this.declaredTicks ?? ASSUMED_TICKS
  }

  #stepOrder({ order, startsOrder, damaged }: Frame): void {
    const before = this.#pushedOrder
    this.#pushedOrder = damaged ? undefined : order
    if (startsOrder) this.#orderStep = this.#usualStep
    if (startsOrder || damaged || order === undefined || before === undefined) return
    this.#orderStep = greatestCommonDivisor(this.#orderStep, Math.abs(order - before))
  }

  #timesOf(frame: Frame): Times {
    const { stamp } = frame
    const place = this.#placeOf(frame)
    const frameTicks = this.#frameTicks ?? this.#assumedTicks
    this.#framesOfBase++
    if (stamp !== undefined) {
      this.#baseTicks = stamp.dtsTicks
      this.#framesOfBase = 0
      this.#stampDelayTicks = stamp.ptsTicks - stamp.dtsTicks
      this.#stampPlace = place
    }
    const ticks = this.#baseTicks + this.#framesOfBase * frameTicks
    const framesLate = this.#framesLate(place) - this.#framesLate(this.#stampPlace)
    const ptsTicks = Math.round(ticks + this.#stampDelayTicks + framesLate * frameTicks)
    const nextTicks = (this.#dtsTicks ?? -Infinity) + 1
    const dtsTicks = Math.floor(ticks)
    // What has drifted ahead waits for the stamps; further back is a jump.
    const isDrift = dtsTicks < nextTicks && nextTicks - dtsTicks <= MAX_FRAME_TICKS
    this.#dtsTicks = isDrift ? nextTicks : dtsTicks
    return { ptsTicks: Math.max(ptsTicks, this.#dtsTicks), dtsTicks: this.#dtsTicks }
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
