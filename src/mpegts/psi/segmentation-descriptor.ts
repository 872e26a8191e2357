/**
 * Segmentation descriptors of splice information: starts and ends of program parts (ANSI/SCTE 35 10.3.3).
 *
 *   | tag 02 8 | length 8 | identifier "CUEI" 32 | event id 32 | cancel 1 | reserved 7 |
 *   | whole program 1 | has duration 1 | unrestricted 1 | restrictions 5 |
 *   | component count 8 | { tag 8 | reserved 7 | PTS offset 33 } … |   if not of the whole program
 *   | duration 40 |                                                    if has duration
 *   | UPID type 8 | UPID length 8 | UPID … | type id 8 | segment number 8 | segments expected 8 |
 *
 * @module
 */
import { BitReader } from '../../binary/bit-reader.ts'

/** A segmentation descriptor (SCTE 35 10.3.3). */
export interface Segmentation {
  /** `segmentation_event_id`; the same at the start and the end of a segmentation event. */
  readonly eventId: number
  /** Whether the section cancels the event with this id; the other fields are then empty or 0. */
  readonly canceled: boolean
  /** `segmentation_type_id` (10.3.3.1); 0 in a cancellation. */
  readonly typeId: number
  /** `segmentation_duration`: 90 kHz, 40 bits. */
  readonly durationTicks?: number
  /** `segmentation_upid_type` */
  readonly upidType: number
  /** `segmentation_upid` as sent: a view. */
  readonly upid: Buffer
}

const SEGMENTATION_TAG = 0x02
const CUE_IDENTIFIER = 0x43554549
const COMPONENT_BITS = 48

const NO_UPID = Buffer.alloc(0)

/**
 * @param descriptors  descriptor loop of a splice information section
 * @returns valid segmentation descriptors in order; undefined when the lengths do not add up to the loop
 */
export function decodeSegmentations(descriptors: Buffer): Segmentation[] | undefined {
  const segmentations: Segmentation[] = []
  let at = 0
  while (at + 2 <= descriptors.length) {
    const end = at + 2 + descriptors[at + 1]!
    if (end > descriptors.length) return undefined
    if (descriptors[at] === SEGMENTATION_TAG) {
      const segmentation = decodeSegmentation(descriptors.subarray(at + 2, end))
      if (segmentation !== undefined) segmentations.push(segmentation)
    }
    at = end
  }
  return at === descriptors.length ? segmentations : undefined
}

function decodeSegmentation(bytes: Buffer): Segmentation | undefined {
  const reader = new BitReader(bytes)
  const identifier = reader.readBits(32)
  const eventId = reader.readBits(32)
  const canceled = reader.readFlag()
  reader.skipBits(7)
  if (reader.overrun || identifier !== CUE_IDENTIFIER) return undefined
  if (canceled) return { eventId, canceled, typeId: 0, upidType: 0, upid: NO_UPID }
  const isOfProgram = reader.readFlag()
  const hasDuration = reader.readFlag()
  reader.skipBits(6)
  if (!isOfProgram) reader.skipBits(reader.readBits(8) * COMPONENT_BITS)
  const durationTicks = hasDuration ? reader.readBits(8) * 2 ** 32 + reader.readBits(32) : undefined
  const upidType = reader.readBits(8)
  const upidBytes = reader.readBits(8)
  const upidAt = reader.position / 8
  reader.skipBits(upidBytes * 8)
  const typeId = reader.readBits(8)
  reader.skipBits(16)
  if (reader.overrun) return undefined
  return {
    eventId,
    canceled,
    typeId,
    upidType,
    ...(durationTicks !== undefined && { durationTicks }),
    upid: bytes.subarray(upidAt, upidAt + upidBytes),
  }
}
