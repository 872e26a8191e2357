/**
 * Cuts a program into the segments of all its renditions. The main one decides where; the others follow.
 *
 * ```
 * demuxed units ─┬─► Segmenter ─────┬─► main
 *                │                  ▼
 *                └─► Follower … ─► video-2, audio-2 …
 * ```
 *
 * @module
 */
import type { DemuxerOutput, PesUnit } from '../../mpegts/demux/demuxer-output.ts'
import type { Program } from '../../mpegts/track.ts'
import {
  carryTracks,
  chooseTracks,
  isSameSelection,
  type CarriedTracks,
  type TrackPolicy,
} from '../rendition/carried-tracks.ts'
import { Follower } from '../rendition/follower.ts'
import { PSI_BYTES } from '../../mpegts/mux/psi-writer.ts'
import type { RenditionName } from '../rendition/rendition.ts'
import {
  DEFAULT_MAX_SEGMENT_BYTES,
  Segmenter,
  type SegmenterOptions,
  type SegmenterOutput,
  type SegmenterStats,
} from './segmenter.ts'
import * as warnings from './source-facts.ts'
import { TICKS_PER_SEC } from './timeline.ts'

/**
 * - `renditions`: what the presentation consists of from now on, the main one first. It is told before the first
 *   segment of one that is new; one that is named no more still gets segments, all of them gaps.
 */
export type PackagerOutput =
  SegmenterOutput | { readonly type: 'renditions'; readonly renditions: readonly RenditionName[] }

export interface PackagerStats extends SegmenterStats {
  /** Units of other renditions that reached no segment. */
  readonly strayUnits: number
}

/** Tracks that lag behind the main rendition by more are waited for no longer. */
const MOST_LAG_TICKS = 1 * TICKS_PER_SEC

/** A longer step of the leader's timestamps is a jump, ahead or back. */
const MOST_STEP_TICKS = 1 * TICKS_PER_SEC

/** So many of the largest segments may wait, of all renditions together. */
const MOST_QUEUED_SEGMENTS = 2

/** As `Segmenter`, which makes the main rendition: of each number its segment comes first. */
export class Packager {
  readonly #policy: TrackPolicy
  readonly #maxSegmentBytes: number
  readonly #segmenter: Segmenter
  readonly #followers = new Map<RenditionName, Follower>()
  #renditions: readonly RenditionName[] = []
  #program: Program | undefined
  #carried: CarriedTracks
  #units = 0
  #droppedUnits = 0
  #warnedOfAlignment = false
  /** How far the main rendition has come, whatever its timestamps do. */
  #progressTicks = 0
  #latestTicks = 0

  constructor(options: SegmenterOptions) {
    const { tracks = 'compatible', maxSegmentBytes = DEFAULT_MAX_SEGMENT_BYTES } = options
    this.#policy = tracks
    this.#maxSegmentBytes = maxSegmentBytes
    this.#segmenter = new Segmenter(options)
    this.#carried = this.#segmenter.carried
  }

  get stats(): PackagerStats {
    const strayUnits = [...this.#followers.values()].reduce((sum, { dropped }) => sum + dropped, 0)
    return { ...this.#segmenter.stats, strayUnits: strayUnits + this.#droppedUnits }
  }

  /** Copies what it keeps of the output's chunks. */
  push(output: DemuxerOutput, wallMs: number): readonly PackagerOutput[] {
    const made = this.#segmenter.push(output, wallMs)
    if (output.type !== 'program' && this.#followers.size === 0) return made
    if (output.type === 'unit') this.#measure(output.unit)
    const outputs = this.#order(made)
    if (output.type === 'program' || this.#segmenter.carried !== this.#carried) {
      outputs.push(...this.#arrange(output))
    }
    if (output.type === 'unit') this.#queue(output.unit)
    for (const follower of this.#followers.values()) {
      outputs.push(...this.#release(follower, this.#progressTicks))
    }
    return outputs
  }

  /** The encoder went away. */
  discontinuity(wallMs: number): readonly PackagerOutput[] {
    const outputs = this.#order(this.#segmenter.discontinuity(wallMs))
    outputs.push(...this.#flush())
    for (const follower of this.#followers.values()) follower.clear()
    return outputs
  }

  /** The stream is over; last call. */
  end(wallMs: number): readonly PackagerOutput[] {
    return this.discontinuity(wallMs)
  }

  #measure({ track, dtsTicks }: PesUnit): void {
    const { video, audio } = this.#segmenter.carried
    if (track.pid !== (video ?? audio)?.pid) return
    this.#progressTicks += Math.min(Math.abs(dtsTicks - this.#latestTicks), MOST_STEP_TICKS)
    this.#latestTicks = dtsTicks
  }

  /** Hands what the main rendition is made of on to the others. */
  #order(made: readonly SegmenterOutput[]): PackagerOutput[] {
    for (const output of made) {
      if (output.type !== 'segment') continue
      for (const follower of this.#followers.values()) {
        follower.follow(output.segment, this.#progressTicks + MOST_LAG_TICKS)
      }
    }
    return [...made]
  }

  /** Gives each rendition its tracks. */
  #arrange(cause: DemuxerOutput): PackagerOutput[] {
    const outputs: PackagerOutput[] = []
    const before = this.#carried
    const main = this.#segmenter.carried
    this.#carried = main
    const layoutChanged = cause.type === 'program' && cause.layoutChanged
    if (cause.type === 'program') this.#program = cause.program
    if (layoutChanged || !isSameSelection(before, main)) outputs.push(...this.#flush())
    const wanted = new Map(this.#program && planFollowers(this.#program, this.#policy, main))
    for (const name of wanted.keys()) {
      if (!this.#followers.has(name)) this.#followers.set(name, new Follower(name))
    }
    for (const [name, follower] of this.#followers) {
      if (layoutChanged) follower.clear()
      follower.carry(wanted.get(name))
    }
    // What the main rendition carries itself, since the track before it fell silent, is not offered twice.
    const offered = [...wanted].filter(([, { video, audio }]) =>
      video === undefined ? audio?.pid !== main.audio?.pid : video.pid !== main.video?.pid,
    )
    const renditions: RenditionName[] = ['main', ...offered.map(([name]) => name)]
    if (renditions.join() !== this.#renditions.join()) {
      this.#renditions = renditions
      outputs.push({ type: 'renditions', renditions })
    }
    return outputs
  }

  /** One copy of a unit's bytes for all who carry it. */
  #queue(unit: PesUnit): void {
    const followers = [...this.#followers.values()]
    const takers = followers.filter((follower) => follower.carries(unit.track.pid))
    if (takers.length === 0) return
    // As the main rendition does: a decoder had better not see it, or no segment can hold it.
    if ((unit.damaged && unit.randomAccess) || unit.sizeBytes + PSI_BYTES > this.#maxSegmentBytes) {
      this.#droppedUnits++
      return
    }
    const kept = { ...unit, chunks: [Buffer.concat(unit.chunks)] }
    const serial = this.#units++
    for (const follower of takers) follower.push(kept, serial)
    const queuedBytes = followers.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
    if (queuedBytes <= MOST_QUEUED_SEGMENTS * this.#maxSegmentBytes) return
    for (const follower of followers) follower.clear()
  }

  #flush(): PackagerOutput[] {
    return [...this.#followers.values()].flatMap((follower) => this.#release(follower, Infinity))
  }

  #release(follower: Follower, progressTicks: number): PackagerOutput[] {
    const segments = follower.takeReady(progressTicks)
    const outputs: PackagerOutput[] = segments.map((segment) => ({ type: 'segment', segment }))
    if (follower.misaligned && !this.#warnedOfAlignment) {
      this.#warnedOfAlignment = true
      outputs.push({ type: 'warning', ...warnings.variantsNotAligned() })
    }
    return outputs
  }
}

/** What follows the main rendition: further video tracks with its sound, and further audio tracks. */
function planFollowers(
  program: Program,
  policy: TrackPolicy,
  { audio: mainAudio }: CarriedTracks,
): [RenditionName, CarriedTracks][] {
  const { videos, audios } = chooseTracks(program, policy)
  const variants = videos
    .slice(1)
    .map((video, index): [RenditionName, CarriedTracks] => [
      `video-${index + 2}`,
      carryTracks(program, { video, audio: mainAudio }),
    ])
  const sounds = audios
    .slice(1)
    .map((audio, index): [RenditionName, CarriedTracks] => [
      `audio-${index + 2}`,
      carryTracks(program, { audio }),
    ])
  return [...variants, ...sounds]
}
