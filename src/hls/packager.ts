/**
 * Cuts a program into the segments of all its renditions.
 *
 * ```
 *                  ┌─► CutPlanner ─► plans ─┐
 * PES packets ─────┤                        ▼
 *                  └──────────────► RenditionWriter … ─► main, video-2, audio-2 …
 * ```
 *
 * @module
 */
import type { DemuxerOutput } from '../mpegts/demux/demuxer-output.ts'
import { SlabPool } from '../mpegts/mux/slab-pool.ts'
import type { PesUnit } from '../mpegts/pes-unit.ts'
import { PSI_BYTES } from '../mpegts/mux/program-tables.ts'
import { TICKS_PER_SEC, type Times } from '../mpegts/timestamps.ts'
import type { Program } from '../mpegts/track.ts'
import type { Boundary, CutDecision } from './cut/cut-decision.ts'
import { CutPlanner } from './cut/cut-planner.ts'
import type { SegmentPlan } from './cut/segment-plan.ts'
import type { RenditionName } from './file-names.ts'
import type { PackagerOptions, PackagerOutput, PackagerStats } from './packager-output.ts'
import {
  isSameSelection,
  leadTrack,
  type CarriedTracks,
  type TrackPolicy,
} from './rendition/carried-tracks.ts'
import { chooseOtherRenditions, listRenditions } from './rendition/other-renditions.ts'
import { RenditionWriter } from './rendition/rendition-writer.ts'
import type { RenditionWriterOptions } from './rendition/writer-output.ts'
import { Rows } from './rendition/rows.ts'
import { describeStart } from './rendition/segment-start.ts'
import { TrackSelection } from './rendition/track-selection.ts'
import type { SourceFact } from './source-fact.ts'

export type { PackagerOptions, PackagerOutput, PackagerStats }

const DEFAULT_MAX_SEGMENT_BYTES = 64 * 1024 * 1024

/** Longest wait for tracks that lag behind the reference track, in media of the reference track. */
const MAX_LAG_TICKS = 1 * TICKS_PER_SEC

/** Maximum size of queued PES packets, and of segments that wait for a rendition, in segments of maximum size. */
const MAX_WAITING_SEGMENTS = 2

/**
 * Inputs: `push` the outputs of the demuxer, with the wall clock in milliseconds since 1970; `discontinuity` when the
 * encoder has left; `settle` when media pauses for long; `end` at the end. Each returns the outputs that it completes.
 *
 * The reference track is the video of the main rendition or, without video, its audio. The first segment, and the first
 * after a discontinuity, starts at a random access point of the reference track. A silent track is not carried until
 * its media arrives; its removal and its return are discontinuities.
 */
export class Packager {
  readonly #policy: TrackPolicy
  readonly #lowLatency: boolean
  readonly #writerOptions: Omit<RenditionWriterOptions, 'name' | 'reference'>
  readonly #selection: TrackSelection
  readonly #planner: CutPlanner
  readonly #main: RenditionWriter
  readonly #others = new Map<RenditionName, RenditionWriter>()
  /** Writers of all renditions, the main one first. */
  readonly #writers: RenditionWriter[]
  readonly #stats = { damagedUnits: 0, oversizeUnits: 0, strayUnits: 0 }
  #renditions: readonly RenditionName[] = []
  #program: Program | undefined
  readonly #outputs: Rows<RenditionWriter, PackagerOutput>

  constructor(options: PackagerOptions) {
    const { epoch, tracks = 'compatible', maxSegmentBytes = DEFAULT_MAX_SEGMENT_BYTES } = options
    const { slabs = new SlabPool(), earlier, renditions = [] } = options
    this.#policy = tracks
    this.#lowLatency = (earlier?.targets.partTargetSec ?? options.partSec) !== undefined
    this.#writerOptions = { epoch, maxSegmentBytes, slabs }
    this.#selection = new TrackSelection(tracks)
    this.#planner = new CutPlanner({ ...options, maxSegmentBytes })
    this.#main = new RenditionWriter({ ...this.#writerOptions, name: 'main', reference: true })
    this.#writers = [this.#main]
    this.#outputs = new Rows({
      inStep: this.#lowLatency,
      sizeOf: (output) => (output.type === 'segment' ? output.segment.sizeBytes : 0),
    })
    for (const name of renditions) this.#addWriter(name)
  }

  get stats(): PackagerStats {
    let { strayUnits } = this.#stats
    for (const { droppedUnits, oversizeUnits } of this.#others.values()) {
      const { video, audio, data } = droppedUnits
      strayUnits += video + audio + data + oversizeUnits
    }
    return {
      ...this.#planner.stats,
      damagedUnits: this.#stats.damagedUnits,
      oversizeUnits: this.#stats.oversizeUnits + this.#main.oversizeUnits,
      strayAudioUnits: this.#main.droppedUnits.audio,
      strayDataUnits: this.#main.droppedUnits.data,
      strayUnits,
    }
  }

  /** Total size of the waiting PES packets, the open segments and the segments that wait for other renditions. */
  get queuedBytes(): number {
    const rowBytes = this.#outputs.sizeBytes
    return this.#writers.reduce((sum, it) => sum + it.waitingBytes + it.openBytes, rowBytes)
  }

  /** Facts that hold now; each was also an output when it began. */
  get facts(): readonly SourceFact[] {
    return this.#selection.facts
  }

  /** Borrows the output's chunks for the duration of the call. */
  push(output: DemuxerOutput, wallMs: number): readonly PackagerOutput[] {
    if (output.type === 'unit') this.#pushUnit(output.unit, wallMs)
    else if (output.type === 'program') this.#setProgram(output.program, output.layoutChanged)
    else if (output.type === 'splice') this.#planner.announce(output.splice)
    else if (output.type === 'header') this.#expectUnit(output.pid, output.times)
    else this.#pushPackets(output.pid, output.chunks)
    return this.#outputs.take()
  }

  /** Completes the open segments when the encoder has left; later media is on another timeline. */
  discontinuity(): readonly PackagerOutput[] {
    this.#apply(this.#planner.endClock())
    this.#flush()
    for (const writer of this.#writers) writer.clear()
    this.#selection.reset()
    return this.#outputs.take()
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

  /** Ends the open parts before a PES packet of the reference track, if its times tell that they are complete. */
  #expectUnit(pid: number, times: Times): void {
    if (pid !== leadTrack(this.#main.carried)?.pid) return
    const decisions = this.#planner.expect(times)
    if (decisions.length === 0) return
    this.#apply(decisions)
    for (const writer of this.#writers) this.#advance(writer)
  }

  #pushUnit(unit: PesUnit, wallMs: number): void {
    const patienceTicks = this.#planner.open === undefined ? 0 : this.#planner.limitTicks
    if (this.#selection.push(unit, patienceTicks)) this.#reportFacts()
    this.#adoptSelection(unit, wallMs)
    this.#place(unit, wallMs)
  }

  /** Switches to the selected tracks if the PES packet is an undamaged random access point of their lead track. */
  #adoptSelection(unit: PesUnit, wallMs: number): void {
    const { wanted } = this.#selection
    const lead = leadTrack(wanted)
    if (unit.track.pid !== lead?.pid || isSameSelection(wanted, this.#main.carried)) return
    if (!unit.randomAccess || unit.damaged) return
    this.#endTimeline()
    const waiting = wanted.video === undefined ? this.#main.release(lead.pid) : []
    this.#carry(wanted)
    for (const each of waiting) this.#place(each, wallMs, [this.#main])
  }

  /** Hands a PES packet to the planner, if it is of the reference track, and to the renditions that carry its track. */
  #place(unit: PesUnit, wallMs: number, writers = this.#writers): void {
    if (!this.#isUsable(unit)) return
    const isReference = unit.track.pid === leadTrack(this.#main.carried)?.pid
    if (isReference) this.#apply(this.#planner.push(unit, wallMs, this.#main.openBytes))
    else this.#planner.observe(unit)
    for (const writer of writers) {
      const isBeforeStart = isReference && writer === this.#main && this.#planner.open === undefined
      if (!isBeforeStart) writer.push(unit)
      this.#advance(writer)
      writer.keep()
    }
    this.#limitWaiting()
  }

  /** False for a damaged random access point or a PES packet larger than a segment, which are counted as dropped. */
  #isUsable(unit: PesUnit): boolean {
    const isDamaged = unit.damaged && unit.randomAccess
    const isOversize = unit.sizeBytes + PSI_BYTES > this.#writerOptions.maxSegmentBytes
    if (!isDamaged && !isOversize) return true
    const takers = this.#writers.filter((writer) => writer.carries(unit.track.pid))
    if (takers.some((writer) => writer !== this.#main)) this.#stats.strayUnits++
    if (takers.includes(this.#main)) this.#stats[isDamaged ? 'damagedUnits' : 'oversizeUnits']++
    return false
  }

  #pushPackets(pid: number, chunks: readonly Buffer[]): void {
    for (const writer of this.#writers) {
      if (writer.carried?.pcrPid === pid) writer.pushPackets(chunks)
    }
  }

  #setProgram(program: Program, layoutChanged: boolean): void {
    this.#program = program
    this.#selection.setProgram(program)
    const { wanted } = this.#selection
    if (layoutChanged || !isSameSelection(wanted, this.#main.carried)) this.#endTimeline()
    this.#reportFacts()
    if (layoutChanged) for (const writer of this.#others.values()) writer.clear()
    this.#carry(wanted)
  }

  /** Gives each rendition its tracks. */
  #carry(main: CarriedTracks): void {
    this.#main.carry(main)
    const { silentPids } = this.#selection
    const wanted = new Map(
      this.#program && chooseOtherRenditions(this.#program, this.#policy, main, silentPids),
    )
    for (const name of wanted.keys()) {
      if (!this.#others.has(name)) this.#addWriter(name)
    }
    for (const [name, writer] of this.#others) writer.carry(wanted.get(name))
    const renditions = listRenditions(main, wanted)
    if (renditions.join() === this.#renditions.join()) return
    this.#renditions = renditions
    this.#outputs.insert({ type: 'renditions', renditions })
  }

  #addWriter(name: RenditionName): void {
    const writer = new RenditionWriter({ ...this.#writerOptions, name, reference: false })
    this.#writers.push(writer)
    this.#others.set(name, writer)
    // With low latency, a new rendition begins with the next segment: the parts of the open one are published.
    const { open } = this.#planner
    if (open !== undefined && !this.#lowLatency) writer.start(open, open.timelineStartTicks)
  }

  #endTimeline(): void {
    this.#apply(this.#planner.endTimeline())
    this.#flush()
  }

  #apply(decisions: readonly CutDecision[]): void {
    for (const decision of decisions) {
      if (decision.type === 'start') this.#start(decision.plan)
      else if (decision.type === 'part' || decision.type === 'end') this.#end(decision)
      else if (decision.type === 'fact') this.#report(decision.fact)
      else this.#outputs.insert(decision)
    }
  }

  #start(plan: SegmentPlan): void {
    for (const writer of this.#writers) writer.start(plan)
    const start = describeStart(plan, this.#writerOptions.epoch, ['main', ...this.#others.keys()])
    this.#outputs.push({ type: 'start', start })
  }

  #end(boundary: Boundary): void {
    const dueTicks = this.#planner.progressTicks + MAX_LAG_TICKS
    const ended = this.#writers.filter((writer) => writer.end(boundary, dueTicks))
    this.#outputs.plan(ended)
    this.#advance(this.#main)
  }

  /** Completes the planned segments with the PES packets that have arrived. */
  #flush(): void {
    for (const writer of this.#writers) this.#advance(writer, Infinity)
  }

  #advance(writer: RenditionWriter, progressTicks = this.#planner.progressTicks): void {
    const outputs = writer.advance(this.#planner.latestTicks, progressTicks)
    if (outputs.length === 0) return
    for (const output of outputs) this.#outputs.add(writer, output)
    const { targetSec } = this.#planner
    const variants = this.#writers.filter(({ misaligned }) => misaligned).length
    if (writer.misaligned) this.#report({ code: 'VARIANTS_NOT_ALIGNED', variants, targetSec })
    if (writer.audioOutOfStep) this.#report({ code: 'AUDIO_OUT_OF_STEP', targetSec })
  }

  #limitWaiting(): void {
    const maxBytes = MAX_WAITING_SEGMENTS * this.#writerOptions.maxSegmentBytes
    if (this.#outputs.sizeBytes > maxBytes) this.#flush()
    let waitingBytes = 0
    for (const writer of this.#others.values()) waitingBytes += writer.waitingBytes
    if (waitingBytes > maxBytes) for (const writer of this.#others.values()) writer.clear()
  }

  #reportFacts(): void {
    for (const fact of this.facts) this.#report(fact)
  }

  #report(fact: SourceFact): void {
    this.#outputs.push({ type: 'fact', fact })
  }
}
