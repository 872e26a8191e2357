/**
 * Cuts a program into the segments of all its renditions.
 *
 * ```
 *                  ┌─► CutPlanner ─► plans ─┐
 * PES packets ─────┤                        ▼
 *                  └──────────────► RenditionWriter … ─► main, video-2 …, cmaf-video-1, cmaf-audio-1 …
 * ```
 *
 * @module
 */
import type { DemuxerOutput } from '../mpegts/demux/demuxer.ts'
import { storePackets } from '../mpegts/mux/packet-memory.ts'
import { SlabPool } from '../mpegts/mux/slab-pool.ts'
import type { PesUnit } from '../mpegts/pes-unit.ts'
import { PSI_BYTES } from '../mpegts/mux/program-tables.ts'
import { TICKS_PER_SEC, type Times } from '../mpegts/timestamps.ts'
import { isSameTrackLayout, type Program, type Track } from '../mpegts/track.ts'
import type {
  Boundary,
  CutDecision,
  CutPlannerOptions,
  CutPlannerStats,
} from './cut/cut-decision.ts'
import { CutPlanner } from './cut/cut-planner.ts'
import { listedProperties, type SegmentPlan } from './cut/segment-plan.ts'
import { MAX_STEP_TICKS } from './cut/timeline.ts'
import type { SegmentStart } from './store/segment.ts'
import {
  isAudioRendition,
  isCmafRendition,
  segmentUri,
  type RenditionName,
  type Format,
} from './file-names.ts'
import { DropCounter, type DropRole } from './rendition/drop-counter.ts'
import {
  isSameSelection,
  leadTrack,
  listTracks,
  type CarriedTracks,
  chooseRenditions,
  listRenditions,
  type RenditionPolicy,
  type TrackPolicy,
} from './rendition/rendition-tracks.ts'
import {
  RenditionWriter,
  type RenditionWriterOptions,
  type WriterOutput,
} from './rendition/rendition-writer.ts'
import { RenditionBarrier } from './rendition/rendition-barrier.ts'
import { noSampleStats, type SampleStats } from './rendition/sample-reader.ts'
import type { WaitingMemory } from './rendition/track-queues.ts'
import { TrackSelection } from './rendition/track-selection.ts'
import type { SourceFact } from './source-fact.ts'
import type { DateRange } from './date-range.ts'
import type { TargetDurations } from './target-durations.ts'

/** Options of a packager. */
export interface PackagerOptions extends Omit<CutPlannerOptions, 'maxSegmentBytes'> {
  /** Identifies what this process serves of the stream: part of each segment URI, never reused. */
  readonly epoch: string
  /** Formats of the segments, in order; default: transport stream alone. Only CMAF has parts. */
  readonly formats?: readonly Format[] | undefined
  /** Tracks to carry; default `compatible`. */
  readonly tracks?: TrackPolicy
  /** Maximum size of a segment; default 64 MiB. */
  readonly maxSegmentBytes?: number
  /** Pool of memory for segments; default: a private pool without reuse, so that no segment needs to be released. */
  readonly slabs?: SlabPool
  /** Renditions of the media in `earlier`: gaps while the program lacks their tracks. */
  readonly renditions?: readonly RenditionName[]
}

/**
 * - `start`: precedes all parts of the segment. It does not name renditions that join the segment later.
 * - `segment`: for each media sequence number, the segment of the first rendition comes first.
 * - `part`: precedes its segment. Parts with the same serial are output together.
 * - `renditions`: all renditions of the presentation from now on: the main one first or, without transport stream, the
 *   first of CMAF. Precedes the first segment of a new rendition. A removed rendition still has segments; they are gaps
 *   if the program lacks its track.
 * - `target`: EXT-X-TARGETDURATION, fixed from now on, and PART-TARGET, to which all parts so far keep. Output once, after the
 *   third segment of the first rendition, with low latency the second (a later one if disconnects cut all of them short), or
 *   with `settle` or `end`.
 * - `date-range`: output at its start time, before the segment that is open at that time; again with each change.
 * - `fact`: output each time it is observed.
 */
export type PackagerOutput =
  | WriterOutput
  | { readonly type: 'start'; readonly start: SegmentStart }
  | { readonly type: 'renditions'; readonly renditions: readonly RenditionName[] }
  | ({ readonly type: 'target' } & TargetDurations)
  | { readonly type: 'date-range'; readonly dateRange: DateRange }
  | { readonly type: 'fact'; readonly fact: SourceFact }

/** Counters since the packager was created. */
export interface PackagerStats extends CutPlannerStats {
  /** Damaged PES packets of the main rendition, dropped: key frames, audio and metadata. */
  readonly damagedPackets: number
  /**
   * Audio PES packets of the main rendition that are in no segment, mostly for lack of video at their time, and those of
   * any AAC track before its first frame.
   */
  readonly droppedAudioPackets: number
  /** Metadata PES packets of the main rendition that are in no segment. */
  readonly droppedDataPackets: number
  /** PES packets of the main rendition dropped because a segment would have exceeded its maximum size. */
  readonly oversizePackets: number
  /** PES packets of the other renditions that are in no segment. */
  readonly otherDroppedPackets: number
  /** See `SampleStats.dropped`, in all renditions of CMAF. */
  readonly droppedSamples: number
}

const DEFAULT_MAX_SEGMENT_BYTES = 64 * 1024 * 1024

/** Longest wait for tracks that lag behind the reference track, in media of the reference track. */
const MAX_LAG_TICKS = 1 * TICKS_PER_SEC

/**
 * Number of parts of the next encoder with which the last ones of a replaced encoder appear. Where a playlist lists no
 * part of an open segment, http-streaming 3.17 waits for the whole of the next one; and it appends the init segment
 * again with the first part of each reload, so that video is dropped up to the next key frame, until one reload brings
 * two parts.
 */
const HELD_BOUNDARIES = 2
const MAX_HELD_MS = 3000

/**
 * Whether a segment is listed as complete with the first part of the next one: a segment in parts, of audio or at the end of
 * its timeline. hls.js 1.7 takes a complete segment with at most 0.2 s to load for one that it has, and stands still, should it
 * read of the end while it loads the part before the last one; at the end of a timeline, both often appear at once. Other
 * segments of video keep to their own boundary: Shaka 5.2 would append the part that is hinted meanwhile twice.
 */
function isBehindPart(output: PackagerOutput): boolean {
  if (output.type !== 'segment') return false
  const { rendition, parts } = output.segment
  return isAudioRendition(rendition) ? parts.length > 0 : parts.at(-1)?.endsTimeline === true
}

/** Maximum memory of queued PES packets, and of segments that wait for a rendition, in segments of maximum size. */
const MAX_WAITING_SEGMENTS = 2

/** Numbers of what was done for PES packets on their way to their segments; they only grow. */
export interface PlacingStats {
  /** Renditions that looked for media to place, once for each PES packet. */
  visits: number
  /** PES packets copied, since they wait. */
  copies: number
}

/**
 * Inputs: `push` the outputs of the demuxer, with the wall clock in milliseconds since 1970; `discontinuity` when the
 * encoder has left; `settle` when media pauses for long; `end` at the end. Each returns the outputs that it completes.
 *
 * The reference track is the first video that sends media or, without video, the first audio. The first segment, and the
 * first after a discontinuity, starts at a random access point of the reference track. A silent track is not carried
 * until its media arrives; its removal and its return are discontinuities.
 */
export class Packager {
  readonly #policy: RenditionPolicy
  readonly #lowLatency: boolean
  readonly #writerOptions: Omit<RenditionWriterOptions, 'name'>
  readonly #selection: TrackSelection
  readonly #planner: CutPlanner
  /** Writers of all renditions so far; those of transport stream first. */
  readonly #writers = new Map<RenditionName, RenditionWriter>()
  readonly #drops = new DropCounter()
  readonly #samples = noSampleStats()
  readonly #placing: PlacingStats = { visits: 0, copies: 0 }
  readonly #waiting: WaitingMemory = { bytes: 0 }
  /** Writers by the PIDs that they carry. */
  #takers = new Map<number, RenditionWriter[]>()
  /** PIDs of video whose parameter sets are in the samples of CMAF. */
  readonly #inBandPids = new Set<number>()
  /** Tracks of the main rendition. */
  #carried: CarriedTracks | undefined
  /** Whether another layout takes effect at the next key frame. */
  #awaitsKeyFrame = false
  #renditions: readonly RenditionName[] = []
  #program: Program | undefined
  readonly #outputs: RenditionBarrier<RenditionWriter, PackagerOutput>

  constructor(options: PackagerOptions) {
    const { epoch, tracks = 'compatible', maxSegmentBytes = DEFAULT_MAX_SEGMENT_BYTES } = options
    const { slabs = new SlabPool(), earlier, renditions = [], formats = ['ts'] } = options
    this.#policy = { formats, policy: tracks }
    const partSec = formats.includes('cmaf') ? options.partSec : undefined
    this.#lowLatency = (earlier?.targets.partTargetSec ?? partSec) !== undefined
    const [samples, waiting] = [this.#samples, this.#waiting]
    this.#writerOptions = { epoch, maxSegmentBytes, slabs, samples, waiting }
    this.#selection = new TrackSelection(this.#policy)
    this.#planner = new CutPlanner({ ...options, partSec, maxSegmentBytes })
    this.#outputs = new RenditionBarrier({
      sizeOf: (output) => (output.type === 'segment' ? output.segment.sizeBytes : 0),
      isLate: isBehindPart,
      maxWaitMs: MAX_HELD_MS,
    })
    for (const name of renditions) this.#addWriter(name)
  }

  /** Counters of what was packaged and dropped. */
  get stats(): PackagerStats {
    this.#countDropped()
    return {
      ...this.#planner.stats,
      ...this.#drops.stats,
      droppedSamples: this.#samples.dropped,
    }
  }

  /** Counters of the samples of all renditions of CMAF. */
  get sampleStats(): Readonly<SampleStats> {
    return this.#samples
  }

  /** Counters of the work that placing samples took. */
  get placingStats(): Readonly<PlacingStats> {
    return this.#placing
  }

  /** See `CutPlanner.gopSec`. */
  get gopSec(): number | undefined {
    return this.#planner.gopSec
  }

  /** See `CutPlanner.dateMs`. */
  get dateMs(): number {
    return this.#planner.dateMs
  }

  /** Total memory of the waiting PES packets, the open segments and the segments that wait for other renditions. */
  get queuedBytes(): number {
    let sizeBytes = this.#outputs.sizeBytes + this.#waiting.bytes
    for (const { openBytes } of this.#writers.values()) sizeBytes += openBytes
    return sizeBytes
  }

  /** Tracks that are carried now, in any format. */
  get tracks(): readonly Track[] {
    const carried = [...this.#writers.values()].flatMap(({ carried }) => carried ?? [])
    return [...new Set(carried.flatMap(listTracks))]
  }

  /** Facts that hold now; each was also an output when it began, but for frames that CMAF cannot express. */
  get facts(): readonly SourceFact[] {
    const facts = [...this.#selection.facts]
    const varying = this.tracks.filter(({ pid }) => this.#inBandPids.has(pid))
    if (varying.length > 0) facts.push({ code: 'PARAMETER_SETS_VARY', tracks: varying })
    const inexpressible = [...this.#writers.values()].flatMap(({ isInexpressible, carried }) =>
      isInexpressible ? (carried?.audio ?? []) : [],
    )
    if (inexpressible.length === 0) return facts
    const known = facts.find((fact) => fact.code === 'TRACKS_NOT_IN_CMAF')
    const tracks = [...(known?.tracks ?? []), ...inexpressible]
    return [{ code: 'TRACKS_NOT_IN_CMAF', tracks }, ...facts.filter((fact) => fact !== known)]
  }

  /** Borrows the output's chunks for the duration of the call. */
  push(output: DemuxerOutput, wallMs: number): readonly PackagerOutput[] {
    if (output.type === 'unit') this.#pushUnit(output.unit, wallMs)
    else if (output.type === 'program') this.#setProgram(output.program, output.layoutChanged)
    else if (output.type === 'splice') this.#planner.announce(output.splice)
    else if (output.type === 'header') this.#expectUnit(output.pid, output.times)
    else this.#pushPackets(output.pid, output.chunks)
    return this.#outputs.take(wallMs)
  }

  /**
   * Completes the open segments when the encoder has left; later media is on another timeline.
   *
   * @param replacedMs  time at which another encoder has replaced it: what is complete then leaves with its first parts
   */
  discontinuity(replacedMs?: number): readonly PackagerOutput[] {
    this.#apply(this.#planner.endClock())
    this.#flush()
    for (const writer of this.#writers.values()) writer.clear()
    this.#selection.reset()
    this.#inBandPids.clear()
    this.#awaitsKeyFrame = false
    if (replacedMs !== undefined && this.#lowLatency)
      this.#outputs.hold(HELD_BOUNDARIES, replacedMs)
    return this.#outputs.take(replacedMs)
  }

  /** Fixes EXT-X-TARGETDURATION, see `CutPlanner`, and ends the wait for tracks that lag: the playlists can appear. */
  settle(): readonly PackagerOutput[] {
    this.#apply(this.#planner.settle())
    this.#flush()
    return this.#outputs.take()
  }

  /** Completes the last segments at the end of the stream; last call. */
  end(): readonly PackagerOutput[] {
    const outputs = this.discontinuity()
    this.#apply(this.#planner.end())
    return [...outputs, ...this.#outputs.take()]
  }

  get #reference(): Track | undefined {
    return leadTrack(this.#carried)
  }

  /** Ends the open parts before a PES packet of the reference track, if its times tell that they are complete. */
  #expectUnit(pid: number, times: Times): void {
    if (pid !== this.#reference?.pid) return
    const decisions = this.#planner.expect(times)
    if (decisions.length === 0) return
    this.#apply(decisions)
    for (const writer of this.#writers.values()) this.#advance(writer)
  }

  #pushUnit(unit: PesUnit, wallMs: number): void {
    if (!this.#selection.hasFrames(unit)) {
      this.#drops.stats.droppedAudioPackets++
      return
    }
    const patienceTicks = this.#planner.open === undefined ? 0 : this.#planner.limitTicks
    if (this.#selection.push(unit, patienceTicks)) this.#reportFacts()
    this.#noteInBandSets(unit)
    this.#adoptSelection(unit, wallMs)
    this.#place(unit, wallMs)
  }

  #noteInBandSets({ track: { pid }, inBandSets }: PesUnit): void {
    if (inBandSets === this.#inBandPids.has(pid)) return
    if (!inBandSets) this.#inBandPids.delete(pid)
    else if (this.#policy.formats.includes('cmaf')) {
      this.#inBandPids.add(pid)
      this.#reportFacts()
    }
  }

  /** Switches to the selected tracks if the PES packet is an undamaged random access point of their lead track. */
  #adoptSelection(unit: PesUnit, wallMs: number): void {
    const { wanted } = this.#selection
    const lead = leadTrack(wanted)
    if (unit.track.pid !== lead?.pid) return
    if (!unit.randomAccess || unit.damaged) return
    if (isSameSelection(wanted, this.#carried) && !this.#awaitsKeyFrame) {
      if (unit.newParameters && this.#policy.formats.includes('cmaf')) this.#endTimeline()
      else if (this.#needsTimeline) this.#endTimeline()
      return
    }
    this.#endTimeline()
    const hasVideo = wanted.video !== undefined
    const writers = hasVideo ? [] : [...this.#writers.values()]
    const waiting = writers.map((writer) => writer.release(lead.pid))
    this.#carry(wanted)
    const released = waiting.find(({ length }) => length > 0) ?? []
    const steps = released.map(({ dtsTicks }, index) => {
      const stepTicks = (released[index + 1]?.dtsTicks ?? dtsTicks) - dtsTicks
      return stepTicks > 0 && stepTicks <= MAX_STEP_TICKS ? stepTicks : 0
    })
    let waitedTicks = steps.reduce((sum, stepTicks) => sum + stepTicks, 0)
    for (const [index, each] of released.entries()) {
      const waitedMs = (waitedTicks / TICKS_PER_SEC) * 1000
      this.#place(each, wallMs - waitedMs, { references: true })
      waitedTicks -= steps[index]!
    }
  }

  /** Whether a rendition drops media of another format than that of its segment. */
  get #needsTimeline(): boolean {
    for (const { needsTimeline } of this.#writers.values()) if (needsTimeline) return true
    return false
  }

  /**
   * Hands a PES packet to the planner, if it is of the reference track, and to the renditions that carry its track.
   *
   * @param references  whether only renditions take it whose lead track is the reference track
   */
  #place(unit: PesUnit, wallMs: number, { references = false } = {}): void {
    if (!this.#isUsable(unit)) return
    const isReference = unit.track.pid === this.#reference?.pid
    if (isReference) this.#apply(this.#planner.push(unit, wallMs, this.#openBytes))
    else this.#planner.observe(unit)
    const isBeforeStart = isReference && this.#planner.open === undefined
    let copy: PesUnit | undefined
    // The others have nothing new to place.
    const writers = isReference ? this.#writers.values() : this.#takersOf(unit)
    for (const writer of writers) {
      if (references && !writer.isReference) continue
      this.#placing.visits++
      if (!isBeforeStart || !writer.isReference) writer.push(unit)
      this.#advance(writer)
      if (!writer.isHolding(unit)) continue
      copy ??= this.#copy(unit)
      writer.keep(copy)
    }
    const maxBytes = MAX_WAITING_SEGMENTS * this.#writerOptions.maxSegmentBytes
    if (isReference && this.#outputs.sizeBytes > maxBytes) this.#flush()
    if (this.#waiting.bytes > maxBytes)
      for (const writer of this.#writers.values()) if (!writer.isReference) writer.clear()
  }

  #takersOf({ track }: PesUnit): readonly RenditionWriter[] {
    return this.#takers.get(track.pid) ?? []
  }

  /** Copies the packets: what else is in the received payloads, or in a pool of Node.js, is not kept. */
  #copy(unit: PesUnit): PesUnit {
    this.#placing.copies++
    return { ...unit, chunks: [storePackets(unit.chunks, unit.sizeBytes)] }
  }

  /** Size of the largest open segment of a rendition whose lead track is the reference track. */
  get #openBytes(): number {
    let max = 0
    for (const { isReference, openBytes } of this.#writers.values())
      if (isReference) max = Math.max(max, openBytes)
    return max
  }

  /** Whether the rendition is the main one, or of CMAF alone and has one of its tracks. */
  #isMain({ name, carried }: RenditionWriter): boolean {
    if (this.#policy.formats.includes('ts')) return name === 'main'
    return carried?.video !== undefined
      ? carried.video.pid === this.#carried?.video?.pid
      : carried?.audio?.pid === this.#carried?.audio?.pid
  }

  /** Drops of CMAF beside transport stream would be counted twice. */
  #dropRoleOf(writer: RenditionWriter): DropRole {
    if (this.#isMain(writer)) return 'main'
    const isTwin = isCmafRendition(writer.name) && this.#policy.formats.includes('ts')
    return isTwin ? undefined : 'other'
  }

  #countDropped(): void {
    for (const writer of this.#writers.values()) this.#drops.count(writer, this.#dropRoleOf(writer))
  }

  /** False for a damaged random access point or a PES packet larger than a segment, which are counted as dropped. */
  #isUsable(unit: PesUnit): boolean {
    const isDamaged = unit.damaged && unit.randomAccess
    const isOversize = unit.sizeBytes + PSI_BYTES > this.#writerOptions.maxSegmentBytes
    if (!isDamaged && !isOversize) return true
    const roles = this.#takersOf(unit).map((writer) => this.#dropRoleOf(writer))
    this.#drops.drop(roles, isDamaged ? 'damagedPackets' : 'oversizePackets')
    return false
  }

  #pushPackets(pid: number, chunks: readonly Buffer[]): void {
    for (const writer of this.#writers.values()) {
      if (writer.carried?.pcrPid === pid) writer.pushPackets(chunks)
    }
  }

  #setProgram(program: Program, layoutChanged: boolean): void {
    this.#program = program
    this.#selection.setProgram(program)
    const { wanted } = this.#selection
    const isSame = isSameSelection(wanted, this.#carried)
    this.#reportFacts()
    if ((layoutChanged || !isSame) && this.#mayGoOn(wanted)) this.#awaitsKeyFrame = true
    if (this.#awaitsKeyFrame) return
    if (layoutChanged || !isSame) this.#endTimeline()
    if (layoutChanged)
      for (const writer of this.#writers.values()) if (!this.#isMain(writer)) writer.clear()
    this.#carry(wanted)
  }

  /** Whether the video goes on as before, so that a change of other tracks can wait for its next key frame. */
  #mayGoOn({ video }: CarriedTracks): boolean {
    const before = this.#carried?.video
    if (video === undefined || before === undefined) return false
    return this.#planner.open !== undefined && isSameTrackLayout(video, before)
  }

  /** Gives each rendition its tracks. */
  #carry(main: CarriedTracks): void {
    this.#countDropped()
    this.#awaitsKeyFrame = false
    this.#carried = main
    const { silentPids } = this.#selection
    const wanted: ReadonlyMap<RenditionName, CarriedTracks> =
      this.#program === undefined
        ? new Map()
        : chooseRenditions(this.#program, this.#policy, main, silentPids)
    for (const name of wanted.keys()) {
      if (!this.#writers.has(name)) this.#addWriter(name)
    }
    this.#takers = new Map()
    for (const [name, writer] of this.#writers) {
      const carried = wanted.get(name)
      writer.carry(carried, this.#reference?.pid)
      for (const { pid } of carried === undefined ? [] : listTracks(carried))
        this.#takers.set(pid, [...(this.#takers.get(pid) ?? []), writer])
    }
    this.#planner.carry(this.tracks)
    const renditions = listRenditions(wanted)
    if (renditions.join() === this.#renditions.join()) return
    this.#renditions = renditions
    this.#outputs.insert({ type: 'renditions', renditions })
  }

  #addWriter(name: RenditionName): void {
    const writer = new RenditionWriter({ ...this.#writerOptions, name })
    this.#writers.set(name, writer)
    // With low latency, a new rendition begins with the next segment: the parts of the open one are published.
    const { open } = this.#planner
    if (open !== undefined && !this.#lowLatency) writer.start(open, open.timelineStartTicks)
  }

  #endTimeline(): void {
    this.#apply(this.#planner.endTimeline())
    this.#flush()
  }

  #apply(decisions: readonly CutDecision[]): void {
    let hasPart = false
    for (const decision of decisions) {
      if (decision.type === 'start') this.#start(decision.plan)
      else if (decision.type === 'part' || decision.type === 'end') this.#end(decision)
      else if (decision.type === 'fact') this.#report(decision.fact)
      else this.#outputs.insert(decision)
      hasPart = decision.type === 'part' || (hasPart && decision.type !== 'end')
    }
    // A part is complete before the next one is begun: not yet, if its segment ends with it.
    if (hasPart) this.#advanceReferences()
  }

  #start(plan: SegmentPlan): void {
    for (const writer of this.#writers.values()) writer.start(plan)
    const names = [...this.#writers.keys()]
    const { epoch } = this.#writerOptions
    const uris = names.map((name) => [name, segmentUri(epoch, name, plan.mediaSequence)] as const)
    this.#outputs.push({
      type: 'start',
      start: { ...listedProperties(plan), uris: new Map(uris) },
    })
  }

  #end(boundary: Boundary): void {
    const dueTicks = this.#planner.progressTicks + MAX_LAG_TICKS
    const writers = [...this.#writers.values()].filter((writer) => writer.end(boundary, dueTicks))
    // Transport stream has no parts, and waits for whole PES packets.
    const withParts = writers.filter(({ name }) => this.#lowLatency && isCmafRendition(name))
    this.#outputs.plan(withParts)
    if (boundary.type === 'end') this.#advanceReferences()
  }

  #advanceReferences(): void {
    for (const writer of this.#writers.values()) if (writer.isReference) this.#advance(writer)
  }

  /** Completes the planned segments with the PES packets that have arrived. */
  #flush(): void {
    for (const writer of this.#writers.values()) this.#advance(writer, Infinity)
  }

  #advance(writer: RenditionWriter, progressTicks = this.#planner.progressTicks): void {
    const outputs = writer.advance(this.#planner.latestTicks, progressTicks)
    if (outputs.length === 0) return
    for (const output of outputs) this.#outputs.add(writer, output)
    const { targetSec } = this.#planner
    const variants = [...this.#writers.values()].filter((it) => it.misaligned).length
    if (writer.misaligned) this.#report({ code: 'VARIANTS_NOT_ALIGNED', variants, targetSec })
    if (writer.audioOutOfStep) this.#report({ code: 'AUDIO_OUT_OF_STEP', targetSec })
  }

  #reportFacts(): void {
    for (const fact of this.facts) this.#report(fact)
  }

  #report(fact: SourceFact): void {
    this.#outputs.push({ type: 'fact', fact })
  }
}
