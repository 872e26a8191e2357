/**
 * Video access units as samples (ISO/IEC 14496-15 5.3.2, 5.4.1, 8.3.2, 8.4.1): a length of four bytes before each NAL
 * unit instead of a start code. Parameter sets are in the init segment (`avc1`, `hvc1`); they and access unit
 * delimiters are taken out, all other NAL units stay, SEI included.
 *
 * Where a PPS is redefined, no init segment has both: the samples have the sets (`avc3`, `hev1`), each sync sample all of them.
 * Until the next sync sample, a PPS that the init segment lacks is in its sample under `avc1` and `hvc1`, too: decoders read it
 * there, and frames that refer to it would else be lost, or decode to other pictures.
 *
 *   | length 32 | NAL unit … | repeated
 *
 * @module
 */
import { totalBytes } from '../binary/total-bytes.ts'
import { MAX_HEAD_BYTES, MAX_NAL_UNITS, nalUnits, START_CODE } from '../codec/annex-b.ts'
import { isParameterSet, nalRole, type NalRole } from '../codec/nal-unit.ts'
import { readParameterSet, type ParameterSet, type VideoCodec } from '../codec/parameter-sets.ts'
import { u32 } from './box.ts'
import {
  LENGTH_BYTES,
  noSampleStats,
  type GrownNal,
  type Sample,
  type SampleStats,
} from './sample.ts'
import { VideoClock } from './track-clock.ts'
import { VideoFormatCollector, type VideoFormat } from './video-format.ts'

type VideoSample = Sample<VideoFormat>

/** Access unit in a byte stream (Annex B). */
interface AccessUnit {
  /** Elementary stream bytes in any pieces. */
  readonly chunks: Iterable<Uint8Array>
  /** Unwrapped, 90 kHz. */
  readonly ptsTicks: number
  readonly dtsTicks: number
  /** Whether it starts a frame; false for a second field, and for later slices of a picture. */
  readonly startsFrame: boolean
  /** Whether bytes were lost: no parameter set is taken from it, and it is no sync sample. */
  readonly damaged: boolean
  /** Whether samples have their parameter sets from the next sync sample on; default false. */
  readonly inBandSets?: boolean
}

/** Parameter set of an access unit, and the number of its other pieces before. */
interface PlacedSet {
  readonly set: ParameterSet
  readonly at: number
}

/** Last NAL unit of an access unit, with which the next PES packet of the frame may go on. */
interface LastNal {
  readonly header: Uint8Array
  /** Whether parameter sets stay in its sample. */
  keepsSets: boolean
  /** Number of its bytes so far. */
  readonly sizeBytes: number
  /** Bytes behind it, see `nalUnits`. */
  readonly rest: Uint8Array
}

const NO_SETS: readonly PlacedSet[] = []

const isKept = (role: NalRole) => !isParameterSet(role) && role !== 'delimiter'

/** @returns copy of the header of a NAL unit, which does not end in a zero byte (H.264 7.3.1, H.265 7.3.1.2) */
function headerOf([first, next]: readonly Uint8Array[], codec: VideoCodec): Uint8Array {
  const second = codec === 'h265' ? (first![1] ?? next?.[0]) : undefined
  return second === undefined ? Uint8Array.of(first![0]!) : Uint8Array.of(first![0]!, second)
}

/** Bytes of a sample. */
interface SampleBytes {
  readonly pieces: readonly Uint8Array[]
  readonly sizeBytes: number
}

function insertSets({ pieces, sizeBytes }: SampleBytes, sets: readonly PlacedSet[]): SampleBytes {
  const inserted = sets.flatMap(({ set, at }, index) => [
    ...pieces.slice(sets[index - 1]?.at ?? 0, at),
    u32(set.nal.length),
    set.nal,
  ])
  const setsBytes = sets.reduce((sum, { set }) => sum + LENGTH_BYTES + set.nal.length, 0)
  return {
    pieces: [...inserted, ...pieces.slice(sets.at(-1)?.at)],
    sizeBytes: sizeBytes + setsBytes,
  }
}

/** Inputs: `push` every access unit of a timeline in decoding order. */
export class VideoSamples {
  readonly stats: SampleStats
  readonly #codec: VideoCodec
  readonly #clock = new VideoClock()
  readonly #formats: VideoFormatCollector
  /** Whether the latest access unit that starts a frame became a sample. */
  #hasSample = false
  #last: LastNal | undefined

  /**
   * @param stats  to count in; default: counters of its own
   * @param earlier  parameter sets of the timeline before, some of which may not be sent again
   */
  constructor(codec: VideoCodec, stats = noSampleStats(), earlier: readonly ParameterSet[] = []) {
    this.stats = stats
    this.#codec = codec
    this.#formats = new VideoFormatCollector(codec, earlier)
  }

  /** Latest parameter sets; undefined while one is missing. */
  get parameterSets(): readonly ParameterSet[] | undefined {
    return this.#formats.parameterSets
  }

  /**
   * @returns the sample; undefined when it is dropped: before the first sync sample with all parameter sets, without a
   *   NAL unit or with too many, with times that no sample can express, or as the continuation of one that was dropped
   */
  push(unit: AccessUnit): VideoSample | undefined {
    const { chunks, ptsTicks, dtsTicks, startsFrame, damaged, inBandSets = false } = unit
    if (startsFrame || damaged) this.#last = undefined
    const split = this.#split(chunks)
    if (split === undefined) {
      this.stats.dropped++
      this.#hasSample = false
      return undefined
    }
    const { sets, sync, grownNal } = split
    if (!damaged) this.#formats.push(sets.map(({ set }) => set))
    const isSync = startsFrame && sync && !damaged
    if (isSync) this.#formats.apply(inBandSets)
    const { format } = this.#formats
    const ownSets = damaged ? NO_SETS : this.#ownSets(sets, isSync)
    if (this.#last !== undefined) this.#last.keepsSets = ownSets === sets
    const { pieces, sizeBytes } = ownSets.length === 0 ? split : insertSets(split, ownSets)
    const isExpressible = format !== undefined && sizeBytes > 0 && (startsFrame || this.#hasSample)
    const times = !isExpressible
      ? undefined
      : startsFrame
        ? this.#clock.push(ptsTicks, dtsTicks)
        : { decodeTicks: 0, compositionOffset: 0 }
    if (startsFrame) this.#hasSample = times !== undefined
    if (format === undefined || times === undefined) {
      this.stats.dropped++
      return undefined
    }
    const place = { sync: isSync, continues: !startsFrame, ...(grownNal && { grownNal }) }
    return { format, chunks: pieces, sizeBytes, ...times, ...place }
  }

  /** @returns parameter sets that its sample has: of a sync sample all, since a decoder may start there */
  #ownSets(sets: readonly PlacedSet[], isSync: boolean): readonly PlacedSet[] {
    if (!this.#formats.areInBand) return NO_SETS
    if (!isSync) return sets
    const all = this.#formats.parameterSets ?? []
    this.stats.parameterSets += all.length
    return all.map((set) => ({ set, at: 0 }))
  }

  /** @returns undefined for more NAL units than an access unit has */
  #split(chunks: Iterable<Uint8Array>) {
    const sets: PlacedSet[] = []
    const pieces: Uint8Array[] = []
    let sync = false
    let sizeBytes = 0
    let grownNal: GrownNal | undefined
    const begun = this.#last
    const begunChunks = begun && [START_CODE, begun.header, begun.rest, ...chunks]
    const nals = nalUnits(begunChunks ?? chunks, this.stats)
    const maxUnits = this.stats.nalUnits + MAX_NAL_UNITS
    let lastNal: readonly Uint8Array[] | undefined
    let lastBytes = 0
    let next = nals.next()
    this.#last = undefined
    for (; next.done !== true; next = nals.next()) {
      if (++this.stats.nalUnits > maxUnits) return undefined
      const nal = next.value
      const nalBytes = totalBytes(nal)
      const role = this.#roleOf(nal)
      lastNal = nal
      lastBytes = nalBytes
      if (begun !== undefined && nal[0] === begun.header) {
        const tailBytes = nalBytes - begun.header.length
        lastBytes = begun.sizeBytes + tailBytes
        const keeps = isParameterSet(role) ? begun.keepsSets : isKept(role)
        if (tailBytes === 0 || !keeps) continue
        grownNal = { tailBytes, nalBytes: lastBytes }
        pieces.push(...nal.slice(1))
        sizeBytes += tailBytes
        continue
      }
      if (isParameterSet(role) && nalBytes < MAX_HEAD_BYTES) {
        this.stats.parameterSets++
        const set = readParameterSet(this.#codec, role, Buffer.concat(nal))
        sets.push({ set, at: pieces.length })
      }
      if (!isKept(role)) continue
      sync ||= role === 'sync'
      pieces.push(u32(nalBytes), ...nal)
      sizeBytes += LENGTH_BYTES + nalBytes
    }
    this.#last = lastNal && {
      header: headerOf(lastNal, this.#codec),
      keepsSets: false,
      sizeBytes: lastBytes,
      rest: next.value,
    }
    return { sets, sync, pieces, sizeBytes, grownNal }
  }

  #roleOf([first, next]: readonly Uint8Array[]): NalRole {
    return nalRole(this.#codec, first![0]!, first![1] ?? next?.[0])
  }
}
