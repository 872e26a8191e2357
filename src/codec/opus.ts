/**
 * Opus in transport streams: packets behind control headers (ETSI TS 103 491 4.3; RFC 6716 3).
 *
 *   | prefix 3FF 11 | start trim 1 | end trim 1 | control extension 1 | reserved 2 | au_size … |
 *   | start trim 16 if present | end trim 16 if present | extension length 8, bytes if present | packet of au_size bytes |
 *
 * `au_size` is the sum of a run of FF bytes and the byte after it.
 *
 * @module
 */

const CONTROL_PREFIX = 0x3ff

/** Samples of 48 kHz in a frame, by `config` / 4 of the table-of-contents byte for SILK and hybrid (RFC 6716 Table 2). */
const SILK_SAMPLES = [480, 960, 1920, 2880] as const
const HYBRID_SAMPLES = [480, 960] as const
const CELT_SAMPLES = [120, 240, 480, 960] as const

/** Maximum duration of a packet: 120 ms (RFC 6716 3.4). */
const MAX_PACKET_SAMPLES = 5760

/** Streams of a packet, and how they make the channels (RFC 7845 5.1.1). */
export interface OpusChannels {
  readonly streams: number
  /** Number of streams with two channels, which come first. */
  readonly coupledStreams: number
  /** Decoded channel of each output channel. */
  readonly channels: readonly number[]
}

/** Layouts of one to eight channels in the order of Vorbis (RFC 7845 5.1.1.2): streams, coupled streams, channels. */
const LAYOUTS: readonly (readonly [number, number, readonly number[]])[] = [
  [1, 0, [0]],
  [1, 1, [0, 1]],
  [2, 1, [0, 2, 1]],
  [2, 2, [0, 1, 2, 3]],
  [3, 2, [0, 4, 1, 2, 3]],
  [4, 2, [0, 4, 1, 2, 3, 5]],
  [4, 3, [0, 4, 1, 2, 3, 5, 6]],
  [5, 3, [0, 6, 1, 2, 3, 4, 5, 7]],
]

/**
 * @param configCode  `channel_config_code` of the Opus descriptor: the number of channels in the order of Vorbis
 * @returns undefined for other layouts: dual mono, and those that the descriptor spells out
 */
export function opusChannels(configCode: number): OpusChannels | undefined {
  const [streams = 0, coupledStreams = 0, channels = []] = LAYOUTS[configCode - 1] ?? []
  return streams === 0 ? undefined : { streams, coupledStreams, channels }
}

/** Opus packet in a PES packet. */
interface OpusPacket {
  /** Offset of the packet's first byte. */
  readonly start: number
  /** Offset behind the packet. */
  readonly end: number
  /** Duration, in samples of 48 kHz. */
  readonly samples: number
}

/** @returns undefined when the bytes are truncated or are no Opus packet with its control header */
export function decodeOpusAccessUnit(bytes: Buffer, at: number): OpusPacket | undefined {
  if (at + 3 > bytes.length || bytes.readUInt16BE(at) >> 5 !== CONTROL_PREFIX) return undefined
  const flags = bytes[at + 1]!
  let sizeBytes = 0
  let next = at + 2
  while (bytes[next] === 0xff) {
    sizeBytes += 255
    next++
  }
  sizeBytes += bytes[next++] ?? 0
  if ((flags & 0x10) !== 0) next += 2
  if ((flags & 0x08) !== 0) next += 2
  if ((flags & 0x04) !== 0) next += 1 + (bytes[next] ?? 0)
  const end = next + sizeBytes
  if (sizeBytes === 0 || end > bytes.length) return undefined
  const samples = countSamples(bytes, next, end)
  return samples === undefined ? undefined : { start: next, end, samples }
}

/** Reads the table-of-contents byte (RFC 6716 3.1) and, with `code` 3, the number of frames behind it. */
function countSamples(bytes: Buffer, start: number, end: number): number | undefined {
  const config = bytes[start]! >> 3
  const code = bytes[start]! & 3
  const samples =
    config < 12
      ? SILK_SAMPLES[config & 3]!
      : config < 16
        ? HYBRID_SAMPLES[config & 1]!
        : CELT_SAMPLES[config & 3]!
  if (code === 3 && start + 1 >= end) return undefined
  const frames = code === 0 ? 1 : code === 3 ? bytes[start + 1]! & 0x3f : 2
  const total = frames * samples
  return total > 0 && total <= MAX_PACKET_SAMPLES ? total : undefined
}
