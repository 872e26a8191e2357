/**
 * Constant presence of audio in a presentation with video. Players set up their decoders once: hls.js fails if audio
 * starts after video, and waits forever if audio ends. So silence replaces audio that is no longer in the PMT, and
 * audio that starts later is dropped, unless the policy is `all`.
 *
 * @module
 */
import { chooseTracks, type RenditionPolicy } from './rendition-tracks.ts'
import type { DemuxerOutput } from '../../mpegts/demux/demuxer.ts'
import { Silence } from '../../mpegts/mux/silence.ts'
import { freePid } from '../../mpegts/packet.ts'
import type { Program, Track } from '../../mpegts/track.ts'
import type { SourceFact } from '../source-fact.ts'

/** Inputs: `push` every output of the demuxer; `begin` after the first segment, `reset` when the encoder has left. */
export class SteadyAudio {
  readonly #policy: RenditionPolicy
  /** Audio of the first segment, `none` for video alone; undefined before that segment, and if it has no video. */
  #audio: Track | 'none' | undefined
  #begun = false
  #silence: Silence | undefined
  /** PID of the video that the silence is synchronized with. */
  #videoPid: number | undefined
  #droppedPids = new Set<number>()

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

  /** Current facts. */
  get facts(): readonly SourceFact[] {
    if (this.#silence !== undefined) return [{ code: 'AUDIO_GONE' }]
    return this.#droppedPids.size > 0 ? [{ code: 'AUDIO_TOO_LATE' }] : []
  }

  /** Ends the silence and the dropping of late audio. */
  reset(): void {
    this.#silence = undefined
    this.#droppedPids.clear()
  }

  /** @returns the output, followed by the silence that is due; nothing for late audio */
  push(output: DemuxerOutput): readonly DemuxerOutput[] {
    if (output.type === 'program') {
      return [{ ...output, program: this.#steady(output.program) }]
    }
    if (output.type !== 'unit') return [output]
    const { track, dtsTicks } = output.unit
    if (this.#droppedPids.has(track.pid)) return []
    if (this.#silence === undefined || track.pid !== this.#videoPid) return [output]
    const silent = this.#silence.takeUntil(dtsTicks)
    return [output, ...silent.map((unit) => ({ type: 'unit', unit }) as const)]
  }

  #steady(program: Program): Program {
    const { formats, policy } = this.#policy
    const choices = formats.map((format) => chooseTracks(program, policy, { format }))
    const audios = choices.flatMap((choice) => choice.audios)
    const video = choices[0]?.videos[0]
    const audio = video === undefined ? undefined : this.#audio
    this.#videoPid = video?.pid
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
