/**
 * SRT message numbers (draft-sharabayko-srt 3.1): a 26-bit counter that wraps from its maximum to 1. Zero marks packets
 * without a message, such as FEC packets.
 *
 * @module
 */

export const MAX_MESSAGE_NUMBER = 0x03ffffff

/** Message number after `message`. */
export function nextMessageNumber(message: number): number {
  return message === MAX_MESSAGE_NUMBER ? 1 : message + 1
}
