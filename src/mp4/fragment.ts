/**
 * Fragments of a CMAF track (ISO/IEC 23000-19 7.3.2.3; 14496-12 8.8):
 *
 *   styp          at the first fragment of a segment (8.16.2)
 *   emsg          for each event (ISO/IEC 23009-1 5.10.3.3)
 *   moof
 *     mfhd        sequence number (8.8.5)
 *     traf
 *       tfhd      default-base-is-moof, and fields that all samples share (8.8.7)
 *       tfdt      decode time of the first sample, 64 bits (8.8.12)
 *       trun      version 1: signed composition offsets (8.8.8)
 *   mdat          bytes of the samples
 *
 * @module
 */
import { ascii, box, BOX_HEADER_BYTES, boxHeader, fullBox, u32, u32Table, u64 } from './box.ts'
import { encodeId3Event, type Id3Event } from './event-message.ts'
import type { MediaMemory } from './media-memory.ts'
import { LENGTH_BYTES, NON_SYNC_SAMPLE_FLAGS, SYNC_SAMPLE_FLAGS, type Sample } from './sample.ts'

interface FragmentWriterOptions {
  readonly trackId: number
  readonly memory: MediaMemory
  /** Maximum size of the samples of a fragment. */
  readonly maxBytes?: number
}

interface FragmentEnd {
  /** Decode time of the next sample, which ends the last one. */
  readonly untilTicks: number
  /** Whether the fragment is the first of a segment. */
  readonly startsSegment: boolean
  readonly events?: readonly Id3Event[]
  /** Decode time of a fragment that has no sample; undefined: there is no such fragment. */
  readonly emptyTicks?: number
}

export interface Fragment {
  /**
   * The bytes in views of the memory: first the boxes up to the header of `mdat`, then the samples. All belong to the caller
   * and do not change.
   */
  readonly chunks: readonly Buffer[]
  readonly sizeBytes: number
  /** Decode time of the first sample. */
  readonly decodeTicks: number
  /** Sum of the durations of the samples. */
  readonly durationTicks: number
  readonly samples: number
  /** Whether the first sample is a sync sample. */
  readonly independent: boolean
}

/** Fields of `tfhd` (8.8.7.1) and `trun` (8.8.8.1) by their flags. */
const Header = { DURATION: 0x08, FLAGS: 0x20, BASE_IS_MOOF: 0x2_0000 } as const
const Run = { DATA_OFFSET: 0x1, DURATION: 0x100, SIZE: 0x200, FLAGS: 0x400, OFFSET: 0x800 } as const

/** Offset of `data_offset` in `trun`. */
const DATA_OFFSET_AT = 16

/** Default of `maxBytes`: 8 s at 250 Mbit/s. */
const MAX_FRAGMENT_BYTES = 2 ** 28

const MAX_DURATION = 0xffff_ffff

interface WrittenSample {
  readonly decodeTicks: number
  readonly compositionOffset: number
  readonly sync: boolean
  sizeBytes: number
}

/** Inputs: `push` samples of one format in decoding order; `end` a fragment before the sample that begins the next. */
export class FragmentWriter {
  readonly #trackId: number
  readonly #memory: MediaMemory
  readonly #maxBytes: number
  #samples: WrittenSample[] = []
  #mediaBytes = 0
  /** Whether the latest sample is in the open fragment, so that a continuation belongs to it. */
  #hasLatest = false
  /** Number of finished fragments. */
  #sequenceNumber = 0

  constructor({ trackId, memory, maxBytes = MAX_FRAGMENT_BYTES }: FragmentWriterOptions) {
    this.#trackId = trackId
    this.#memory = memory
    this.#maxBytes = maxBytes
  }

  /** Size of the samples of the open fragment. */
  get mediaBytes(): number {
    return this.#mediaBytes
  }

  /** Decode time of the first sample of the open fragment; undefined when it is empty. */
  get decodeTicks(): number | undefined {
    return this.#samples[0]?.decodeTicks
  }

  /**
   * Copies the bytes of the sample to the end of the open fragment.
   *
   * @returns false if it is dropped: beyond `maxBytes`, or the continuation of a sample that is not in the fragment
   */
  push(sample: Sample<unknown>): boolean {
    const { chunks, sizeBytes, decodeTicks, compositionOffset, sync, continues, grownNal } = sample
    const fits = this.#mediaBytes + sizeBytes <= this.#maxBytes
    this.#hasLatest = fits && (!continues || this.#hasLatest)
    if (!this.#hasLatest) return false
    const last = this.#samples.at(-1)
    this.#memory.append(chunks)
    this.#mediaBytes += sizeBytes
    if (grownNal !== undefined) {
      const { tailBytes, nalBytes } = grownNal
      this.#memory.overwrite(sizeBytes - tailBytes + nalBytes + LENGTH_BYTES, u32(nalBytes))
    }
    if (continues && last !== undefined) last.sizeBytes += sizeBytes
    else this.#samples.push({ decodeTicks, compositionOffset, sync, sizeBytes })
    return true
  }

  /** @returns undefined when no sample was pushed, unless `emptyTicks` are given */
  end({ untilTicks, startsSegment, events = [], emptyTicks }: FragmentEnd): Fragment | undefined {
    const samples = this.#samples
    const decodeTicks = samples[0]?.decodeTicks ?? emptyTicks
    if (decodeTicks === undefined) return undefined
    const durations = measureDurations(samples, untilTicks)
    this.#sequenceNumber++
    const head = Buffer.concat([
      ...(startsSegment ? [encodeSegmentType()] : []),
      ...events.map(encodeId3Event),
      this.#encodeMovieFragment(decodeTicks, samples, durations),
      boxHeader('mdat', BOX_HEADER_BYTES + this.#mediaBytes),
    ])
    const sizeBytes = head.length + this.#mediaBytes
    const media = this.#memory.take()
    // A small Buffer of its own would keep the 8 KiB of the pool of Node.js that it is in.
    this.#memory.append([head])
    this.#samples = []
    this.#mediaBytes = 0
    this.#hasLatest = false
    return {
      chunks: [...this.#memory.take(), ...media],
      sizeBytes,
      decodeTicks,
      durationTicks: durations.reduce((sum, duration) => sum + duration, 0),
      samples: samples.length,
      independent: samples[0]?.sync === true,
    }
  }

  #encodeMovieFragment(
    decodeTicks: number,
    samples: readonly WrittenSample[],
    durations: readonly number[],
  ): Buffer {
    const shared = sharedFields(samples, durations)
    const run = encodeTrackRun(samples, durations, shared)
    const moof = box(
      'moof',
      fullBox('mfhd', 0, 0, u32(this.#sequenceNumber)),
      box(
        'traf',
        encodeTrackFragmentHeader(this.#trackId, shared),
        fullBox('tfdt', 1, 0, u64(decodeTicks)),
        run,
      ),
    )
    // The run is the last box; its media begins behind the header of the mdat box.
    const dataOffset = moof.length + BOX_HEADER_BYTES
    moof.writeInt32BE(dataOffset, moof.length - run.length + DATA_OFFSET_AT)
    return moof
  }
}

/** Fields that all samples share, and that `trun` leaves out. */
interface SharedFields {
  readonly duration: number | undefined
  readonly flags: number | undefined
  /** Whether all samples are composed at their decode time. */
  readonly noOffsets: boolean
}

function sharedFields(
  samples: readonly WrittenSample[],
  durations: readonly number[],
): SharedFields {
  const [duration] = durations
  const [first] = samples
  const isSameDuration = durations.every((each) => each === duration)
  const isSameSync = samples.every(({ sync }) => sync === first?.sync)
  return {
    duration: isSameDuration ? duration : undefined,
    flags: isSameSync && first !== undefined ? sampleFlags(first) : undefined,
    noOffsets: samples.every(({ compositionOffset }) => compositionOffset === 0),
  }
}

function encodeTrackFragmentHeader(trackId: number, { duration, flags }: SharedFields): Buffer {
  const fields = [duration, flags].filter((field) => field !== undefined)
  const present =
    (duration === undefined ? 0 : Header.DURATION) | (flags === undefined ? 0 : Header.FLAGS)
  return fullBox('tfhd', 0, Header.BASE_IS_MOOF | present, u32(trackId, ...fields))
}

/** @returns `trun` with a data offset of 0 */
function encodeTrackRun(
  samples: readonly WrittenSample[],
  durations: readonly number[],
  { duration, flags, noOffsets }: SharedFields,
): Buffer {
  const present =
    Run.DATA_OFFSET |
    Run.SIZE |
    (duration === undefined ? Run.DURATION : 0) |
    (flags === undefined ? Run.FLAGS : 0) |
    (noOffsets ? 0 : Run.OFFSET)
  const fields = samples.flatMap((sample, index) => [
    ...(duration === undefined ? [durations[index]!] : []),
    sample.sizeBytes,
    ...(flags === undefined ? [sampleFlags(sample)] : []),
    ...(noOffsets ? [] : [sample.compositionOffset]),
  ])
  return fullBox('trun', 1, present, u32(samples.length, 0), u32Table(fields))
}

/** Durations up to the next decode time; 1 tick at least, should `untilTicks` not be later than the last sample. */
function measureDurations(samples: readonly WrittenSample[], untilTicks: number): number[] {
  return samples.map(({ decodeTicks }, index) => {
    const end = samples[index + 1]?.decodeTicks ?? untilTicks
    return Math.min(Math.max(1, end - decodeTicks), MAX_DURATION)
  })
}

function sampleFlags({ sync }: Pick<WrittenSample, 'sync'>): number {
  return sync ? SYNC_SAMPLE_FLAGS : NON_SYNC_SAMPLE_FLAGS
}

/** Brands of a segment (23000-19 7.3.3.1): it begins with a CMAF fragment. */
function encodeSegmentType(): Buffer {
  return box('styp', ascii('cmfs'), u32(0), ascii('iso6'), ascii('cmfs'), ascii('msdh'))
}
