/**
 * Timed ID3 metadata in event messages (ISO/IEC 23009-1 5.10.3.3; "Carriage of ID3 Timed Metadata in CMAF" of AOM):
 *
 *   emsg version 1: | timescale 32 | presentation time 64 | event duration 32 | id 32 | scheme \0 | value \0 | ID3 tag |
 *
 * @module
 */
import { ascii, fullBox, u32, u64 } from './box.ts'
import { VIDEO_TIMESCALE } from './track-clock.ts'

const ID3_SCHEME = 'https://aomedia.org/emsg/ID3'

/** Duration of events that end at an unknown time. */
const UNKNOWN_DURATION = 0xffff_ffff

export interface Id3Event {
  /** Identifies the message within the presentation: the same id is the same message. */
  readonly id: number
  /** Unwrapped, 90 kHz, 0 to 2^53 - 1. */
  readonly ptsTicks: number
  /** Whole ID3 tag. */
  readonly tag: Uint8Array
}

export function encodeId3Event({ id, ptsTicks, tag }: Id3Event): Buffer {
  return fullBox(
    'emsg',
    1,
    0,
    u32(VIDEO_TIMESCALE),
    u64(ptsTicks),
    u32(UNKNOWN_DURATION, id),
    ascii(`${ID3_SCHEME}\0\0`),
    tag,
  )
}
