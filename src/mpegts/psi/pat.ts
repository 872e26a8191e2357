/**
 * Program association table: the PID of each program map (ISO/IEC 13818-1 2.4.4.3).
 *
 *   | program number 16 | reserved 3 | PID of its program map 13 | … repeated
 *
 * @module
 */
import { FIRST_FREE_PID, NULL_PID, PID_MASK } from '../packet.ts'
import type { SectionFields } from './section.ts'

export const PAT_TABLE_ID = 0x00

const ENTRY_BYTES = 4

/** Maximum number of sections, of 253 programs each: when one section changes, the whole table is read again. */
const MAX_SECTIONS = 8

/** Value of program_number in the entry of the network information table. */
const NETWORK = 0

export interface ProgramAssociation {
  readonly programNumber: number
  readonly mapPid: number
}

/** @returns the programs in a section body, without programs whose map has a reserved PID */
export function decodePat(body: Buffer): ProgramAssociation[] {
  const programs: ProgramAssociation[] = []
  for (let at = 0; at + ENTRY_BYTES <= body.length; at += ENTRY_BYTES) {
    const programNumber = body.readUInt16BE(at)
    const mapPid = body.readUInt16BE(at + 2) & PID_MASK
    if (programNumber === NETWORK || mapPid < FIRST_FREE_PID || mapPid === NULL_PID) continue
    programs.push({ programNumber, mapPid })
  }
  return programs
}

/** Assembles the table from its sections, eight at most. Inputs: `push` every valid section. */
export class ProgramList {
  /** Section bodies of the current version, by section_number. */
  readonly #bodies = new Map<number, Buffer>()
  #version = 0
  #lastSectionNumber = 0

  /**
   * @param pay  returns whether table credit covers a number of programs; if not, the section is ignored
   * @returns all programs when this section completes or changes the table, else undefined
   */
  push(
    section: SectionFields,
    pay: (programs: number) => boolean,
  ): ProgramAssociation[] | undefined {
    const { version, sectionNumber, body } = section
    const lastSectionNumber = Math.min(section.lastSectionNumber, MAX_SECTIONS - 1)
    if (sectionNumber > lastSectionNumber) return undefined
    if (version !== this.#version || lastSectionNumber !== this.#lastSectionNumber) {
      this.#bodies.clear()
      this.#version = version
      this.#lastSectionNumber = lastSectionNumber
    }
    const isRepeated = this.#bodies.get(sectionNumber)?.equals(body) === true
    const isWhole = this.#bodies.size === lastSectionNumber + 1
    if (isRepeated && isWhole) return undefined
    // A repeated section shows that a whole cycle has passed: sections still missing are not sent.
    const seen = this.#bodies.size + (this.#bodies.has(sectionNumber) ? 0 : 1)
    const isUnfinished = seen <= lastSectionNumber && !isRepeated
    if (!isUnfinished && !pay(this.#countEntries() + body.length / ENTRY_BYTES)) return undefined
    this.#bodies.set(sectionNumber, body)
    if (isUnfinished) return undefined
    const inOrder = [...this.#bodies].toSorted(([a], [b]) => a - b)
    return inOrder.flatMap(([, each]) => decodePat(each))
  }

  #countEntries(): number {
    let bytes = 0
    for (const { length } of this.#bodies.values()) bytes += length
    return bytes / ENTRY_BYTES
  }
}
