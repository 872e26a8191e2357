/**
 * What a person may say of which program to carry.
 *
 * @module
 */

/** The first that has video, all of them as one (variants that are sent as programs), or the one of that number. */
export type ProgramChoice = 'first' | 'all' | number

/** For messages: what `parseProgramChoice` takes. */
export const PROGRAM_CHOICES = 'first, all, or a program number from 1 to 65535'

/** @returns undefined for what is none; 0 names the network information, which is no program */
export function parseProgramChoice(text: string): ProgramChoice | undefined {
  if (text === 'first' || text === 'all') return text
  const number = /^\d{1,5}$/.test(text) ? Number(text) : 0
  return number >= 1 && number <= 0xffff ? number : undefined
}
