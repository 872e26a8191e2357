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
}
