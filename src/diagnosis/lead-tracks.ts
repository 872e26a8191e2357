/**
 * First video track and first audio track of a source: timestamps, key frames, A/V offset.
 *
 * @module
 */
import type { PesUnit } from '../mpegts/pes-unit.ts'
import type { DemuxerStats } from '../mpegts/demux/demuxer-stats.ts'
import { TICKS_PER_SEC } from '../mpegts/timestamps.ts'
import type { Program, Track } from '../mpegts/track.ts'
import { AvOffset } from './av-offset.ts'
import { KeyFrames } from './key-frames.ts'
import { TrackTimes } from './track-times.ts'
import type { WarningFact } from './warnings.ts'

/** Maximum delay between the starts of both tracks. The packager reports a later track as TRACK_SILENT. */
const MAX_START_SEC = 5

/** Time for which the offset at the start is reported. */
const START_US = 30_000_000

/** Calling order: `setProgram`, `push` each PES unit, `closeSecond` about once a second. */
export class LeadTracks {
  #videoPid: number | undefined
  #audioPid: number | undefined
  #video = new TrackTimes()
  #audio = new TrackTimes()
  #keyFrames = new KeyFrames()
  #offset = new AvOffset()
  /** First DTS of video minus first DTS of audio; undefined until both tracks have started, 0 if not to be reported. */
  #startOffsetSec: number | undefined
  #startedUs: number | undefined
  #hasMedia = false

  /** Timestamps of the first video track or, without video, of the first audio track. */
  get reference(): TrackTimes {
    return this.#videoPid === undefined ? this.#audio : this.#video
  }

  videoOf(program: Program | undefined): Track | undefined {
    return program?.tracks.find(({ pid }) => pid === this.#videoPid)
  }

  /** @returns whether the first video or audio track has changed; their counters then restart from 0 */
  setProgram({ tracks }: Program): boolean {
    const videoPid = tracks.find(({ kind }) => kind === 'video')?.pid
    const audioPid = tracks.find(({ kind }) => kind === 'audio')?.pid
    if (videoPid === this.#videoPid && audioPid === this.#audioPid) return false
    // Tracks that appear after the first media have no common start to compare.
    if (this.#hasMedia) this.#startOffsetSec = 0
    this.#videoPid = videoPid
    this.#audioPid = audioPid
    this.#video = new TrackTimes()
    this.#audio = new TrackTimes()
    this.#keyFrames = new KeyFrames()
    this.#offset = new AvOffset()
    return true
  }

  push(unit: PesUnit): void {
    const { kind, pid } = unit.track
    if (kind === 'data') return
    this.#hasMedia = true
    if (!unit.startsFrame) return
    if (pid === this.#videoPid) {
      this.#video.push(unit)
      this.#keyFrames.push(unit)
    } else if (pid === this.#audioPid) {
      this.#audio.push(unit)
      this.#offset.push(this.#audio, this.#video)
    } else return
    if (this.#startOffsetSec === undefined) this.#compareStarts()
  }

  /** @param isLossy  whether SRT packets were dropped in this second */
  closeSecond(isLossy: boolean, nowUs: number): void {
    if (isLossy) this.#keyFrames.skip()
    this.#video.learn()
    this.#offset.closeSecond()
    if (this.#startOffsetSec === undefined || this.#startOffsetSec === 0) return
    this.#startedUs ??= nowUs
    if (nowUs - this.#startedUs >= START_US) this.#startOffsetSec = 0
  }

  /**
   * Cumulative counters since the tracks changed. A PES packet without a PTS repeats a DTS without a fault of the
   * encoder, so the number of such packets on all tracks is subtracted from `dtsRepeated`.
   */
  count({ pesWithoutPts }: Readonly<DemuxerStats>) {
    return {
      frames: this.#video.frames,
      frameTicks: this.#video.playedTicks,
      ptsGaps: this.#video.gaps,
      missingTicks: this.#video.missingTicks,
      intraRefreshes: this.#keyFrames.intraRefreshes,
      playedTicks: this.reference.playedTicks,
      dtsRepeated: this.#video.repeated + this.#audio.repeated - pesWithoutPts,
      ptsBeforeDts: this.#video.early + this.#audio.early,
    }
  }

  facts({ segmentSec }: { readonly segmentSec: number }): WarningFact[] {
    const { steadySec: offsetSec, driftSec } = this.#offset
    const { intervals, openGops } = this.#keyFrames
    const facts: WarningFact[] = [
      { code: 'AV_SKEW', offsetSec, startOffsetSec: this.#startOffsetSec ?? 0 },
      { code: 'AV_DRIFT', driftSec },
      { code: 'OPEN_GOP', openGops },
    ]
    if (intervals === undefined) return facts
    const shortSec = intervals.shortTicks / TICKS_PER_SEC
    const longSec = intervals.longTicks / TICKS_PER_SEC
    return [...facts, { code: 'GOP_IRREGULAR', shortSec, longSec, segmentSec }]
  }

  /**
   * Compares the first timestamps. The offset is reported only if one track had between 0.5 s and `MAX_START_SEC` of
   * media before the first frame of the other track arrived.
   */
  #compareStarts(): void {
    const [video, audio] = [this.#video, this.#audio]
    const offsetSec = (video.firstTicks - audio.firstTicks) / TICKS_PER_SEC
    if (Number.isNaN(offsetSec)) return
    const aloneTicks = Math.max(
      video.latestTicks - video.firstTicks,
      audio.latestTicks - audio.firstTicks,
    )
    const aloneSec = aloneTicks / TICKS_PER_SEC
    this.#startOffsetSec = aloneSec > 0.5 && aloneSec < MAX_START_SEC ? offsetSec : 0
  }
}
