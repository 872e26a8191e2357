/**
 * Extension blocks at the end of a CONCLUSION handshake (draft-sharabayko-srt 3.2.1.1 to 3.2.1.4).
 *
 *   |   extension type   | length (4-byte words) |
 *   |               contents                     |
 *
 * HSREQ and HSRSP:
 *
 *   |   0x00   |  major   |  minor   |  patch    |
 *   |                  flags                     |
 *   |  receiver delay (ms) | sender delay (ms)   |
 *
 * GROUP, of a member of a socket group (libsrt `srtcore/handshake.h`; the draft leaves it out):
 *
 *   |                  group id                  |
 *   |   type   |  flags   |        weight        |
 *
 * Text (StreamID, CONGESTION, FILTER) is padded with zeros to whole words, and the bytes of each word are reversed.
 *
 * @module
 */
import { ExtensionFlag, HANDSHAKE_BYTES } from './handshake.ts'
import { MAX_STREAM_ID_BYTES } from './limits.ts'
import { HEADER_BYTES } from './packet.ts'

export const ExtensionType = {
  HSREQ: 1,
  HSRSP: 2,
  KMREQ: 3,
  KMRSP: 4,
  STREAM_ID: 5,
  CONGESTION: 6,
  FILTER: 7,
  GROUP: 8,
} as const

/** Flags of HSREQ and HSRSP (draft Table 6; FILTER_CAPABLE is libsrt's, srtcore/handshake.h). */
export const HsFlag = {
  TSBPD_SENDER: 0x01,
  TSBPD_RECEIVER: 0x02,
  CRYPT: 0x04,
  TLPKTDROP: 0x08,
  PERIODIC_NAK: 0x10,
  RETRANSMIT_FLAG: 0x20,
  STREAM: 0x40,
  FILTER_CAPABLE: 0x80,
} as const

/** Flags of a live endpoint with every feature; libsrt sends the same, encrypted or not. */
export const LIVE_FLAGS = 0xbf

/** Version announced to peers: libsrt 1.5.1, whose behavior this implementation follows. */
const SRT_VERSION = 0x010501

const MAX_CONGESTION_BYTES = 16
const MAX_FILTER_BYTES = 64

const HS_EXTENSION_BYTES = 12
const GROUP_EXTENSION_BYTES = 8
const MAX_BLOCKS = 16

/** HSREQ or HSRSP. */
export interface HsExtension {
  /** `major << 16 | minor << 8 | patch` */
  readonly srtVersion: number
  readonly flags: number
  /** Receive latency of the packet's sender. */
  readonly receiverDelayMs: number
  /** Receive latency that the packet's sender proposes to its peer. */
  readonly senderDelayMs: number
}

/** Types of socket groups (libsrt `SRT_GROUP_TYPE`). */
export const GroupType = { BROADCAST: 1, BACKUP: 2 } as const

/** Bit of an id that says that it is of a group, not of a socket. */
export const GROUP_ID_BIT = 0x40000000

/** Membership in a socket group (bonding). */
export interface GroupExtension {
  /** Id that the sender of the packet has given its group. */
  readonly groupId: number
  /** A `GroupType` or an unknown type. */
  readonly type: number
  /** Priority of a line in a backup group: the highest is used. */
  readonly weight: number
}

export interface Extensions {
  /** HSREQ of a request, HSRSP of a response. */
  readonly hs?: HsExtension
  readonly streamId?: string
  readonly congestion?: string
  /** Packet filter configuration as encoded: a response repeats it byte for byte. */
  readonly filter?: Buffer
  /** KMREQ of a request, KMRSP of a response. */
  readonly keyMaterial?: Buffer
  readonly group?: GroupExtension
}

/**
 * Decodes the blocks after a handshake; unknown types are skipped.
 *
 * @returns undefined if there are more than 16 blocks, a type repeats, a block has a wrong size or overruns the
 *   datagram, or bytes remain after the last block
 */
export function decodeExtensions(datagram: Buffer): Extensions | undefined {
  const blocks = splitBlocks(datagram)
  if (blocks === undefined) return undefined
  const hs = blocks.get(ExtensionType.HSREQ) ?? blocks.get(ExtensionType.HSRSP)
  const streamId = blocks.get(ExtensionType.STREAM_ID)
  const congestion = blocks.get(ExtensionType.CONGESTION)
  const filter = blocks.get(ExtensionType.FILTER)
  const keyMaterial = blocks.get(ExtensionType.KMREQ) ?? blocks.get(ExtensionType.KMRSP)
  const group = blocks.get(ExtensionType.GROUP)
  if (hs !== undefined && hs.length !== HS_EXTENSION_BYTES) return undefined
  if (streamId !== undefined && streamId.length > MAX_STREAM_ID_BYTES) return undefined
  if (congestion !== undefined && congestion.length > MAX_CONGESTION_BYTES) return undefined
  if (filter !== undefined && filter.length > MAX_FILTER_BYTES) return undefined
  if (group !== undefined && group.length < GROUP_EXTENSION_BYTES) return undefined
  return {
    ...(hs && { hs: decodeHsExtension(hs) }),
    ...(streamId && { streamId: decodeText(streamId) }),
    ...(congestion && { congestion: decodeText(congestion) }),
    ...(filter && { filter }),
    ...(keyMaterial && { keyMaterial }),
    ...(group && { group: decodeGroupExtension(group) }),
  }
}

/** @returns contents of the blocks by extension type; undefined if the blocks are invalid, see `decodeExtensions` */
function splitBlocks(datagram: Buffer): Map<number, Buffer> | undefined {
  const blocks = new Map<number, Buffer>()
  let offset = HEADER_BYTES + HANDSHAKE_BYTES
  while (offset < datagram.length) {
    if (blocks.size === MAX_BLOCKS || datagram.length - offset < 4) return undefined
    const type = datagram.readUInt16BE(offset)
    const end = offset + 4 + datagram.readUInt16BE(offset + 2) * 4
    if (end > datagram.length || blocks.has(type)) return undefined
    blocks.set(type, datagram.subarray(offset + 4, end))
    offset = end
  }
  return blocks
}

function decodeHsExtension(contents: Buffer): HsExtension {
  return {
    srtVersion: contents.readUInt32BE(0),
    flags: contents.readUInt32BE(4),
    receiverDelayMs: contents.readUInt16BE(8),
    senderDelayMs: contents.readUInt16BE(10),
  }
}

function decodeGroupExtension(contents: Buffer): GroupExtension {
  return {
    groupId: contents.readUInt32BE(0),
    type: contents.readUInt8(4),
    weight: contents.readUInt16BE(6),
  }
}

function decodeText(contents: Buffer): string {
  const bytes = Buffer.from(contents).swap32()
  let end = bytes.length
  while (end > 0 && bytes[end - 1] === 0) end--
  return bytes.toString('utf8', 0, end)
}

/**
 * Encodes an HSREQ or HSRSP block.
 *
 * @param hs  `srtVersion` defaults to `SRT_VERSION`, `flags` to `LIVE_FLAGS`
 */
export function encodeHsExtension(
  type: typeof ExtensionType.HSREQ | typeof ExtensionType.HSRSP,
  hs: Omit<HsExtension, 'srtVersion' | 'flags'> & Partial<HsExtension>,
): Buffer {
  const contents = Buffer.allocUnsafe(HS_EXTENSION_BYTES)
  contents.writeUInt32BE(hs.srtVersion ?? SRT_VERSION, 0)
  contents.writeUInt32BE(hs.flags ?? LIVE_FLAGS, 4)
  contents.writeUInt16BE(hs.receiverDelayMs, 8)
  contents.writeUInt16BE(hs.senderDelayMs, 10)
  return encodeBlock(type, contents)
}

/** Encodes a GROUP block, with no flag set. */
export function encodeGroupExtension({ groupId, type, weight }: GroupExtension): Buffer {
  const contents = Buffer.alloc(GROUP_EXTENSION_BYTES)
  contents.writeUInt32BE(groupId, 0)
  contents.writeUInt8(type, 4)
  contents.writeUInt16BE(weight, 6)
  return encodeBlock(ExtensionType.GROUP, contents)
}

/** Encodes a StreamID block. */
export function encodeStreamIdExtension(streamId: string): Buffer {
  const bytes = Buffer.from(streamId)
  const padded = Buffer.alloc(Math.ceil(bytes.length / 4) * 4)
  padded.set(bytes)
  return encodeBlock(ExtensionType.STREAM_ID, padded.swap32())
}

/** @param contents  length is a multiple of 4 bytes */
export function encodeBlock(type: number, contents: Buffer): Buffer {
  const block = Buffer.allocUnsafe(4 + contents.length)
  block.writeUInt16BE(type, 0)
  block.writeUInt16BE(contents.length / 4, 2)
  block.set(contents, 4)
  return block
}

/** Extension field of a conclusion: one `ExtensionFlag` for each kind of block that follows. */
export function extensionFieldOf(blocks: readonly Buffer[]): number {
  return blocks.reduce((field, block) => field | flagOf(block.readUInt16BE(0)), 0)
}

function flagOf(type: number): number {
  switch (type) {
    case ExtensionType.HSREQ:
    case ExtensionType.HSRSP:
      return ExtensionFlag.HSREQ
    case ExtensionType.KMREQ:
    case ExtensionType.KMRSP:
      return ExtensionFlag.KMREQ
    default:
      return ExtensionFlag.CONFIG
  }
}

/** Formats `0x010501` as `1.5.1`. */
export function formatSrtVersion(srtVersion: number): string {
  return `${srtVersion >>> 16}.${(srtVersion >>> 8) & 0xff}.${srtVersion & 0xff}`
}
