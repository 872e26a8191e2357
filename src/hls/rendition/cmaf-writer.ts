/**
 * Segments and parts of a CMAF track (ISO/IEC 23000-19 7.3): a part is a fragment, a segment its parts in sequence.
 *
 * ```
 * PES packet ─► samples ─► held until their part ─► FragmentWriter ─► part
 * ```
 *
 * Audio frames of one PES packet may go to two parts. Decode times are continuous within a timeline: a fragment begins
 * where the one before it has ended, even if the frame that was expected there is lost.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { FragmentWriter, type Fragment } from '../../mp4/fragment.ts'
import type { Id3Event } from '../../mp4/event-message.ts'
import {
  encodeInitSegment,
  isVideo,
  timescaleOf,
  type MediaFormat,
} from '../../mp4/init-segment.ts'
import type { ParameterSet } from '../../codec/parameter-sets.ts'
import type { Sample, SampleStats } from '../../mp4/sample.ts'
import { SILENT_TICKS, silentSamples } from '../../mp4/silence.ts'
import { videoCodecString } from '../../mp4/video-sample-entry.ts'
import type { SlabPool } from '../../mpegts/mux/slab-pool.ts'
import { memoryOf, type PesUnit } from '../../mpegts/pes-unit.ts'
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import type { PartEnd, SegmentEnd, SegmentPlan } from '../cut/segment-plan.ts'
import { initUri, isAudioRendition, type CmafRendition } from '../file-names.ts'
import type { InitSegment } from '../store/segment.ts'
import { MAX_SKEW_TICKS, SNAP_TICKS } from '../cut/timeline.ts'
import type { CarriedTracks } from './rendition-tracks.ts'
import { ListedTime, type ListedEnd } from './listed-time.ts'
import { createSampleReader, type SampleReader } from './sample-reader.ts'
import {
  type MediaWriter,
  type WrittenPart,
  type WrittenSegment,
  SegmentContent,
} from './media-writer.ts'
import type { QueuedPes } from './track-queues.ts'
import { overwriteViews, type MediaMemory } from '../../mp4/media-memory.ts'
import { PacketMemory, SlabRuns } from '../../mpegts/mux/packet-memory.ts'

interface CmafWriterOptions {
  readonly name: CmafRendition
  readonly epoch: string
  readonly slabs: SlabPool
  readonly maxSegmentBytes: number
  /** Counters of the samples of all renditions. */
  readonly samples: SampleStats
}

/** Sample of an audio or video track, with its time in the program. */
interface HeldSample {
  readonly sample: Sample<MediaFormat>
  /** 90 kHz, comparable with the boundaries of parts. */
  readonly ticks: number
  readonly unit: PesUnit
  readonly memoryBytes: number
}

/** Segment that has its first sample, or follows media without having any. */
interface Open {
  /** Undefined in a segment without samples. */
  readonly content: SegmentContent | undefined
  readonly map: InitSegment
  readonly startsWithSync: boolean
  /** Fragments so far. */
  readonly fragments: Fragment[]
  sizeBytes: number
}

/** Rounding of the time of an audio frame to samples and back. */
const ROUNDING_TICKS = 2

/** Memory of the objects of a held sample, beside its share of its PES packet. */
const SAMPLE_BYTES = 400

/**
 * Maximum memory of the held samples of audio: of what waited for 20 s of media, see `TrackQueue`. Frames of other sample rates
 * between them begin a clock anew, and so may be further ahead of the video with each PES packet.
 */
const MAX_HELD_AUDIO_BYTES = 4 * 1024 * 1024

/** Digits of the hash in the name of an init segment. */
const HASH_DIGITS = 12

export class CmafWriter implements MediaWriter {
  readonly #options: CmafWriterOptions
  readonly #isAudio: boolean
  #isReference = false
  readonly #memory: SlabMediaMemory
  readonly #fragments: FragmentWriter
  #carried: CarriedTracks | undefined
  #reader: SampleReader | undefined
  /** Parameter sets at the end of the latest timeline. */
  #parameterSets: readonly ParameterSet[] = []
  #held: HeldSample[] = []
  /** Memory of the held samples. */
  #heldBytes = 0
  #events: Id3Event[] = []
  #eventBytes = 0
  #eventId = 0
  #open: Open | undefined
  /** Format of the newest sample. */
  #format: MediaFormat | undefined
  readonly #maps = new WeakMap<MediaFormat, InitSegment>()
  #needsTimeline = false
  /** Init segment of all samples of the timeline: another one is behind a discontinuity. */
  #timelineMap: string | undefined
  /** Added to all times of the timeline, which may be negative: whole seconds, in 90 kHz. */
  #liftTicks = 0
  /** Start of the timeline. */
  #startTicks = -Infinity
  /** PTS minus DTS at the latest random access point. */
  #reorderTicks = 0
  /** Time of the newest sample, comparable with the boundaries of parts. */
  #latestTicks = 0
  /** Decode time at which the newest fragment of the timeline ends: behind a gap, late video may be of a time before it. */
  #endedTicks = -Infinity
  /** Whether the next fragment begins there: the media is continuous. */
  #isContinuous = false
  /** Decode time at which the silence at the end of the timeline ends, so far. */
  #silentTicks = 0
  /** Decode time of the newest sample of the open fragment. */
  #placedTicks = 0
  /** Decode time at which the repetition ends that it belongs to. */
  #repeatedUntilTicks = 0
  /** Duration of the newest frame of audio, 90 kHz: in its fragment, it may last until the one behind a hole. */
  #frameTicks = 0
  readonly #listed = new ListedTime()
  /** Start of the open segment by the listed durations, and by the planned ones. */
  #segmentFromTicks = 0
  #plannedFromTicks = 0

  constructor(options: CmafWriterOptions) {
    this.#options = options
    this.#isAudio = isAudioRendition(options.name)
    this.#memory = new SlabMediaMemory(options.slabs)
    const { maxSegmentBytes: maxBytes } = options
    this.#fragments = new FragmentWriter({ trackId: 1, memory: this.#memory, maxBytes })
  }

  get sizeBytes(): number {
    const heldBytes = this.#heldBytes + this.#eventBytes
    return (this.#open?.sizeBytes ?? 0) + this.#fragments.mediaBytes + heldBytes
  }

  get open(): CarriedTracks | undefined {
    return this.#open?.content?.carried
  }

  get lateSec(): number {
    return (this.#segmentFromTicks - this.#plannedFromTicks) / TICKS_PER_SEC
  }

  get needsTimeline(): boolean {
    return this.#needsTimeline
  }

  get isInexpressible(): boolean {
    return this.#format === undefined && (this.#reader?.inexpressible ?? 0) > 0
  }

  carry(carried: CarriedTracks | undefined, isSame: boolean): void {
    this.#carried = carried
    if (!isSame) this.#restart()
    else if (this.#open?.content !== undefined && carried !== undefined)
      this.#open.content.carried = carried
  }

  startTimeline({ startTicks, timelineStartTicks }: SegmentPlan, isReference: boolean): void {
    this.#isReference = isReference
    this.#restart()
    this.#needsTimeline = false
    this.#timelineMap = undefined
    this.#startTicks = startTicks
    this.#endedTicks = -Infinity
    this.#listed.start(startTicks)
    this.#segmentFromTicks = startTicks
    this.#plannedFromTicks = startTicks
    const missingSec = (MAX_SKEW_TICKS - timelineStartTicks) / TICKS_PER_SEC
    this.#liftTicks = Math.max(0, Math.ceil(missingSec)) * TICKS_PER_SEC
  }

  write({ unit, ticks }: QueuedPes, isLead: boolean): void {
    if (!isLead) {
      this.#addEvent(unit)
      return
    }
    this.#reader ??= createSampleReader(unit.track, this.#options.samples, {
      format: this.#format,
      parameterSets: this.#parameterSets,
    })
    this.#reorderTicks = ticks - unit.dtsTicks
    const samples = this.#reader?.push(unit, this.#liftTicks) ?? []
    const [last, nextTicks] = [samples.at(-1), this.#reader?.nextTicks]
    if (last !== undefined && nextTicks !== undefined)
      this.#frameTicks = ((nextTicks - last.decodeTicks) * TICKS_PER_SEC) / timescaleOf(last.format)
    for (const sample of samples) {
      if (unit.track.kind === 'audio') {
        this.#latestTicks = this.#toTicks(sample.decodeTicks, sample.format)
        // As at each boundary, a frame that begins before it is on the other side.
        const isBefore = this.#latestTicks < this.#startTicks - ROUNDING_TICKS
        if (isBefore || this.#heldBytes > MAX_HELD_AUDIO_BYTES) {
          this.#options.samples.dropped++
          continue
        }
      } else if (!sample.continues) this.#latestTicks = ticks
      // A second field is written with the first one: its bytes are views into the input.
      const memoryBytes = SAMPLE_BYTES + Math.ceil(memoryOf(unit) / samples.length)
      this.#held.push({ sample, ticks: this.#latestTicks, unit, memoryBytes })
      this.#heldBytes += memoryBytes
    }
  }

  advance(untilTicks: number): void {
    for (const held of this.#takeHeld(untilTicks))
      if (!this.#append(held)) this.#options.samples.dropped++
  }

  isPast(untilTicks: number): boolean {
    const [first] = this.#held
    return first !== undefined && !isDue(first, untilTicks)
  }

  skip(untilTicks: number): void {
    this.#options.samples.dropped += this.#takeHeld(untilTicks).length
    this.#openEmpty()
    this.#isContinuous = false
  }

  endPart(end: PartEnd, lastEndTicks?: number): WrittenPart {
    this.#openEmpty()
    const fragment = this.#endFragment(end.endTicks, lastEndTicks)
    const restSec =
      end.maxSegmentSec - (this.#listed.ticks - this.#segmentFromTicks) / TICKS_PER_SEC
    const hasSamples = fragment !== undefined && fragment.samples > 0
    const durationSec = this.#list({ ...end, maxSec: Math.min(end.maxSec, restSec) }, hasSamples)
    if (fragment === undefined || this.#open === undefined)
      return { chunks: [], independent: false, durationSec }
    const { chunks, independent } = fragment
    return { chunks, independent, map: this.#open.map, durationSec }
  }

  endSegment(plan: SegmentPlan, end: SegmentEnd, lastEndTicks?: number): WrittenSegment {
    const isEmpty = this.#open?.fragments.length === 0
    if (isEmpty || this.#fragments.mediaBytes > 0) this.#endFragment(end.endTicks, lastEndTicks)
    const durationSec = this.#listSegment(end)
    const open = this.#open
    this.#open = undefined
    if (open === undefined) {
      this.#isContinuous = false
      const gap = { independent: false, aligned: undefined, startsWithKeyFrame: false, frames: 0 }
      return { ...gap, chunks: [], carried: undefined, durationSec }
    }
    const { content, fragments, startsWithSync, map } = open
    this.#memory.expect(open.sizeBytes)
    return {
      chunks: fragments.flatMap(({ chunks }) => chunks),
      independent: content === undefined || (startsWithSync && content.isIndependent(plan)),
      aligned: content?.isAligned(plan),
      startsWithKeyFrame: startsWithSync && content?.startsWithKeyFrame === true,
      frames: content?.frames ?? 0,
      carried: content && nameCodec(content.carried, this.#format),
      map,
      durationSec,
    }
  }

  /**
   * Opens a segment that follows media and has none so far, so that it is no gap: Shaka 5.2 ends with error 1011 where the
   * newest segment is one. Behind a segment without samples, the next one is a gap.
   */
  #openEmpty(): void {
    if (this.#carried === undefined || this.#needsTimeline) return
    if (!this.#isContinuous || this.#format === undefined) return
    const map = this.#maps.get(this.#format)
    if (map === undefined || map.uri !== this.#timelineMap) return
    this.#open ??= { content: undefined, map, startsWithSync: false, fragments: [], sizeBytes: 0 }
  }

  #restart(): void {
    this.#parameterSets = this.#reader?.parameterSets ?? this.#parameterSets
    this.#reader = undefined
    this.#options.samples.dropped += this.#held.length
    this.#held = []
    this.#heldBytes = 0
    this.#isContinuous = false
    this.#silentTicks = 0
    this.#repeatedUntilTicks = 0
  }

  #takeHeld(untilTicks: number): HeldSample[] {
    const count = this.#held.findIndex((held) => !isDue(held, untilTicks))
    const taken = this.#held.splice(0, count === -1 ? Infinity : count)
    for (const { memoryBytes } of taken) this.#heldBytes -= memoryBytes
    return taken
  }

  /** @returns false if the sample is dropped */
  #append({ sample, unit }: HeldSample): boolean {
    if (this.#carried === undefined) return false
    // The frame that it continues is lost, or in another segment.
    if (sample.continues && this.#fragments.decodeTicks === undefined) return false
    // Audio may change its format with each frame: until the next timeline, no more init segments are created.
    const map = this.#needsTimeline
      ? this.#maps.get(sample.format)
      : this.#mapOf(sample.format, unit.track.language)
    if (map === undefined) return false
    this.#timelineMap ??= map.uri
    if (map.uri !== this.#timelineMap) {
      this.#needsTimeline = true
      return false
    }
    const isBegun = this.#fragments.decodeTicks !== undefined
    if (this.#isAudio && !isBegun && !this.#isContinuous) this.#resume(sample)
    this.#format = sample.format
    const content = this.#open?.content ?? new SegmentContent(this.#carried, unit)
    if (this.#open?.content === undefined) {
      const first = { content, map, startsWithSync: sample.sync }
      this.#open = { fragments: [], sizeBytes: 0, ...this.#open, ...first }
    }
    const isVideo = unit.track.kind === 'video'
    const placed =
      isVideo && !sample.continues ? startAt(sample, this.#decodeTimeOf(sample)) : sample
    const isWritten = this.#push(placed)
    if (!sample.continues) {
      const { dtsTicks, repetition } = unit
      this.#placedTicks = placed.decodeTicks
      const restTicks = repetition?.endsGop === true ? repetition.untilTicks - dtsTicks : 0
      this.#repeatedUntilTicks = placed.decodeTicks + restTicks
    }
    content.push(unit)
    return isWritten
  }

  #push(sample: Sample<MediaFormat>): boolean {
    this.#options.samples.samples++
    return this.#fragments.push(sample)
  }

  /** Begins audio at the start of a timeline or behind a gap: silence precedes a frame that comes late. */
  #resume(sample: Sample<MediaFormat>): void {
    const { format, decodeTicks } = sample
    const missingTicks = decodeTicks - this.#toDecodeTicks(this.#listed.ticks, format)
    const count = Math.max(0, Math.floor(missingTicks / SILENT_TICKS))
    const silence = silentSamples(format, decodeTicks - count * SILENT_TICKS, count) ?? []
    for (const silent of silence) this.#push(silent)
    const [first = sample] = silence
    const ticks = this.#toTicks(first.decodeTicks, format)
    const isStart = this.#listed.ticks === this.#startTicks
    if (!isStart || ticks - this.#startTicks > SNAP_TICKS) return
    this.#listed.start(ticks)
    this.#segmentFromTicks = ticks
  }

  /** Decode time at which a fragment of video goes on, or begins where the one before it has ended. */
  #decodeTimeOf({ decodeTicks }: Sample<MediaFormat>): number {
    const isFirst = this.#fragments.decodeTicks === undefined
    if (!isFirst) return Math.max(decodeTicks, this.#placedTicks + 1)
    return this.#isContinuous ? this.#endedTicks : Math.max(decodeTicks, this.#endedTicks)
  }

  #mapOf(format: MediaFormat, language: string | undefined): InitSegment {
    const known = this.#maps.get(format)
    if (known !== undefined) return known
    const { epoch, name, samples } = this.#options
    samples.initSegments++
    const bytes = encodeInitSegment({ id: 1, format, ...(language !== undefined && { language }) })
    const hash = createHash('sha256').update(bytes).digest('hex').slice(0, HASH_DIGITS)
    const map = { uri: initUri(epoch, name, hash), bytes }
    this.#maps.set(format, map)
    return map
  }

  /** @returns undefined for a gap: the segment has no media so far */
  #endFragment(endTicks: number, lastEndTicks?: number): Fragment | undefined {
    const open = this.#open
    if (open === undefined) return undefined
    const untilTicks = this.#complete(endTicks, lastEndTicks)
    const fragment = this.#fragments.end({
      untilTicks,
      startsSegment: open.fragments.length === 0,
      events: this.#events,
      emptyTicks: this.#isContinuous ? this.#endedTicks : untilTicks,
    })
    this.#events = []
    this.#eventBytes = 0
    if (fragment === undefined) return undefined
    if (fragment.samples > 0) {
      this.#endedTicks = fragment.decodeTicks + fragment.durationTicks
      this.#isContinuous = true
    }
    open.fragments.push(fragment)
    open.sizeBytes += fragment.sizeBytes
    return fragment
  }

  /**
   * Completes the media of a fragment: audio lasts until the timeline ends, beside video with silence or, where none is known,
   * with a frame that is longer. At a hole, http-streaming 3.17 stands still for 1.5 s.
   *
   * @returns decode time at which the fragment ends: that of the next frame of audio, of video the planned one
   */
  #complete(endTicks: number, lastEndTicks?: number): number {
    const [held] = this.#held
    const [counted, format] = [this.#reader?.nextTicks, this.#format]
    if (held !== undefined) return held.sample.decodeTicks
    if (counted === undefined || format === undefined)
      return Math.max(endTicks - this.#reorderTicks + this.#liftTicks, this.#repeatedUntilTicks)
    if (lastEndTicks === undefined) return counted
    const lastTicks = this.#toDecodeTicks(lastEndTicks, format)
    const endedTicks = Math.max(counted, this.#silentTicks)
    const listedTicks = this.#toDecodeTicks(this.#listed.ticks, format)
    // What is listed without samples stays a hole.
    const fromTicks = listedTicks > endedTicks + SILENT_TICKS ? listedTicks : endedTicks
    const missingTicks = this.#toDecodeTicks(endTicks - ROUNDING_TICKS, format) - fromTicks
    const count = Math.max(0, Math.ceil(missingTicks / SILENT_TICKS))
    const silence = this.#isReference ? undefined : silentSamples(format, fromTicks, count)
    if (silence === undefined) return Math.max(counted, lastTicks)
    for (const silent of silence) this.#push(silent)
    this.#silentTicks = fromTicks + count * SILENT_TICKS
    return Math.min(this.#silentTicks, lastTicks)
  }

  /**
   * @param hasSamples  whether frames begin before the boundary
   * @returns DURATION or EXTINF up to a boundary: that of the frames of audio; of video, or without frames, as planned
   */
  #list(end: ListedEnd, hasSamples = true): number {
    if (!this.#isAudio) return end.durationSec
    const format = this.#format
    if (!hasSamples || !this.#isContinuous || format === undefined) return this.#listed.advance(end)
    const mediaTicks = this.#toTicks(this.#endedTicks, format)
    return this.#listed.advance(end, { mediaTicks, frameTicks: this.#frameTicks })
  }

  /** @returns decode time of a time in the program, 90 kHz */
  #toDecodeTicks(ticks: number, format: MediaFormat): number {
    return Math.round(((ticks + this.#liftTicks) * timescaleOf(format)) / TICKS_PER_SEC)
  }

  /** @returns time in the program, 90 kHz, of a decode time */
  #toTicks(decodeTicks: number, format: MediaFormat): number {
    return (decodeTicks * TICKS_PER_SEC) / timescaleOf(format) - this.#liftTicks
  }

  /** @returns EXTINF of audio: the sum of the parts, if there are any; of video as planned */
  #listSegment(end: SegmentEnd): number {
    if (!this.#isAudio) return end.durationSec
    const fromTicks = this.#segmentFromTicks
    if (this.#listed.ticks === fromTicks) this.#list(end)
    this.#segmentFromTicks = this.#listed.ticks
    this.#plannedFromTicks += end.durationSec * TICKS_PER_SEC
    return (this.#listed.ticks - fromTicks) / TICKS_PER_SEC
  }

  /** Adds timed metadata to the open fragment. */
  #addEvent(unit: PesUnit): void {
    this.#options.samples.samples++
    const { payload: tag } = unit
    const ptsTicks = unit.ptsTicks + this.#liftTicks
    if (tag.toString('latin1', 0, 3) !== 'ID3' || ptsTicks < 0) return
    this.#events.push({ id: this.#eventId++, ptsTicks, tag })
    this.#eventBytes += tag.length
  }
}

function isDue({ ticks }: HeldSample, untilTicks: number): boolean {
  // Audio begins between ticks.
  return ticks < untilTicks + 1
}

/** @returns tracks whose CODECS value tells of parameter sets in band, if they are */
function nameCodec(carried: CarriedTracks, format: MediaFormat | undefined): CarriedTracks {
  const { video } = carried
  if (video === undefined || format === undefined) return carried
  if (!isVideo(format) || !format.inBandSets) return carried
  const parameters = { ...video.parameters, codecString: videoCodecString(format) }
  return { ...carried, video: { ...video, parameters } }
}

/** Moves the decode time of a sample; it is presented as before. */
function startAt<Format>(sample: Sample<Format>, decodeTicks: number): Sample<Format> {
  const { compositionOffset } = sample
  const moved = compositionOffset + sample.decodeTicks - decodeTicks
  return { ...sample, decodeTicks, compositionOffset: moved }
}

/** Memory of fragments, in slabs of the pool. */
class SlabMediaMemory implements MediaMemory {
  readonly #memory: PacketMemory
  readonly #runs: SlabRuns

  constructor(slabs: SlabPool) {
    this.#memory = new PacketMemory(slabs)
    this.#runs = new SlabRuns(slabs)
  }

  /** Chooses the size of the next slabs for segments of `segmentBytes`. */
  expect(segmentBytes: number): void {
    this.#memory.expect(segmentBytes)
  }

  append(chunks: readonly Uint8Array[]): void {
    this.#memory.write(chunks, (buffer, start, end) => this.#runs.append(buffer, start, end))
  }

  overwrite(fromEnd: number, bytes: Uint8Array): void {
    overwriteViews(this.#runs.views, fromEnd, bytes)
  }

  take(): Buffer[] {
    return this.#runs.take()
  }
}
