/**
 * Setting for the program to carry.
 *
 * @module
 */

/**
 * - `first`: the first program with video, or the first of all if none has video.
 * - `all`: the tracks of all programs, for encoders that send each variant as a program of its own.
 * - number: the program with this program_number.
 */
export type ProgramChoice = 'first' | 'all' | number

/** Description of the valid texts, for messages. */
export const PROGRAM_CHOICES = 'first, all, or a program number from 1 to 65535'

/** @returns undefined for an invalid text; 0 is invalid, since it names the network information table */
export function parseProgramChoice(text: string): ProgramChoice | undefined {
  if (text === 'first' || text === 'all') return text
  const number = /^\d{1,5}$/.test(text) ? Number(text) : 0
  return number >= 1 && number <= 0xffff ? number : undefined
}
