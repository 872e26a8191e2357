/**
 * Detection of missing tables and missing media.
 *
 * @module
 */
import type { DemuxerStats } from '../mpegts/demux/demuxer-stats.ts'
import type { PesUnit } from '../mpegts/pes-unit.ts'
import type { ProgramChoice } from '../mpegts/program-choice.ts'
import type { Program } from '../mpegts/track.ts'
import type { WarningFact } from './warnings.ts'

const SECOND_US = 1_000_000
/** Time after the first received bytes at which PAT and PMT are due. */
const TABLES_DUE_US = 3 * SECOND_US
/** Time without audio and video after which they count as missing. */
const MEDIA_DUE_US = 5 * SECOND_US

/** PAT and PMT received so far. */
interface TableFigures {
  readonly stats: Readonly<DemuxerStats>
  /** Carried program; undefined until PAT and PMT have arrived. */
  readonly program: Program | undefined
  /** Program numbers in the PAT. */
  readonly programNumbers: readonly number[]
}

/** Watch over one publication: `push` each PES unit, `observe` 4 times a second, `facts` about once a second. */
export class ArrivalWatch {
  readonly #wanted: ProgramChoice
  #dataSinceUs: number | undefined
  #mediaUs = 0
  /** Whether audio or video has arrived since the last `observe`; initially true: the wait starts at the first call. */
  #hasMedia = true

  /** @param wanted  program chosen by the setting or the stream key */
  constructor(wanted: ProgramChoice) {
    this.#wanted = wanted
  }

  push({ track }: PesUnit): void {
    if (track.kind !== 'data') this.#hasMedia = true
  }

  observe({ stats }: TableFigures, nowUs: number): void {
    if (stats.packets + stats.skippedBytes > 0) this.#dataSinceUs ??= nowUs
    if (this.#hasMedia) this.#mediaUs = nowUs
    this.#hasMedia = false
  }

  /** @returns the first of NO_PAT, PROGRAM_NOT_FOUND, NO_PMT and NO_MEDIA that applies; empty if none does */
  facts({ stats, program, programNumbers }: TableFigures, nowUs: number): WarningFact[] {
    const wanted = this.#wanted
    const isDue = nowUs - (this.#dataSinceUs ?? nowUs) >= TABLES_DUE_US
    if (stats.patSections === 0) {
      if (isDue) return [{ code: 'NO_PAT' }]
    } else if (typeof wanted === 'number' && !programNumbers.includes(wanted)) {
      return [{ code: 'PROGRAM_NOT_FOUND', wanted, programNumbers }]
    } else if (program === undefined) {
      return isDue ? [{ code: 'NO_PMT', programNumbers }] : []
    }
    const silentUs = nowUs - this.#mediaUs
    return silentUs < MEDIA_DUE_US ? [] : [{ code: 'NO_MEDIA', silentSec: silentUs / SECOND_US }]
  }
}
