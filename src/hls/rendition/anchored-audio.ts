/**
 * Audio of one track on the clock of the video. Silence replaces it while it stays away, and from a change of its format up to
 * the next key frame, with which another format can begin. Its times are moved once its clock or that of the video has jumped
 * alone: encoders restart one of the two, and viewers would wait for audio for ever.
 *
 * @module
 */
import { storePackets } from '../../mpegts/mux/packet-memory.ts'
import { shiftUnit } from '../../mpegts/mux/shift-unit.ts'
import { Silence } from '../../mpegts/mux/silence.ts'
import { memoryOf, type PesUnit } from '../../mpegts/pes-unit.ts'
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import { isSameTrackLayout, type Track } from '../../mpegts/track.ts'
import { MAX_SKEW_TICKS, MAX_STEP_TICKS } from '../cut/timeline.ts'

/** Time of the video. */
export interface VideoTime {
  /** DTS of its newest PES packet. */
  readonly latestTicks: number
  /** Duration of its media, without jumps of its clock. */
  readonly mediaTicks: number
}

/** Media of the video without audio after which audio pauses: segments wait as long for it. */
const PAUSE_TICKS = 1 * TICKS_PER_SEC

/** Time by which silence stays behind the audio that may come: the tracks of a program arrive in turns. */
const MARGIN_TICKS = 0.25 * TICKS_PER_SEC

/**
 * Media after which a jump is that of one track alone: of audio, beside that by which it is ahead of the video, and of
 * video, so that audio which was late and comes at once is none.
 */
const HOLD_TICKS = 0.5 * TICKS_PER_SEC
const HOLD_VIDEO_TICKS = 0.25 * TICKS_PER_SEC

/** Longest silence at once: none is made for an hour in which the video was away as well. */
const MAX_SILENCE_TICKS = 10 * TICKS_PER_SEC

/** Distance from the clock of the video that is none: times as sent stay as they are. */
const MAX_UNSEEN_TICKS = 0.05 * TICKS_PER_SEC

/** Bounds of the audio that waits for the other track to jump too: its memory is that of 1 MiB of transport packets. */
const MAX_HELD_PACKETS = 512
const MAX_HELD_BYTES = 2.5 * 1024 * 1024

/**
 * Inputs: `describe` the track with each program, `push` each of its PES packets, `advance` with each one of the video, then
 * `changeFormat` with each key frame; `jump` when the clock of the video jumps. Outputs: PES packets on the clock of the video.
 */
export class AnchoredAudio {
  /** In the format that is carried. */
  #track: Track
  /** In another format, until it is carried. */
  #next: Track | undefined
  /** Whether the clock of the video has jumped since its newest key frame: nothing is carried then. */
  #awaitsKeyFrame = false
  /** End of the audio so far, on the clock of the video; undefined before the first. */
  #endTicks: number | undefined
  /** Media of the video at the newest PES packet of this track, with that of this track beyond it. */
  #sentAtTicks = 0
  /** End of the newest PES packet that was output, beyond that. */
  #leadTicks = 0
  /** Added to the times as sent. */
  #shiftTicks = 0
  /** DTS of the newest PES packet as sent, and its distance from the one before. */
  #latestTicks: number | undefined
  #stepTicks = 0
  /** Whether the clock of this track, or that of the video, has jumped since then. */
  #hasJumped = false
  #videoHasJumped = false
  /** Copies of the newest PES packets, whose times follow neither the audio before nor the video. */
  #held: PesUnit[] = []
  #heldBytes = 0
  /** Media of the video at the first of them. */
  #heldAtTicks = 0
  #silence: Silence | undefined
  #aloneTicks = 0
  /** Media of the video at its newest PES packet; undefined before the first one of this track. */
  #advancedTicks: number | undefined
  #paused = false

  constructor(track: Track) {
    this.#track = track
  }

  /** Duration of the audio without video beside it. */
  get aloneTicks(): number {
    return this.#aloneTicks
  }

  /** Memory of the PES packets that wait. */
  get heldBytes(): number {
    return this.#heldBytes
  }

  /** Whether it stays away, so that silence is due. */
  get paused(): boolean {
    return this.#paused
  }

  /** Whether the silence is in a format of its own, and so in another track. */
  get lacksSilence(): boolean {
    return this.#paused && this.#silence === undefined
  }

  /** Time by which it is moved; 0 for times as sent. */
  get shiftTicks(): number {
    return this.#shiftTicks
  }

  /** Takes a description of the track. Without silence in its format, another format is not replaced. */
  describe(track: Track): void {
    const isSame = isSameTrackLayout(track, this.#track)
    if (!isSame && this.#endTicks !== undefined && !this.#awaitsKeyFrame)
      this.#silence ??= silenceLike(this.#track, this.#endTicks)
    if (isSame || this.#silence === undefined) this.#track = track
    this.#next = this.#track === track ? undefined : track
  }

  /** @returns none while it is unclear whether one track alone has jumped: they are returned later */
  push(unit: PesUnit, video: VideoTime): PesUnit[] {
    const { dtsTicks } = unit
    const stepTicks = dtsTicks - (this.#latestTicks ?? dtsTicks)
    const continues = Math.abs(stepTicks) <= MAX_STEP_TICKS
    this.#latestTicks = dtsTicks
    this.#advancedTicks ??= video.mediaTicks
    if (continues && stepTicks > 0) {
      this.#stepTicks = stepTicks
      this.#aloneTicks += stepTicks
    }
    this.#sentAtTicks = video.mediaTicks + this.#aloneTicks
    this.#hasJumped ||= !continues
    this.#endTicks ??= isNear(dtsTicks, video.latestTicks, MAX_SKEW_TICKS)
      ? dtsTicks
      : video.latestTicks
    // Times that do not go on are no clock to follow.
    const outputs = continues ? [] : this.#release()
    // No key frame comes while the video is away.
    if (this.#aloneTicks > PAUSE_TICKS) outputs.push(...this.changeFormat(this.#endTicks))
    if (this.#isInStep(dtsTicks, this.#endTicks)) {
      outputs.push(...this.#release(), ...this.#accept(unit, video))
      return outputs
    }
    this.#hold(unit, video)
    if (this.#hasLeft(this.#endTicks, video)) {
      const shiftTicks = this.#endTicks - this.#held[0]!.dtsTicks
      this.#shiftTicks = isNear(shiftTicks, 0, MAX_UNSEEN_TICKS) ? 0 : shiftTicks
      for (const held of this.#release()) outputs.push(...this.#accept(held, video))
    }
    return outputs
  }

  /** @returns the silence that is due before a PES packet of the video, behind what was held and stays alone */
  advance({ latestTicks, mediaTicks }: VideoTime): PesUnit[] {
    // A frame may come late, as the one before a pause does whose PES packet has no length: the audio beside it is that of the
    // pause. Twice the step, so that nothing adds up where both go on.
    const stepTicks = mediaTicks - (this.#advancedTicks ?? mediaTicks)
    this.#advancedTicks = mediaTicks
    this.#aloneTicks = Math.max(0, this.#aloneTicks - 2 * stepTicks)
    if (this.#endTicks === undefined || mediaTicks - this.#sentAtTicks <= PAUSE_TICKS) return []
    // Video in bursts of seconds comes behind its audio.
    if (latestTicks < this.#endTicks) return []
    const outputs = this.#release()
    const dueTicks = mediaTicks + this.#leadTicks - MARGIN_TICKS
    if (!this.#paused) this.#silence ??= silenceLike(this.#track, this.#endTicks)
    this.#paused = true
    outputs.push(...this.#fill(dueTicks))
    this.#endTicks = this.#silence?.endTicks ?? dueTicks
    return outputs
  }

  /** @returns the rest of the silence before a key frame of the video, if another format begins with it */
  changeFormat(ticks: number): PesUnit[] {
    this.#awaitsKeyFrame = false
    if (this.#next === undefined) return []
    const silent = this.#fill(ticks, 1)
    this.#track = this.#next
    this.#next = undefined
    this.#silence = this.#paused ? silenceLike(this.#track, this.#endTicks ?? ticks) : undefined
    return silent
  }

  /** @param ticks  step of the clock of the video, without the duration of its media */
  jump(ticks: number): void {
    if (this.#endTicks === undefined) return
    this.changeFormat(this.#endTicks)
    this.#awaitsKeyFrame = true
    this.#endTicks += ticks
    this.#leadTicks += ticks
    this.#silence?.start(this.#endTicks)
    this.#videoHasJumped = true
  }

  /** Whether a PES packet follows the audio so far; where both tracks have jumped, whether it is beside the video. */
  #isInStep(dtsTicks: number, endTicks: number): boolean {
    if (this.#hasJumped && this.#videoHasJumped && isNear(dtsTicks, endTicks, MAX_SKEW_TICKS)) {
      this.#shiftTicks = 0
      return true
    }
    return isNear(dtsTicks + this.#shiftTicks, endTicks, MAX_STEP_TICKS)
  }

  /** @returns it on the clock of the video, behind the rest of the silence, or silence in its place */
  #accept(unit: PesUnit, { latestTicks }: VideoTime): PesUnit[] {
    const ticks = unit.dtsTicks + this.#shiftTicks
    const isReplaced = this.#next !== undefined
    // Silence ahead of the video would be behind the key frame with which the other format begins.
    const silent = isReplaced ? this.#fill(Math.min(ticks, latestTicks)) : this.#fill(ticks, 1)
    if (!isReplaced) this.#silence = undefined
    this.#paused = false
    this.#hasJumped = false
    this.#videoHasJumped = false
    this.#endTicks = ticks + this.#stepTicks
    this.#leadTicks = this.#endTicks - this.#sentAtTicks
    if (isReplaced) return silent
    return [...silent, this.#shiftTicks === 0 ? unit : shiftUnit(unit, this.#shiftTicks)]
  }

  /** @returns the silence that is due, or the newest of it */
  #fill(untilTicks: number, minFrames?: number): PesUnit[] {
    const silence = this.#silence
    if (silence === undefined) return []
    const fromTicks = untilTicks - MAX_SILENCE_TICKS
    if (silence.endTicks < fromTicks) silence.start(fromTicks)
    return silence.fill(untilTicks, minFrames)
  }

  #hold(unit: PesUnit, { mediaTicks }: VideoTime): void {
    if (this.#held.length === 0) this.#heldAtTicks = mediaTicks
    const chunks = [storePackets(unit.chunks, unit.sizeBytes)]
    this.#held.push({ ...unit, chunks })
    this.#heldBytes += memoryOf(unit)
  }

  /** Whether the track is for good on another clock than the audio before and the video. */
  #hasLeft(endTicks: number, { latestTicks, mediaTicks }: VideoTime): boolean {
    if (this.#held.length > MAX_HELD_PACKETS || this.#heldBytes > MAX_HELD_BYTES) return true
    const aheadTicks = Math.min(Math.max(0, endTicks - latestTicks), MAX_SKEW_TICKS)
    const heldTicks = this.#held.at(-1)!.dtsTicks - this.#held[0]!.dtsTicks
    const besideTicks = mediaTicks - this.#heldAtTicks
    return heldTicks >= HOLD_TICKS + aheadTicks && besideTicks >= HOLD_VIDEO_TICKS
  }

  #release(): PesUnit[] {
    const held = this.#held
    this.#held = []
    this.#heldBytes = 0
    return held
  }
}

/** @returns silence in the format of the track; undefined where none is known */
function silenceLike(track: Track, fromTicks: number): Silence | undefined {
  const silence = new Silence(track.pid, track)
  if (!isSameTrackLayout(track, silence.track)) return undefined
  if (track.parameters?.codecString !== silence.track.parameters?.codecString) return undefined
  silence.start(fromTicks)
  return silence
}

function isNear(a: number, b: number, maxTicks: number): boolean {
  return Math.abs(a - b) <= maxTicks
}
