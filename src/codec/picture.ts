/**
 * Coded pictures as their first slices tell them, common to H.264 and H.265.
 *
 * @module
 */

export interface Picture {
  /** False for the second field of a frame. */
  readonly startsFrame: boolean
  /** Whether the order of presentation begins anew with it. */
  readonly startsOrder: boolean
  /** Place in the order of presentation (PicOrderCnt); undefined where pictures are presented as they are decoded. */
  readonly order: number | undefined
  /** Whether the picture parameter set that its slices refer to is known. */
  readonly hasSet: boolean
}

/** Order of presentation, of which slices have the least significant bits alone (H.264 8.2.1.1, H.265 8.3.1). */
export class PictureOrder {
  /** Most and least significant part of the latest picture that others refer to. */
  #high = 0
  #low = 0

  /**
   * @param low  least significant part
   * @param bits  number of its bits
   * @param picture.isReference  whether the order of later pictures is relative to this one
   */
  push(
    low: number,
    bits: number,
    { startsOrder, isReference }: { startsOrder: boolean; isReference: boolean },
  ): number {
    const high = startsOrder ? 0 : this.#nearestHigh(low, 2 ** bits)
    if (isReference || startsOrder) {
      this.#high = high
      this.#low = low
    }
    return high + low
  }

  #nearestHigh(low: number, modulus: number): number {
    const step = low - this.#low
    if (step <= -modulus / 2) return this.#high + modulus
    return step > modulus / 2 ? this.#high - modulus : this.#high
  }
}
