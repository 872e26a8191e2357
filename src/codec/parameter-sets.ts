/**
 * Parameter sets (ITU-T H.264 7.4.1.2.1, H.265 7.4.2.4.2), remembered because an encoder may send them only once.
 *
 * @module
 */

import { BitReader } from '../binary/bit-reader.ts'
import { unescapeNal } from './annex-b.ts'
import { readH265CodecString } from './h265-parameter-sets.ts'

export type VideoCodec = 'h264' | 'h265'

/** Kinds of parameter sets; each refers to the one listed before it. */
export type ParameterSetKind = 'vps' | 'sps' | 'pps'

/** A parameter set of a video track. */
export interface ParameterSet {
  readonly kind: ParameterSetKind
  /** Identifier within the kind: a set replaces the previous one of the same kind and id. */
  readonly id: number
  /** NAL unit as sent, with its header. */
  readonly nal: Buffer
}

/**
 * Change by the sets of an access unit: `redefined`, if a PPS came with other content while its SPS stayed, so that no list of
 * sets serves both; `added`, if a PPS is new; `sequence`, if a VPS or SPS is new or has other content.
 */
export type ParameterSetChange = 'sequence' | 'redefined' | 'added'

/** Kinds of parameter sets that a decoder needs, in order: an SPS refers to a VPS, and a PPS to an SPS. */
export const PARAMETER_SET_KINDS: Readonly<Record<VideoCodec, readonly ParameterSetKind[]>> = {
  h264: ['sps', 'pps'],
  h265: ['vps', 'sps', 'pps'],
}

/** Maximum total size of the remembered sets, since a key frame may need all; usually a few hundred bytes. */
const MAX_REMEMBERED_BYTES = 4096

/** Number of bytes of a parameter set of H.264 that hold its id. */
const H264_ID_BYTES = 16

/** Offset of `seq_parameter_set_id` after the NAL header of H.264: profile, constraints and level precede it. */
const SPS_ID_AT = 3

/** Reads the id of a parameter set (H.264 7.3.2.1.1, 7.3.2.2; H.265 7.3.2.1 to 7.3.2.3). */
export function readParameterSet(
  codec: VideoCodec,
  kind: ParameterSetKind,
  nal: Buffer,
): ParameterSet {
  return { kind, id: ID_READERS[codec](kind, nal), nal }
}

const ID_READERS = { h264: readH264Id, h265: readH265Id } as const

function readH264Id(kind: ParameterSetKind, nal: Buffer): number {
  const head = unescapeNal(nal.subarray(1, 1 + H264_ID_BYTES))
  return new BitReader(head.subarray(kind === 'sps' ? SPS_ID_AT : 0)).readUe()
}

function readH265Id(kind: ParameterSetKind, nal: Buffer): number {
  const reader = new BitReader(unescapeNal(nal.subarray(2)))
  if (kind === 'pps') return reader.readUe()
  const videoSetId = reader.readBits(4)
  if (kind === 'vps') return videoSetId
  const maxSubLayersMinus1 = reader.readBits(3)
  reader.skipBits(1) // sps_temporal_id_nesting_flag
  readH265CodecString(reader, maxSubLayersMinus1)
  return reader.readUe()
}

/** Latest parameter sets of a video track: `push` the sets of every access unit in decoding order. */
export class ParameterSets {
  readonly #kinds: readonly ParameterSetKind[]
  /** Sets by kind and id. */
  readonly #sets = new Map<string, ParameterSet>()
  #heldBytes = 0

  constructor(codec: VideoCodec) {
    this.#kinds = PARAMETER_SET_KINDS[codec]
  }

  /** @returns undefined if no set is new, or has other content than before */
  push(sets: readonly ParameterSet[]): ParameterSetChange | undefined {
    // A PPS is parsed with its SPS, so every PPS received before a changed SPS may be invalid.
    if (sets.some((set) => set.kind === 'sps' && this.#changes(set))) this.#forget('pps')
    let change: ParameterSetChange | undefined
    for (const set of sets) {
      if (this.has(set)) continue
      const redefines = this.#changes(set)
      if (!this.#remember(set) || change === 'sequence') continue
      if (set.kind !== 'pps') change = 'sequence'
      else if (redefines) change = 'redefined'
      else change ??= 'added'
    }
    return change
  }

  /**
   * Finds the remembered sets that a decoder needs in addition to the sets of an access unit.
   *
   * @param present  sets of the access unit
   * @returns empty if `present` has a set of every kind, else all remembered sets in the order of their kinds; undefined
   *   while no set of some kind is known
   */
  missingFrom(present: readonly ParameterSet[]): readonly ParameterSet[] | undefined {
    if (this.#kinds.every((kind) => present.some((set) => set.kind === kind))) return []
    const known = [...this.#sets.values()]
    const ordered = this.#kinds.map((kind) => known.filter((set) => set.kind === kind))
    return ordered.every((sets) => sets.length > 0) ? ordered.flat() : undefined
  }

  /** Whether a set with the same content is remembered. */
  has(set: ParameterSet): boolean {
    return this.#sets.get(keyOf(set))?.nal.equals(set.nal) === true
  }

  #changes(set: ParameterSet): boolean {
    return this.#sets.get(keyOf(set))?.nal.equals(set.nal) === false
  }

  #forget(kind: ParameterSetKind): void {
    for (const [key, set] of this.#sets) if (set.kind === kind) this.#remove(key)
  }

  #remember(set: ParameterSet): boolean {
    const key = keyOf(set)
    this.#remove(key)
    if (this.#heldBytes + set.nal.length > MAX_REMEMBERED_BYTES) return false
    this.#sets.set(key, set)
    this.#heldBytes += set.nal.length
    return true
  }

  #remove(key: string): void {
    this.#heldBytes -= this.#sets.get(key)?.nal.length ?? 0
    this.#sets.delete(key)
  }
}

function keyOf({ kind, id }: ParameterSet): string {
  return `${kind} ${id}`
}
