/**
 * Constant presence of audio and video in a presentation with both. Players set up their decoders once: hls.js fails if audio
 * starts after video, and waits forever if audio ends. So silence replaces audio that is no longer in the PMT, sends
 * nothing, or has another format before the next key frame; audio whose clock leaves that of the video is moved back to it;
 * and audio that starts later is dropped, unless the policy is `all`. The main video is held while it stays away beside audio.
 *
 * @module
 */
import { MAX_STEP_TICKS } from '../cut/timeline.ts'
import { chooseTracks, type RenditionPolicy } from './rendition-tracks.ts'
import type { DemuxerOutput } from '../../mpegts/demux/demuxer.ts'
import { Silence } from '../../mpegts/mux/silence.ts'
import { freePid } from '../../mpegts/packet.ts'
import type { PesUnit } from '../../mpegts/pes-unit.ts'
import { TICKS_PER_SEC } from '../../mpegts/timestamps.ts'
import type { Program, Track } from '../../mpegts/track.ts'
import type { SourceFact } from '../source-fact.ts'
import { AnchoredAudio } from './anchored-audio.ts'
import { HeldVideo } from './held-video.ts'

/** Time after which video that is held counts as silent. */
const MAX_SILENT_TICKS = 5 * TICKS_PER_SEC

type ProgramOutput = Extract<DemuxerOutput, { readonly type: 'program' }>

/** Inputs: `push` every output of the demuxer; `begin` after the first segment, `reset` when the encoder has left. */
export class SteadyTracks {
  readonly #policy: RenditionPolicy
  /** Audio of the first segment, `none` for video alone; undefined before that segment, and if it has no video. */
  #audio: Track | 'none' | undefined
  #begun = false
  #silence: Silence | undefined
  /** PID of the video that the silence is synchronized with. */
  #videoPid: number | undefined
  #droppedPids = new Set<number>()
  /** The newest program as it was sent. */
  #program: Program | undefined
  /** PIDs of the audio that is carried. */
  #audioPids = new Set<number>()
  /** Carried audio that has sent media, by PID. */
  readonly #lines = new Map<number, AnchoredAudio>()
  /** PIDs of audio that pauses and is replaced as if it had left the program. */
  readonly #absentPids = new Set<number>()
  #video = new HeldVideo()
  /** Number of PES packets of video dropped, see `HeldVideo`. */
  #droppedVideoPackets = 0
  /** Number of PES packets of late audio dropped. */
  #droppedAudioPackets = 0
  /** DTS of the newest PES packet of the video. */
  #videoTicks: number | undefined
  /** Duration of the media of the video, without jumps of its clock. */
  #mediaTicks = 0

  /** @param earlier  tracks of the segments before the first one; empty for none */
  constructor(policy: RenditionPolicy, earlier: readonly Track[] = []) {
    this.#policy = policy
    if (earlier.length > 0) this.begin(earlier)
  }

  /** Whether the tracks of the first segment are known. */
  get begun(): boolean {
    return this.#begun
  }

  /** @param tracks  tracks of the first segment */
  begin(tracks: readonly Track[]): void {
    this.#begun = true
    if (!tracks.some(({ kind }) => kind === 'video')) return
    this.#audio = tracks.find(({ kind }) => kind === 'audio') ?? 'none'
  }

  /** Number of PES packets of video dropped behind a pause: they refer to frames that were not repeated. */
  get droppedVideoPackets(): number {
    return this.#droppedVideoPackets
  }

  /** Number of PES packets dropped of audio that the presentation began without. */
  get droppedAudioPackets(): number {
    return this.#droppedAudioPackets
  }

  /** Current facts. */
  get facts(): readonly SourceFact[] {
    const lines = [...this.#lines.values()]
    const shiftTicks = lines.find((line) => line.shiftTicks !== 0)?.shiftTicks
    const facts: SourceFact[] =
      shiftTicks === undefined
        ? []
        : [{ code: 'AUDIO_REALIGNED', shiftSec: shiftTicks / TICKS_PER_SEC }]
    const { track, heldTicks } = this.#video
    if (track !== undefined && heldTicks > MAX_SILENT_TICKS)
      facts.push({ code: 'TRACK_SILENT', track, isHeld: true })
    if (this.#silence !== undefined || lines.some(({ paused }) => paused))
      facts.push({ code: 'AUDIO_GONE' })
    else if (this.#droppedPids.size > 0) facts.push({ code: 'AUDIO_TOO_LATE' })
    return facts
  }

  /** Memory of the newest GOP and of the audio that waits. */
  get heldBytes(): number {
    let sizeBytes = this.#video.sizeBytes
    for (const { heldBytes } of this.#lines.values()) sizeBytes += heldBytes
    return sizeBytes
  }

  /** Ends the silence and the dropping of late audio; the next encoder has clocks of its own. */
  reset(): void {
    this.#silence = undefined
    this.#droppedPids.clear()
    this.#lines.clear()
    this.#absentPids.clear()
    this.#video = new HeldVideo()
    this.#videoTicks = undefined
  }

  /** @returns the outputs that are due: silence beside video, none for late audio, and audio on the clock of the video */
  push(output: DemuxerOutput): readonly DemuxerOutput[] {
    if (output.type === 'program') {
      this.#program = output.program
      for (const [pid, line] of this.#lines) {
        const track = output.program.tracks.find((each) => each.pid === pid)
        if (track === undefined) this.#lines.delete(pid)
        else line.describe(track)
      }
      return [{ ...output, program: this.#steady(output.program) }]
    }
    if (output.type !== 'unit') return [output]
    const { unit } = output
    if (this.#droppedPids.has(unit.track.pid)) {
      this.#droppedAudioPackets++
      return []
    }
    if (unit.track.pid === this.#videoPid) return this.#pushVideo(output)
    const { pid } = unit.track
    const isFollowed = this.#audioPids.has(pid) || this.#absentPids.has(pid)
    if (!isFollowed || this.#videoTicks === undefined) return [output]
    return this.#pushAudio(unit, this.#videoTicks)
  }

  #pushVideo(output: Extract<DemuxerOutput, { readonly type: 'unit' }>): readonly DemuxerOutput[] {
    const { unit } = output
    const { dtsTicks, randomAccess, damaged } = unit
    const besideTicks = this.#besideTicks
    const units = this.#video.push(unit, besideTicks)
    if (units === undefined) {
      this.#droppedVideoPackets++
      return []
    }
    this.#advance(dtsTicks, besideTicks)
    const outputs: DemuxerOutput[] = []
    for (const [pid, line] of this.#lines) {
      const silent = line.advance({ latestTicks: dtsTicks, mediaTicks: this.#mediaTicks })
      outputs.push(...silent.map(toOutput))
      if (randomAccess && !damaged) outputs.push(...line.changeFormat(dtsTicks).map(toOutput))
      if (line.lacksSilence && !this.#absentPids.has(pid)) {
        this.#absentPids.add(pid)
        outputs.push(...this.#changeProgram())
      }
    }
    outputs.push(...units.map((each) => (each === unit ? output : toOutput(each))))
    if (this.#silence !== undefined)
      outputs.push(...this.#silence.takeUntil(dtsTicks).map(toOutput))
    return outputs
  }

  #pushAudio(unit: PesUnit, latestTicks: number): readonly DemuxerOutput[] {
    const { pid } = unit.track
    const line = this.#lines.get(pid) ?? new AnchoredAudio(unit.track)
    this.#lines.set(pid, line)
    const units = line.push(unit, { latestTicks, mediaTicks: this.#mediaTicks }).map(toOutput)
    // Before the audio: it may be that which ends the wait for video.
    units.unshift(...this.#video.fill(line.aloneTicks).map(toOutput))
    if (line.lacksSilence || !this.#absentPids.delete(pid)) return units
    return [...this.#changeProgram(), ...units]
  }

  /** Duration of the audio since the newest PES packet of the video. */
  get #besideTicks(): number {
    let ticks = 0
    for (const { aloneTicks } of this.#lines.values()) ticks = Math.max(ticks, aloneTicks)
    return ticks
  }

  /** Takes a DTS of the video: a long step without as much audio beside it is a jump of its clock. */
  #advance(dtsTicks: number, besideTicks: number): void {
    const stepTicks = dtsTicks - (this.#videoTicks ?? dtsTicks)
    const isShort = Math.abs(stepTicks) <= MAX_STEP_TICKS
    const isMedia = isShort || Math.abs(stepTicks - besideTicks) <= MAX_STEP_TICKS
    const pausedTicks = besideTicks > MAX_STEP_TICKS ? besideTicks : this.#video.frameTicks
    const mediaTicks = isMedia ? Math.max(0, stepTicks) : pausedTicks
    if (!isMedia) for (const line of this.#lines.values()) line.jump(stepTicks - mediaTicks)
    this.#mediaTicks += mediaTicks
    this.#videoTicks = dtsTicks
  }

  /** Outputs the program again, with the audio replaced that is absent now. */
  #changeProgram(): readonly ProgramOutput[] {
    if (this.#program === undefined) return []
    return [{ type: 'program', program: this.#steady(this.#program), layoutChanged: true }]
  }

  #steady(sent: Program): Program {
    const present = sent.tracks.filter(({ pid }) => !this.#absentPids.has(pid))
    const program = present.length === sent.tracks.length ? sent : { ...sent, tracks: present }
    const { formats, policy } = this.#policy
    const choices = formats.map((format) => chooseTracks(program, policy, { format }))
    const audios = choices.flatMap((choice) => choice.audios)
    const video = choices[0]?.videos[0]
    const audio = video === undefined ? undefined : this.#audio
    if (video?.pid !== this.#videoPid) {
      this.#lines.clear()
      this.#videoTicks = undefined
    }
    this.#video.describe(video)
    this.#videoPid = video?.pid
    this.#audioPids = new Set(audios.map(({ pid }) => pid))
    this.#droppedPids.clear()
    if (audio === 'none' && policy === 'compatible') {
      for (const { pid } of audios) this.#droppedPids.add(pid)
      return { ...program, tracks: program.tracks.filter(({ kind }) => kind !== 'audio') }
    }
    if (audio === undefined || audio === 'none' || audios.length > 0) {
      this.#silence = undefined
      return program
    }
    const pid = freePid(audio.pid, [program.pcrPid, ...program.tracks.map((track) => track.pid)])
    if (this.#silence?.track.pid !== pid) this.#silence = new Silence(pid, audio)
    return { ...program, tracks: [...program.tracks, this.#silence.track] }
  }
}

function toOutput(unit: PesUnit): DemuxerOutput {
  return { type: 'unit', unit }
}
