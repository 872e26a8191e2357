/**
 * Reads the tables of a transport stream: PAT and PMT, which describe the programs (ISO/IEC 13818-1 2.4.4), and splice
 * information (ANSI/SCTE 35 9.6).
 *
 * @module
 */
import { crc32Mpeg2 } from '../../binary/crc32.ts'
import { PAT_PID } from '../packet.ts'
import type { ProgramChoice } from '../program-choice.ts'
import { PAT_TABLE_ID } from '../psi/pat.ts'
import { PMT_TABLE_ID, type ProgramMap } from '../psi/pmt.ts'
import { decodeSection, type SectionFields } from '../psi/section.ts'
import {
  decodeSpliceInfo,
  isEncryptedSplice,
  SPLICE_INFO_TABLE_ID,
  type SpliceInfo,
} from '../psi/splice-info.ts'
import { TICKS_PER_SEC, type TimestampUnwrapper } from '../timestamps.ts'
import type { DemuxerStats } from './demuxer-stats.ts'
import { ProgramSelector } from './program-selector.ts'

/**
 * Maximum time from a section to its repetition. An equal section after more time is a new splice, since sections of
 * immediate splices may be equal.
 */
const MAX_REPETITION_TICKS = 10 * TICKS_PER_SEC

const MAX_SECTIONS = 32

/**
 * - `map-pids`: the PAT may have moved program maps to other PIDs.
 * - `program`: the carried program was chosen, or its map has changed.
 * - `splice`: splice information with its time unwrapped.
 */
type TableChange =
  | { readonly type: 'map-pids' }
  | { readonly type: 'program'; readonly map: ProgramMap }
  | { readonly type: 'splice'; readonly splice: SpliceInfo }

/** Inputs: `push` every section in order of arrival. `stats` counts CRC errors, and splices that cannot be read. */
export class TableReader {
  readonly #selector: ProgramSelector
  readonly #timestamps: TimestampUnwrapper
  readonly #stats: DemuxerStats
  readonly #splices = new SpliceHistory()

  constructor(choice: ProgramChoice, timestamps: TimestampUnwrapper, stats: DemuxerStats) {
    this.#selector = new ProgramSelector(choice, stats)
    this.#timestamps = timestamps
    this.#stats = stats
  }

  /** PIDs of the program maps to read. */
  get mapPids(): Set<number> {
    return this.#selector.mapPids
  }

  /** Numbers of all programs in PAT order; empty before the first PAT. */
  get programNumbers(): readonly number[] {
    return this.#selector.listed
  }

  /** @returns the change that the section makes; undefined when it repeats a known section or cannot be used */
  push(pid: number, section: Buffer): TableChange | undefined {
    const isSplice = section[0] === SPLICE_INFO_TABLE_ID
    const fields = decodeSection(section)
    if (fields === undefined && !isSplice) return undefined
    this.#stats.sections++
    this.#stats.sectionBytes += section.length
    if (crc32Mpeg2(section) !== 0) {
      this.#stats.psiCrcErrors++
      return undefined
    }
    if (isSplice) return this.#readSplice(section)
    return fields?.current === true ? this.#readProgramTable(pid, fields) : undefined
  }

  #readProgramTable(pid: number, fields: SectionFields): TableChange | undefined {
    if (pid === PAT_PID && fields.tableId === PAT_TABLE_ID) {
      this.#stats.patSections++
      return this.#selector.handlePat(fields) ? { type: 'map-pids' } : undefined
    }
    if (pid !== PAT_PID && fields.tableId === PMT_TABLE_ID && fields.sectionNumber === 0) {
      this.#stats.pmtSections++
      const map = this.#selector.handlePmt(pid, fields.extension, fields.body)
      return map && { type: 'program', map }
    }
    return undefined
  }

  #readSplice(section: Buffer): TableChange | undefined {
    this.#stats.spliceSections++
    if (isEncryptedSplice(section)) {
      this.#stats.encryptedSplices++
      return undefined
    }
    if (this.#splices.push(section, this.#timestamps.latest?.dtsTicks ?? 0)) return undefined
    const splice = decodeSpliceInfo(section)
    if (splice === undefined) {
      this.#stats.malformedSplices++
      return undefined
    }
    return { type: 'splice', splice: this.#unwrap(splice) }
  }

  #unwrap(splice: SpliceInfo): SpliceInfo {
    const { ptsTicks } = splice
    if (ptsTicks === undefined) return splice
    return { ...splice, ptsTicks: this.#timestamps.unwrap(ptsTicks, ptsTicks).ptsTicks }
  }
}

/**
 * Recent sections of splice information. Each is sent several times in case of loss (ANSI/SCTE 35 9.3), but each splice
 * happens once. Inputs: `push` every section.
 */
class SpliceHistory {
  #sent: { readonly section: Buffer; readonly ticks: number }[] = []

  /**
   * @param section  retained
   * @param nowTicks  latest decoding time of the program, 90 kHz
   * @returns whether the section is a repetition
   */
  push(section: Buffer, nowTicks: number): boolean {
    const others = this.#sent.filter((sent) => !sent.section.equals(section))
    const before = this.#sent.find((sent) => !others.includes(sent))
    this.#sent = [...others.slice(1 - MAX_SECTIONS), { section, ticks: nowTicks }]
    return before !== undefined && Math.abs(nowTicks - before.ticks) <= MAX_REPETITION_TICKS
  }
}
