/**
 * What the media of an encoder says of the encoder: its tables, timestamps, key frames and clock, in words for whoever
 * runs it. What the segmenter meets is in `hls/source-warning.ts`, what the connection does in `link-health.ts`.
 *
 * Sans-IO: `handle` takes what the demuxer puts out, `observe` what was counted (4 times a second is plenty); `warnings`
 * are those that hold. Most begin by what the last 10 s were like and end by the last 30 s, so that none flickers.
 * Seconds in which the connection lost packets say nothing of the encoder and are left out.
 *
 * @module
 */
import type { DemuxerOutput } from '../mpegts/demux/demuxer-output.ts'
import type { PesUnit } from '../mpegts/pes-unit.ts'
import type { DemuxerStats } from '../mpegts/demux/demuxer-stats.ts'
import type { ProgramChoice } from '../mpegts/program-choice.ts'
import { TICKS_PER_SEC } from '../mpegts/timestamps.ts'
import type { Program } from '../mpegts/track.ts'
import { CountedSeconds, type Sum } from './counted-seconds.ts'
import * as say from './warnings.ts'
import { KeyFrames } from './key-frames.ts'
import type { Warning } from '../contract/report.ts'
import { SoundLead } from './av-offset.ts'
import { ShortageWatch, type PlaylistFigures } from './shortage-watch.ts'
import { SourceClock } from './source-clock.ts'
import { TrackTimes } from './track-times.ts'

const SECOND_US = 1_000_000
const BEGINS_BY_SEC = 10
const ENDS_BY_SEC = 30

const TABLES_DUE_US = 3 * SECOND_US
const MEDIA_DUE_US = 5 * SECOND_US

/** Sound that begins later than this is not late but missing, which the segmenter tells. */
const LATEST_START_SEC = 5

/** Muxers send pictures ahead of their sound, by as much as a decoder can hold. */
const MOST_SEC_BEHIND = 1.5

export interface DoctorOptions {
  readonly program: ProgramChoice
  /** A segment ends at the first key frame after this. */
  readonly segmentSec: number
}

/** What `observe` looks at. */
export interface IngestFigures extends PlaylistFigures {
  readonly stats: Readonly<DemuxerStats>
  /** Undefined until PAT and PMT were seen. */
  readonly program: Program | undefined
  /** That the PAT lists. */
  readonly programNumbers: readonly number[]
  /** That the connection gave up; only goes up. */
  readonly packetsDropped: number
}

/** Of one publication. */
export class IngestDoctor {
  readonly #options: DoctorOptions
  readonly #clock = new SourceClock()
  readonly #seconds = new CountedSeconds(ENDS_BY_SEC)
  #recent = this.#seconds.sum(BEGINS_BY_SEC)
  #longer = this.#seconds.sum(ENDS_BY_SEC)
  #warnings: readonly Warning[] = []
  #secondUs: number | undefined
  // Of the first video and the first audio track:
  #videoPid: number | undefined
  #audioPid: number | undefined
  #pictures = new TrackTimes()
  #sound = new TrackTimes()
  #keyFrames = new KeyFrames()
  #lead = new SoundLead()
  /** By which the sound began before the pictures; undefined until both did. */
  #startLeadSec: number | undefined
  #startedUs: number | undefined
  /** Of all tracks with pictures or sound. */
  #units = 0
  #unitsSeen = -1
  #mediaUs = 0
  #dataSinceUs: number | undefined
  #packetsDropped = 0
  #wasLossy = false
  readonly #shortage = new ShortageWatch()

  constructor(options: DoctorOptions) {
    this.#options = options
  }

  /** Those that hold, with the figures of now. */
  get warnings(): readonly Warning[] {
    return this.#warnings
  }

  handle(output: DemuxerOutput): void {
    if (output.type === 'unit') this.#handleUnit(output.unit)
    else if (output.type === 'program') this.#setProgram(output.program)
  }

  /** @returns the warnings that begin to hold */
  observe(figures: IngestFigures, nowUs: number): readonly Warning[] {
    if (figures.stats.packets + figures.stats.skippedBytes > 0) this.#dataSinceUs ??= nowUs
    if (this.#units !== this.#unitsSeen) this.#mediaUs = nowUs
    this.#unitsSeen = this.#units
    this.#clock.observe(this.#reference.latestTicks, nowUs)
    if (this.#secondUs !== undefined && nowUs - this.#secondUs < SECOND_US) return []
    this.#secondUs = nowUs
    this.#closeSecond(figures)
    const held = this.#warnings
    this.#warnings = [
      ...this.#judgeTables(figures, nowUs),
      ...this.#judgePackets(),
      ...this.#judgeTimestamps(figures),
      ...this.#judgeSound(nowUs),
      ...this.#judgeClock(),
      ...this.#judgeKeyFrames(),
      ...this.#judgeMemory(figures, nowUs),
    ]
    return this.#warnings.filter(({ code }) => !held.some((each) => each.code === code))
  }

  get #reference(): TrackTimes {
    return this.#videoPid === undefined ? this.#sound : this.#pictures
  }

  #setProgram({ tracks }: Program): void {
    const videoPid = tracks.find(({ kind }) => kind === 'video')?.pid
    const audioPid = tracks.find(({ kind }) => kind === 'audio')?.pid
    if (videoPid === this.#videoPid && audioPid === this.#audioPid) return
    // Only of the first program is known that both tracks begin with it.
    if (this.#units > 0) this.#startLeadSec = 0
    this.#videoPid = videoPid
    this.#audioPid = audioPid
    this.#pictures = new TrackTimes()
    this.#sound = new TrackTimes()
    this.#keyFrames = new KeyFrames()
    this.#lead = new SoundLead()
    this.#seconds.restart()
  }

  #handleUnit(unit: PesUnit): void {
    const { kind, pid } = unit.track
    if (kind === 'data') return
    this.#units++
    if (!unit.startsFrame) return
    if (pid === this.#videoPid) {
      this.#pictures.push(unit)
      this.#keyFrames.push(unit)
    } else if (pid === this.#audioPid) {
      this.#sound.push(unit)
      this.#lead.push(this.#sound, this.#pictures)
    } else return
    if (this.#startLeadSec === undefined) this.#compareStarts()
  }

  /** What one track sent before the other began is missing there; what they send at the same time may be far apart. */
  #compareStarts(): void {
    const [pictures, sound] = [this.#pictures, this.#sound]
    const leadSec = (pictures.firstTicks - sound.firstTicks) / TICKS_PER_SEC
    if (Number.isNaN(leadSec)) return
    const aloneTicks = Math.max(
      pictures.latestTicks - pictures.firstTicks,
      sound.latestTicks - sound.firstTicks,
    )
    const aloneSec = aloneTicks / TICKS_PER_SEC
    this.#startLeadSec = aloneSec > 0.5 && aloneSec < LATEST_START_SEC ? leadSec : 0
  }

  #closeSecond({ stats, packetsDropped }: IngestFigures): void {
    const [pictures, sound] = [this.#pictures, this.#sound]
    const isLossy = packetsDropped > this.#packetsDropped
    this.#seconds.push(
      {
        ...stats,
        pictures: pictures.units,
        pictureTicks: pictures.playedTicks,
        gaps: pictures.gaps,
        missingTicks: pictures.missingTicks,
        gradualRefreshes: this.#keyFrames.gradual,
        playedTicks: this.#reference.playedTicks,
        repeated: pictures.repeated + sound.repeated - stats.pesWithoutPts,
        early: pictures.early + sound.early,
      },
      // What was lost at the end of a second is missed in the next one.
      isLossy || this.#wasLossy,
    )
    if (isLossy) this.#keyFrames.skip()
    this.#packetsDropped = packetsDropped
    this.#wasLossy = isLossy
    this.#pictures.learn()
    this.#lead.closeSecond()
    this.#recent = this.#seconds.sum(BEGINS_BY_SEC)
    this.#longer = this.#seconds.sum(ENDS_BY_SEC)
  }

  #isHeld(code: string): boolean {
    return this.#warnings.some((warning) => warning.code === code)
  }

  /** What a warning is judged by that begins with one of what it counts, and ends with none. */
  #countFor(code: string): Sum {
    return this.#isHeld(code) ? this.#longer : this.#recent
  }

  *#judgeTables(figures: IngestFigures, nowUs: number): Generator<Warning> {
    const { stats, program, programNumbers } = figures
    const { program: choice } = this.#options
    const isSent = typeof choice !== 'number' || programNumbers.includes(choice)
    const isDue = nowUs - (this.#dataSinceUs ?? nowUs) >= TABLES_DUE_US
    const isSilent = nowUs - this.#mediaUs >= MEDIA_DUE_US
    if (stats.patSections === 0) {
      if (isDue) yield say.noPat()
      else if (isSilent) yield say.noMedia()
    } else if (!isSent) yield say.programNotFound(choice, programNumbers)
    else if (program === undefined) {
      if (isDue) yield say.noPmt(programNumbers)
    } else if (isSilent) yield say.noMedia()

    const { patSections, pmtSections, playedTicks, seconds } = this.#countFor('PSI_TOO_RARE')
    const tables = Math.min(patSections, pmtSections)
    const playedSec = playedTicks / TICKS_PER_SEC
    const leastTables = playedSec / (this.#isHeld('PSI_TOO_RARE') ? 1 : 2)
    if (seconds >= BEGINS_BY_SEC && tables < leastTables) {
      yield say.psiTooRare(playedSec / Math.max(tables, 1))
    }
  }

  *#judgePackets(): Generator<Warning> {
    const continuity = this.#countFor('CONTINUITY_ERRORS')
    if (continuity.continuityErrors > 0)
      yield say.continuityErrors(continuity.continuityErrors, continuity.seconds)
    const errors = this.#countFor('TRANSPORT_ERRORS')
    if (errors.transportErrors > 0)
      yield say.transportErrors(errors.transportErrors, errors.seconds)
    const scrambling = this.#countFor('SCRAMBLED')
    if (scrambling.scrambledPackets > 0)
      yield say.scrambled(scrambling.scrambledPackets, scrambling.seconds)
  }

  *#judgeTimestamps({ program }: IngestFigures): Generator<Warning> {
    const gaps = this.#countFor('PTS_GAPS')
    if (gaps.gaps > 0) yield say.ptsGaps(gaps.gaps, gaps.missingTicks / TICKS_PER_SEC, gaps.seconds)
    const repeated = this.#countFor('DTS_REPEATED')
    if (repeated.repeated > 0) yield say.dtsRepeated(repeated.repeated, repeated.seconds)
    const early = this.#countFor('PTS_BEFORE_DTS')
    if (early.early > 0) yield say.ptsBeforeDts(early.early, early.seconds)

    const video = program?.tracks.find(({ pid }) => pid === this.#videoPid)
    const announced = video?.parameters?.frameRate
    const { pictures, pictureTicks, seconds } = this.#recent
    if (announced === undefined || seconds < BEGINS_BY_SEC || pictureTicks === 0) return
    const measured = pictures / (pictureTicks / TICKS_PER_SEC)
    const most = this.#isHeld('FRAME_RATE_ODD') ? 0.05 : 0.1
    const isAnnounced = Math.abs(measured / announced - 1) <= most
    // Gaps explain it.
    if (gaps.gaps === 0 && !isAnnounced) yield say.frameRateOdd(measured, announced)
  }

  *#judgeSound(nowUs: number): Generator<Warning> {
    const startSec = this.#startLeadSec ?? 0
    if (startSec !== 0) this.#startedUs ??= nowUs
    const isNew = nowUs - (this.#startedUs ?? nowUs) < ENDS_BY_SEC * SECOND_US
    const apartSec = this.#lead.constantSec
    const easing = this.#isHeld('AV_SKEW') ? 0.8 : 1
    if (apartSec > 0.5 * easing || apartSec < -MOST_SEC_BEHIND * easing) {
      yield say.soundApart(apartSec)
    } else if (isNew && Math.abs(startSec) > 0.5) yield say.soundStartsApart(startSec)
    const { driftSec } = this.#lead
    if (Math.abs(driftSec) > (this.#isHeld('AV_DRIFT') ? 0.2 : 0.3)) yield say.soundDrifts(driftSec)
  }

  *#judgeClock(): Generator<Warning> {
    const { rate } = this.#clock
    const most = this.#isHeld('NOT_REAL_TIME') ? 0.05 : 0.1
    // What does not come at all is no question of speed.
    if (rate !== undefined && rate > 0.1 && Math.abs(rate - 1) > most) {
      yield say.notRealTime(rate)
      return
    }
    const ppm = this.#clock.driftPpm ?? 0
    if (Math.abs(ppm) > (this.#isHeld('CLOCK_DRIFT') ? 150 : 200)) yield say.clockDrift(ppm)
  }

  *#judgeKeyFrames(): Generator<Warning> {
    const { intervals, openGops } = this.#keyFrames
    if (intervals !== undefined) {
      const { shortTicks, longTicks } = intervals
      // Shorter ones make no segment uneven.
      const isLong = longTicks > this.#options.segmentSec * TICKS_PER_SEC * 1.1
      const mostTimes = this.#isHeld('GOP_IRREGULAR') ? 1.25 : 1.5
      if (isLong && longTicks > shortTicks * mostTimes) {
        yield say.gopIrregular(shortTicks / TICKS_PER_SEC, longTicks / TICKS_PER_SEC)
      }
    }
    if (openGops >= (this.#isHeld('OPEN_GOP') ? 1 : 2)) yield say.openGop()
    if (this.#countFor('INTRA_REFRESH').gradualRefreshes > 0) yield say.intraRefresh()
  }

  *#judgeMemory(figures: IngestFigures, nowUs: number): Generator<Warning> {
    this.#shortage.observe(figures, nowUs)
    if (this.#shortage.warning !== undefined) yield this.#shortage.warning
  }
}
