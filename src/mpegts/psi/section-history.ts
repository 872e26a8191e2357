/**
 * Sections that were sent not long ago. What is to happen once is sent several times, lest it be lost on the way
 * (ANSI/SCTE 35 9.3), and it still is to happen once.
 *
 * @module
 */
import { TICKS_PER_SEC } from '../timestamps.ts'

/** The same bytes after a longer pause are meant anew: an immediate splice tells no time by which to know it. */
const REPEATED_WITHIN_TICKS = 10 * TICKS_PER_SEC

const MOST_SECTIONS = 32

/** `push` each section. */
export class SectionHistory {
  #sent: { readonly section: Buffer; readonly ticks: number }[] = []

  /**
   * @param section  kept
   * @param nowTicks  decoding time that the program has reached
   * @returns whether it was sent before
   */
  push(section: Buffer, nowTicks: number): boolean {
    const others = this.#sent.filter((sent) => !sent.section.equals(section))
    const before = this.#sent.find((sent) => !others.includes(sent))
    this.#sent = [...others.slice(1 - MOST_SECTIONS), { section, ticks: nowTicks }]
    return before !== undefined && Math.abs(nowTicks - before.ticks) <= REPEATED_WITHIN_TICKS
  }
}
