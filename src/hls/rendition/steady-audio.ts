/**
 * A presentation keeps the sound it began with. Players set up their decoders once: hls.js fails when sound comes to
 * pictures that had none, and waits for ever where it ends. So sound that is gone becomes silence, and sound that comes
 * later is left out.
 *
 * @module
 */
import { chooseTracks, type TrackPolicy } from './carried-tracks.ts'
import type { DemuxerOutput } from '../../mpegts/demux/demuxer-output.ts'
import { Silence } from '../../mpegts/mux/silence.ts'
import { freePid } from '../../mpegts/packet.ts'
import type { Program, Track } from '../../mpegts/track.ts'
import type { SourceFact } from '../source-fact.ts'

/** `begin` with the tracks of the first segment; everything that goes to the segments goes through `push`. */
export class SteadySound {
  readonly #policy: TrackPolicy
  /** What it began with; undefined before, and where it began without pictures. */
  #sound: Track | 'none' | undefined
  #silence: Silence | undefined
  /** Of the pictures that the silence accompanies. */
  #videoPid: number | undefined
  #leftOutPids = new Set<number>()

  constructor(policy: TrackPolicy) {
    this.#policy = policy
  }

  /** @param tracks  of the first segment */
  begin(tracks: readonly Track[]): void {
    if (!tracks.some(({ kind }) => kind === 'video')) return
    this.#sound = tracks.find(({ kind }) => kind === 'audio') ?? 'none'
  }

  /** Facts that hold now. */
  get facts(): readonly SourceFact[] {
    if (this.#silence !== undefined) return [{ code: 'SOUND_GONE' }]
    return this.#leftOutPids.size > 0 ? [{ code: 'SOUND_TOO_LATE' }] : []
  }

  push(output: DemuxerOutput): readonly DemuxerOutput[] {
    if (output.type === 'program') {
      return [{ ...output, program: this.#steady(output.program) }]
    }
    if (output.type !== 'unit') return [output]
    const { track, dtsTicks } = output.unit
    if (this.#leftOutPids.has(track.pid)) return []
    if (this.#silence === undefined || track.pid !== this.#videoPid) return [output]
    const silent = this.#silence.takeUntil(dtsTicks)
    return [output, ...silent.map((unit) => ({ type: 'unit', unit }) as const)]
  }

  #steady(program: Program): Program {
    const { videos, audios } = chooseTracks(program, this.#policy)
    const [video] = videos
    const sound = video === undefined ? undefined : this.#sound
    this.#videoPid = video?.pid
    this.#leftOutPids.clear()
    if (sound === 'none' && this.#policy === 'compatible') {
      for (const { pid } of audios) this.#leftOutPids.add(pid)
      return { ...program, tracks: program.tracks.filter(({ kind }) => kind !== 'audio') }
    }
    if (sound === undefined || sound === 'none' || audios.length > 0) {
      this.#silence = undefined
      return program
    }
    const pid = freePid(sound.pid, [program.pcrPid, ...program.tracks.map((track) => track.pid)])
    if (this.#silence?.track.pid !== pid) this.#silence = new Silence(pid, sound)
    return { ...program, tracks: [...program.tracks, this.#silence.track] }
  }
}
