/**
 * 26-bit counter that wraps from its largest value to 1: SRT message numbers (draft-sharabayko-srt 3.1).
 * Zero is never counted to; it marks packets that carry no message, such as those of a packet filter.
 *
 * @module
 */

export const MAX_MESSAGE_NUMBER = 0x03ffffff

/** The number after `message`. */
export function nextMessageNumber(message: number): number {
  return message === MAX_MESSAGE_NUMBER ? 1 : message + 1
}
