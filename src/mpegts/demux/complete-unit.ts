/**
 * Pictures as players ask for them: an access unit delimiter first, which transport streams must have (ISO/IEC 13818-1
 * 2.14.1, 2.17.1), and before key frames all parameter sets. What an encoder leaves out is inserted; nothing that it sent
 * is changed.
 *
 * The delimiter goes before all pictures or none: hls.js, once it saw one, takes a picture without for a part of the
 * picture before.
 *
 * @module
 */
import type { ParameterSet, ParameterSetKind } from '../../codec/parameter-sets.ts'
import { PACKET_BYTES, payloadOffset } from '../packet.ts'
import { elementaryBytes, firstBytes } from '../pes.ts'
import { insertIntoPes } from '../mux/pes-packetizer.ts'

export type VideoCodec = 'h264' | 'h265'

/** What a decoder needs, in the order in which it needs it. */
export const PARAMETER_SET_KINDS: Readonly<Record<VideoCodec, readonly ParameterSetKind[]>> = {
  h264: ['sps', 'pps'],
  h265: ['vps', 'sps', 'pps'],
}

/** A delimiter that allows for slices of any type. */
const DELIMITERS: Readonly<Record<VideoCodec, Buffer>> = {
  h264: Buffer.from([0x09, 0xf0]),
  h265: Buffer.from([0x46, 0x01, 0x50]),
}

const START_CODE = Buffer.from([0, 0, 0, 1])

/** Holds the first start code, zeros before it included, and the NAL header. */
const START_BYTES = 16

/**
 * @param chunks  a picture: one PES as whole transport packets
 * @param headerBytes  of its PES header
 * @param missing  parameter sets to insert, in this order
 * @returns the same PES with what was missing; `chunks` itself where nothing was
 */
export function completePicture(
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

/** Where in the elementary stream the delimiter ends that it begins with; 0 where it begins otherwise. */
function endOfDelimiter(codec: VideoCodec, chunks: readonly Buffer[], headerBytes: number): number {
  const head = readStart(chunks, headerBytes)
  let at = 0
  while (head[at] === 0) at++
  if (at < 2 || head[at] !== 1) return 0
  const header = head[at + 1] ?? 0
  const isDelimiter = codec === 'h264' ? (header & 0x1f) === 9 : ((header >> 1) & 0x3f) === 35
  return isDelimiter ? at + 1 + DELIMITERS[codec].length : 0
}

/** The first elementary stream bytes. They lie in the first packet, but for muxers that fill it with something else. */
function readStart(chunks: readonly Buffer[], headerBytes: number): Buffer {
  const [first] = chunks
  if (first === undefined) return START_CODE.subarray(0, 0)
  const at = (payloadOffset(first, 0) ?? PACKET_BYTES) + headerBytes
  return at + START_BYTES <= PACKET_BYTES
    ? first.subarray(at, at + START_BYTES)
    : firstBytes(elementaryBytes(chunks, headerBytes), START_BYTES)
}
