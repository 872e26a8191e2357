/**
 * Words and lines of reports.
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
