/**
 * History of recent sections. Splice information is sent several times in case of loss (ANSI/SCTE 35 9.3), but each
 * splice happens once.
 *
 * @module
 */
import { TICKS_PER_SEC } from '../timestamps.ts'

/**
 * Maximum time from a section to its repetition. An equal section after more time is a new splice, since sections of
 * immediate splices may be equal.
 */
const MAX_REPETITION_TICKS = 10 * TICKS_PER_SEC

const MAX_SECTIONS = 32

/** Inputs: `push` every section. */
export class SectionHistory {
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
