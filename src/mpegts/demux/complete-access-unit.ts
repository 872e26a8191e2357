/**
 * Completes access units for players: each starts with an access unit delimiter (ISO/IEC 13818-1 2.14.1, 2.17.1), and
 * key frames have all parameter sets. Missing NAL units are inserted; NAL units that were sent do not change.
 *
 * All access units get a delimiter, not only key frames: after the first delimiter, hls.js appends an access unit
 * without a delimiter to the previous access unit.
 *
 * @module
 */
import { nalRole } from '../../codec/nal-unit.ts'
import type { ParameterSet, VideoCodec } from '../../codec/parameter-sets.ts'
import { totalBytes } from '../../binary/total-bytes.ts'
import { insertIntoPes } from '../mux/pes-packetizer.ts'
import type { VideoPes } from './frame-splitter.ts'

/** Access unit delimiters that permit slices of any type. */
const DELIMITERS: Readonly<Record<VideoCodec, Buffer>> = {
  h264: Buffer.from([0x09, 0xf0]),
  h265: Buffer.from([0x46, 0x01, 0x50]),
}

const START_CODE = Buffer.from([0, 0, 0, 1])

/**
 * Inserts a missing delimiter and the given parameter sets.
 *
 * @param pes  PES packet with the start of an access unit
 * @param missing  parameter sets to insert, in this order
 * @returns the completed PES packet; `pes` itself when nothing is missing
 */
export function completeAccessUnit<
  Pes extends Pick<VideoPes, 'chunks' | 'sizeBytes' | 'headerBytes' | 'payload'>,
>(codec: VideoCodec, pes: Pes, missing: readonly ParameterSet[]): Pes {
  const { headerBytes, payload } = pes
  const delimiterEnd = endOfDelimiter(codec, payload)
  const nals = missing.map(({ nal }) => nal)
  if (delimiterEnd === 0) nals.unshift(DELIMITERS[codec])
  if (nals.length === 0) return pes
  const inserted = Buffer.concat(nals.flatMap((nal) => [START_CODE, nal]))
  const chunks = insertIntoPes(pes.chunks, headerBytes + delimiterEnd, inserted)
  const parts = [payload.subarray(0, delimiterEnd), inserted, payload.subarray(delimiterEnd)]
  return { ...pes, chunks, sizeBytes: totalBytes(chunks), payload: Buffer.concat(parts) }
}

/** @returns offset behind the leading delimiter; 0 when the payload starts without a delimiter */
function endOfDelimiter(codec: VideoCodec, payload: Buffer): number {
  let at = 0
  while (payload[at] === 0) at++
  if (at < 2 || payload[at] !== 1) return 0
  const isDelimiter = nalRole(codec, payload[at + 1] ?? 0, payload[at + 2]) === 'delimiter'
  return isDelimiter ? at + 1 + DELIMITERS[codec].length : 0
}
