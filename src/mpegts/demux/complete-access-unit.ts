/**
 * Completes access units for players: each starts with an access unit delimiter (ISO/IEC 13818-1 2.14.1, 2.17.1), and
 * key frames have all parameter sets. Missing NAL units are inserted; NAL units that were sent do not change.
 *
 * All access units get a delimiter, not only key frames: after the first delimiter, hls.js appends an access unit
 * without a delimiter to the previous access unit.
 *
 * @module
 */
import type { ParameterSet, VideoCodec } from '../../codec/parameter-sets.ts'
import { PACKET_BYTES, payloadOffset } from '../packet.ts'
import { elementaryBytes, firstBytes } from '../pes.ts'
import { insertIntoPes } from '../mux/pes-packetizer.ts'

/** Access unit delimiters that permit slices of any type. */
const DELIMITERS: Readonly<Record<VideoCodec, Buffer>> = {
  h264: Buffer.from([0x09, 0xf0]),
  h265: Buffer.from([0x46, 0x01, 0x50]),
}

const START_CODE = Buffer.from([0, 0, 0, 1])

/** Number of bytes searched for a leading delimiter: zero bytes, start code and NAL header. */
const START_BYTES = 16

/**
 * Inserts a missing delimiter and the given parameter sets.
 *
 * @param chunks  PES packet with the start of an access unit, as whole transport packets
 * @param headerBytes  size of its PES header
 * @param missing  parameter sets to insert, in this order
 * @returns the completed PES packet; `chunks` itself when nothing is missing
 */
export function completeAccessUnit(
  codec: VideoCodec,
  chunks: readonly Buffer[],
  headerBytes: number,
  missing: readonly ParameterSet[],
): readonly Buffer[] {
  const delimiterEnd = endOfDelimiter(codec, chunks, headerBytes)
  const nals = missing.map(({ nal }) => nal)
  if (delimiterEnd === 0) nals.unshift(DELIMITERS[codec])
  if (nals.length === 0) return chunks
  const inserted = Buffer.concat(nals.flatMap((nal) => [START_CODE, nal]))
  return insertIntoPes(chunks, headerBytes + delimiterEnd, inserted)
}

/** @returns offset in the PES payload behind the leading delimiter; 0 when the payload starts without a delimiter */
function endOfDelimiter(codec: VideoCodec, chunks: readonly Buffer[], headerBytes: number): number {
  const head = readStart(chunks, headerBytes)
  let at = 0
  while (head[at] === 0) at++
  if (at < 2 || head[at] !== 1) return 0
  const header = head[at + 1] ?? 0
  const isDelimiter = codec === 'h264' ? (header & 0x1f) === 9 : ((header >> 1) & 0x3f) === 35
  return isDelimiter ? at + 1 + DELIMITERS[codec].length : 0
}

/** @returns the first bytes of the PES payload, `START_BYTES` if it has as many; a copy if they span packets */
function readStart(chunks: readonly Buffer[], headerBytes: number): Buffer {
  const [first] = chunks
  if (first === undefined) return START_CODE.subarray(0, 0)
  const at = (payloadOffset(first, 0) ?? PACKET_BYTES) + headerBytes
  return at + START_BYTES <= PACKET_BYTES
    ? first.subarray(at, at + START_BYTES)
    : firstBytes(elementaryBytes(chunks, headerBytes), START_BYTES)
}
