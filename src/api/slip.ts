/**
 * Slips of the keyboard, in names of settings and of fields.
 *
 * @module
 */

/** Minimum length of a misspelt word: APP_PORT is no slip for API_PORT. */
const MIN_WORD_LENGTH = 4

/** Whether letters are missing, one is added or replaced, or two neighbors are swapped. */
export function isSlip(word: string, meant: string): boolean {
  if (Math.min(word.length, meant.length) < MIN_WORD_LENGTH) return false
  if (isShort(word, meant)) return true
  let start = 0
  while (start < word.length && word[start] === meant[start]) start++
  let end = 0
  while (
    end < Math.min(word.length, meant.length) - start &&
    word.at(-1 - end) === meant.at(-1 - end)
  ) {
    end++
  }
  const [rest, other] = [
    word.slice(start, word.length - end),
    meant.slice(start, meant.length - end),
  ]
  if (rest.length < 2 && other.length < 2) return true
  return rest.length === 2 && other.length === 2 && rest[0] === other[1] && rest[1] === other[0]
}

/** Whether a word is another one without some of its letters, as PASSWD is. */
function isShort(word: string, meant: string): boolean {
  let at = 0
  for (const letter of meant) if (letter === word[at]) at++
  return at === word.length && word[0] === meant[0]
}
