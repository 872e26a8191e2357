/**
 * Selection of the tracks to carry, without silent tracks. A track that the PMT lists but that sends no media would
 * delay the other tracks, or make players wait.
 *
 * @module
 */
import { decodeAdtsHeader } from '../../codec/adts.ts'
import { findAudioFrame } from '../../codec/audio-frame.ts'
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import { lacksChannels, type Program, type Track } from '../../mpegts/track.ts'
import { MAX_STEP_TICKS } from '../cut/timeline.ts'
import type { SourceFact } from '../source-fact.ts'
import {
  chooseTracks,
  selectTracks,
  type CarriedTracks,
  type TrackChoice,
  type RenditionPolicy,
} from './rendition-tracks.ts'

/** Duration of the media of one track, video or audio, after which the other track counts as silent. */
const MAX_SILENT_TICKS = 5 * TICKS_PER_SEC

/** Size of the AAC payload that is searched for a frame at once: frames may begin in one PES packet and end in the next. */
const SEARCHED_BYTES = 8192

const NOTHING = Buffer.alloc(0)

/**
 * Calling order: `setProgram`, then `push` every PES packet that `hasFrames`; `reset` when the encoder has left.
 */
export class TrackSelection {
  readonly #policy: RenditionPolicy
  #program: Program | undefined
  /** Choices for each format, that of the main rendition first. */
  #choices: readonly TrackChoice[] = []
  #wanted: CarriedTracks = { programNumber: 0, pcrPid: 0 }
  #seenPids = new Set<number>()
  #silentPids = new Set<number>()
  /** Payload of AAC tracks without a frame so far that is still to be searched, by PID. */
  readonly #frameless = new Map<number, Buffer>()
  /** PID of the track that sent last, video or audio. */
  #alonePid: number | undefined
  /** Duration of the media of `#alonePid` since the other track sent. */
  #aloneTicks = 0
  /** DTS of the newest PES packet of `#alonePid`. */
  #latestTicks = 0

  constructor(policy: RenditionPolicy) {
    this.#policy = policy
  }

  /** Tracks to carry from now on. */
  get wanted(): CarriedTracks {
    return this.#wanted
  }

  /** PIDs of tracks that are not carried until their media arrives. */
  get silentPids(): ReadonlySet<number> {
    return this.#silentPids
  }

  /** Facts about tracks that are not carried: unsupported or too many, or silent until their media arrives. */
  get facts(): readonly SourceFact[] {
    const isSilent = ({ pid }: Track) => this.#silentPids.has(pid)
    const silent = this.#program?.tracks.filter(isSilent) ?? []
    const facts: SourceFact[] = silent.map((track) => ({ code: 'TRACK_SILENT', track }))
    const [main, other = main] = this.#choices
    if (main === undefined || other === undefined) return facts
    const tooMany = this.#policy.policy === 'all'
    const leftOut = main.leftOut.filter((track) => other.leftOut.includes(track))
    const isDropped = (track: Track) =>
      main.leftOut.includes(track) || main.ungrouped.includes(track)
    const notInCmaf = [...other.leftOut, ...other.ungrouped].filter(
      (track) => !isDropped(track) && track.kind !== 'data',
    )
    if (notInCmaf.length > 0) facts.unshift({ code: 'TRACKS_NOT_IN_CMAF', tracks: notInCmaf })
    const ungrouped = [
      ...main.ungrouped,
      ...other.ungrouped.filter((track) => main.leftOut.includes(track)),
    ]
    if (ungrouped.length > 0) facts.unshift({ code: 'AUDIO_CODECS_DIFFER', tracks: ungrouped })
    if (leftOut.length > 0) facts.unshift({ code: 'TRACKS_LEFT_OUT', tracks: leftOut, tooMany })
    return facts
  }

  setProgram(program: Program): void {
    this.#program = program
    this.#frameless.clear()
    this.#select()
  }

  reset(): void {
    this.#seenPids.clear()
    this.#silentPids.clear()
    this.#frameless.clear()
    this.#alonePid = undefined
    this.#select()
    this.#choices = []
  }

  /**
   * Whether a PES packet is of a track that has had a frame, and is not left out for its channels. Encoders without an audio
   * input send AAC without any: players fail on it, so it counts as silence until the first frame.
   */
  hasFrames({ track, payload }: PesUnit): boolean {
    const { pid, codec, parameters } = track
    if (lacksChannels(track)) return this.#policy.policy === 'all'
    if (codec !== 'aac' || parameters !== undefined || this.#seenPids.has(pid)) return true
    const before = this.#frameless.get(pid) ?? NOTHING
    const bytes = Buffer.concat([before, payload])
    const isSearched = bytes.length >= SEARCHED_BYTES
    this.#frameless.set(pid, isSearched ? NOTHING : bytes)
    return isSearched && findAudioFrame(bytes, decodeAdtsHeader) !== undefined
  }

  /**
   * @param patienceTicks  minimum wait for silent video, in media of the audio
   * @returns whether a track counts as silent from this PES packet on, or sends again
   */
  push(unit: PesUnit, patienceTicks: number): boolean {
    const sendsAgain = this.#silentPids.delete(unit.track.pid)
    this.#seenPids.add(unit.track.pid)
    if (sendsAgain) this.#select()
    const silent = this.#findSilent(unit, patienceTicks)
    if (silent === undefined) return sendsAgain
    this.#silentPids.add(silent.pid)
    this.#select()
    return true
  }

  /** Finds a carried track that has sent nothing for too long. */
  #findSilent({ track, dtsTicks }: PesUnit, patienceTicks: number): Track | undefined {
    const { video, audio } = this.#wanted
    if (video === undefined || audio === undefined) return undefined
    if (track.pid === video.pid) {
      const aloneTicks = this.#measure(video.pid, dtsTicks)
      // Audio that has sent before may pause, since no segment waits for it.
      return aloneTicks > MAX_SILENT_TICKS && !this.#seenPids.has(audio.pid) ? audio : undefined
    }
    if (track.pid !== audio.pid) return undefined
    const aloneTicks = this.#measure(audio.pid, dtsTicks)
    return aloneTicks > Math.max(MAX_SILENT_TICKS, patienceTicks) ? video : undefined
  }

  #measure(pid: number, ticks: number): number {
    const stepTicks = Math.min(Math.max(ticks - this.#latestTicks, 0), MAX_STEP_TICKS)
    this.#aloneTicks = pid === this.#alonePid ? this.#aloneTicks + stepTicks : 0
    this.#alonePid = pid
    this.#latestTicks = ticks
    return this.#aloneTicks
  }

  #select(): void {
    if (this.#program === undefined) return
    const { formats, policy } = this.#policy
    const [program, silentPids] = [this.#program, this.#silentPids]
    this.#choices = formats.map((format) => chooseTracks(program, policy, { silentPids, format }))
    const [main] = this.#choices
    if (main !== undefined) this.#wanted = selectTracks(program, main, silentPids)
  }
}
