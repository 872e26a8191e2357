/**
 * Facts about an encoder from its media: tables, timestamps, key frames and clock. The rules in `warnings.ts` decide
 * which facts are warnings.
 *
 * Sans-IO: `handle` takes each output of the demuxer, `observe` takes the counters 4 times a second. Sums of events
 * exclude each second in which the connection lost packets, and the second after it: that loss is not the encoder's.
 *
 * @module
 */
import type { DemuxerOutput } from '../mpegts/demux/demuxer.ts'
import type { DemuxerStats } from '../mpegts/demux/demuxer-stats.ts'
import type { ProgramChoice } from '../mpegts/program-choice.ts'
import { TICKS_PER_SEC } from '../mpegts/timestamps.ts'
import type { Program } from '../mpegts/track.ts'
import { ArrivalWatch } from './arrival-watch.ts'
import { CountedSeconds } from './counted-seconds.ts'
import { LeadTracks } from './lead-tracks.ts'
import { ShortageWatch, type PlaylistFigures } from './shortage-watch.ts'
import { SourceClock } from './source-clock.ts'
import type { WarningFact } from './warnings.ts'

const SECOND_US = 1_000_000

/** Number of seconds over which rates are averaged. */
const RATE_SEC = 10
/** Number of seconds over which events are counted. */
const EVENT_SEC = 30

/** Minimum rate compared with real time, in seconds of media per second; below it, media is missing, not slow. */
const MIN_RATE = 0.1

interface SourceMonitorOptions {
  readonly program: ProgramChoice
  /** Configured duration of a segment, which ends at the first key frame after 90 % of it. */
  readonly segmentSec: number
}

/** Input of `observe`. */
interface SourceFigures extends PlaylistFigures {
  readonly stats: Readonly<DemuxerStats>
  /** Carried program; undefined until PAT and PMT have arrived. */
  readonly program: Program | undefined
  /** Programs that the PAT lists. */
  readonly programNumbers: readonly number[]
  /** Number of packets that did not arrive in time on the connection; only increases. */
  readonly packetsDropped: number
}

/** Monitor of one publication. */
export class SourceMonitor {
  readonly #options: SourceMonitorOptions
  readonly #clock = new SourceClock()
  readonly #seconds = new CountedSeconds(EVENT_SEC)
  readonly #arrival: ArrivalWatch
  readonly #tracks = new LeadTracks()
  readonly #shortage = new ShortageWatch()
  #secondUs = -Infinity
  #packetsDropped = 0
  #wasLossy = false
  #facts: readonly WarningFact[] = []

  constructor(options: SourceMonitorOptions) {
    this.#options = options
    this.#arrival = new ArrivalWatch(options.program)
  }

  handle(output: DemuxerOutput): void {
    if (output.type === 'unit') {
      this.#arrival.push(output.unit)
      this.#tracks.push(output.unit)
    } else if (output.type === 'program' && this.#tracks.setProgram(output.program)) {
      this.#seconds.restart()
    }
  }

  /** @returns all current facts; all but CACHE_TOO_SMALL are measured once a second */
  observe(figures: SourceFigures, nowUs: number): readonly WarningFact[] {
    this.#arrival.observe(figures, nowUs)
    this.#clock.observe(this.#tracks.reference.latestTicks, nowUs)
    if (nowUs - this.#secondUs >= SECOND_US) {
      this.#secondUs = nowUs
      this.#closeSecond(figures, nowUs)
      this.#facts = [
        ...this.#arrival.facts(figures, nowUs),
        ...this.#countEvents(),
        ...this.#measureRates(figures),
        ...this.#tracks.facts(this.#options),
      ]
    }
    return [...this.#facts, { code: 'CACHE_TOO_SMALL', ...this.#shortage.observe(figures) }]
  }

  #closeSecond({ stats, packetsDropped }: SourceFigures, nowUs: number): void {
    const isLossy = packetsDropped > this.#packetsDropped
    // A loss at the end of a second may cause errors in the next second.
    const isSkipped = isLossy || this.#wasLossy
    this.#seconds.push({ ...stats, ...this.#tracks.count(stats) }, isSkipped)
    this.#tracks.closeSecond(isLossy, nowUs)
    this.#packetsDropped = packetsDropped
    this.#wasLossy = isLossy
  }

  #countEvents(): WarningFact[] {
    const sum = this.#seconds.sum()
    const events = (count: number) => ({ count, spanSec: sum.seconds })
    const missingSec = sum.missingTicks / TICKS_PER_SEC
    return [
      { code: 'CONTINUITY_ERRORS', ...events(sum.continuityErrors) },
      { code: 'TRANSPORT_ERRORS', ...events(sum.transportErrors) },
      { code: 'SCRAMBLED', ...events(sum.scrambledPackets) },
      { code: 'PTS_GAPS', ...events(sum.ptsGaps), missingSec },
      { code: 'DTS_REPEATED', ...events(sum.dtsRepeated) },
      { code: 'PTS_BEFORE_DTS', ...events(sum.ptsBeforeDts) },
      { code: 'INTRA_REFRESH', ...events(sum.intraRefreshes) },
    ]
  }

  #measureRates({ program }: SourceFigures): WarningFact[] {
    const facts: WarningFact[] = []
    const sum = this.#seconds.sum(RATE_SEC)
    const announced = this.#tracks.videoOf(program)?.parameters?.frameRate
    if (sum.seconds >= RATE_SEC) {
      const tables = Math.min(sum.patSections, sum.pmtSections)
      facts.push({ code: 'PSI_TOO_RARE', tables, playedSec: sum.playedTicks / TICKS_PER_SEC })
      if (announced !== undefined && sum.frameTicks > 0) {
        const measured = sum.frames / (sum.frameTicks / TICKS_PER_SEC)
        facts.push({ code: 'FRAME_RATE_ODD', measured, announced })
      }
    }
    const { rate = 0, driftPpm: ppm = 0 } = this.#clock
    if (rate > MIN_RATE) facts.push({ code: 'NOT_REAL_TIME', rate })
    return [...facts, { code: 'CLOCK_DRIFT', ppm }]
  }
}
