/**
 * Text of reports: lines of 100 columns, in which text of foreign servers cannot move the cursor, change colors or
 * reorder a line.
 *
 * @module
 */

export const COLUMNS = 100

/** @returns lines of at most `COLUMNS`, broken between words; words that are too long lose their middle */
export function wrap(text: string, first = '', rest = first): string[] {
  const lines: string[] = []
  let line = first
  let isEmpty = true
  for (const word of text.split(/\s+/)) {
    const fits = line.length + (isEmpty ? 0 : 1) + word.length <= COLUMNS
    if (!fits && !isEmpty) {
      lines.push(line)
      line = rest
      isEmpty = true
    }
    line += (isEmpty ? '' : ' ') + cut(word, COLUMNS - rest.length)
    isEmpty = false
  }
  return [...lines, line]
}

/** @returns the text, without its middle if it is longer than `width` */
export function cut(text: string, width: number): string {
  if (text.length <= width) return text
  const head = Math.ceil((width - 1) / 2)
  return `${text.slice(0, head)}…${text.slice(text.length - (width - 1 - head))}`
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

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
