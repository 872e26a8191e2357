/**
 * Text of foreign servers for terminals and files: nothing in it can move the cursor, change colors or reorder a line.
 *
 * @module
 */

/** Controls, formats such as bidirectional overrides, lone surrogates, noncharacters, line and paragraph separators. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu

/** @returns the text with each unprintable character as `\u{1b}` */
export function visible(text: string): string {
  return text.replace(UNPRINTABLE, (char) => `\\u{${char.codePointAt(0)!.toString(16)}}`)
}

/** @returns JSON in which each unprintable character of a string is escaped; `JSON.parse` gives the same value */
export function visibleJson(value: unknown): string {
  const text = JSON.stringify(value, undefined, 2)
  return text.replace(UNPRINTABLE, (char) => (char === '\n' ? char : escapeUnits(char)))
}

function escapeUnits(char: string): string {
  return Array.from(
    { length: char.length },
    (_, index) => `\\u${char.charCodeAt(index).toString(16).padStart(4, '0')}`,
  ).join('')
}
