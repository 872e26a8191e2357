/**
 * Video access units as samples (ISO/IEC 14496-15 5.3.2, 5.4.1, 8.3.2, 8.4.1): a length of four bytes before each NAL
 * unit instead of a start code. Parameter sets are in the init segment (`avc1`, `hvc1`); they and access unit
 * delimiters are taken out, all other NAL units stay, SEI included.
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
}

/** Last NAL unit of an access unit, with which the next PES packet of the frame may go on. */
interface LastNal {
  readonly header: Uint8Array
  /** Number of its bytes so far. */
  readonly sizeBytes: number
  /** Bytes behind it, see `nalUnits`. */
  readonly rest: Uint8Array
}

const isKept = (role: NalRole) => !isParameterSet(role) && role !== 'delimiter'

/** @returns copy of the header of a NAL unit, which does not end in a zero byte (H.264 7.3.1, H.265 7.3.1.2) */
function headerOf([first, next]: readonly Uint8Array[], codec: VideoCodec): Uint8Array {
  const second = codec === 'h265' ? (first![1] ?? next?.[0]) : undefined
  return second === undefined ? Uint8Array.of(first![0]!) : Uint8Array.of(first![0]!, second)
}

/** Inputs: `push` every access unit of a timeline in decoding order. */
export class VideoSamples {
  readonly stats: SampleStats
  readonly #codec: VideoCodec
  readonly #clock: VideoClock
  readonly #formats: VideoFormatCollector
  /** Whether the latest access unit that starts a frame became a sample. */
  #hasSample = false
  #last: LastNal | undefined

  /** @param stats  to count in; default: counters of its own */
  constructor(codec: VideoCodec, stats = noSampleStats()) {
    this.stats = stats
    this.#codec = codec
    this.#clock = new VideoClock(stats)
    this.#formats = new VideoFormatCollector(codec)
  }

  /**
   * @returns the sample; undefined when it is dropped: before the first sync sample with all parameter sets, without a
   *   NAL unit or with too many, with times that no sample can express, or as the continuation of one that was dropped
   */
  push({ chunks, ptsTicks, dtsTicks, startsFrame, damaged }: AccessUnit): VideoSample | undefined {
    if (startsFrame || damaged) this.#last = undefined
    const split = this.#split(chunks)
    if (split === undefined) {
      this.stats.dropped++
      this.#hasSample = false
      return undefined
    }
    const { sets, sync, pieces, sizeBytes, grownNal } = split
    if (!damaged) this.#formats.push(sets)
    const isSync = startsFrame && sync && !damaged
    if (isSync) this.#formats.apply()
    const { format } = this.#formats
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

  /** @returns undefined for more NAL units than an access unit has */
  #split(chunks: Iterable<Uint8Array>) {
    const sets: ParameterSet[] = []
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
        if (tailBytes === 0 || !isKept(role)) continue
        grownNal = { tailBytes, nalBytes: lastBytes }
        pieces.push(...nal.slice(1))
        sizeBytes += tailBytes
        continue
      }
      if (isParameterSet(role) && nalBytes < MAX_HEAD_BYTES) {
        this.stats.parameterSets++
        sets.push(readParameterSet(this.#codec, role, Buffer.concat(nal)))
      }
      if (!isKept(role)) continue
      sync ||= role === 'sync'
      pieces.push(u32(nalBytes), ...nal)
      sizeBytes += LENGTH_BYTES + nalBytes
    }
    this.#last = lastNal && {
      header: headerOf(lastNal, this.#codec),
      sizeBytes: lastBytes,
      rest: next.value,
    }
    return { sets, sync, pieces, sizeBytes, grownNal }
  }

  #roleOf([first, next]: readonly Uint8Array[]): NalRole {
    return nalRole(this.#codec, first![0]!, first![1] ?? next?.[0])
  }
}
