/**
 * Variables of the environment that look like a misspelt setting.
 *
 * @module
 */
import { SETTINGS } from './setting-names.ts'

const NAMES: readonly string[] = SETTINGS.flatMap(({ env, hasFile }) =>
  hasFile ? [env, `${env}_FILE`] : [env],
)

/** Beginnings that no other program uses. */
const OWN_PREFIX = /^(HLS|SRT)_/

/** Variables that Kubernetes sets for a service, here of the name `srt` or `hls`. */
const KUBERNETES = /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP|SCTP)(_|$)/

/** Minimum length of a misspelt word: APP_PORT is no slip for API_PORT. */
const MIN_WORD_LENGTH = 4

/** Warnings about variables that are no settings but look like one. Values are not printed. */
export function misspeltWarnings(env: Readonly<Record<string, string | undefined>>): string[] {
  return Object.keys(env)
    .filter((name) => !NAMES.includes(name) && !KUBERNETES.test(name))
    .flatMap((name) => {
      const meant = NAMES.find((each) => isMisspelt(name, each))
      if (meant === undefined && !OWN_PREFIX.test(name)) return []
      const advice = meant === undefined ? 'See `millrace serve --help`' : `Did you mean ${meant}?`
      return [`${name.slice(0, 60)} is no setting, and has no effect. ${advice}`]
    })
}

/** Whether a name is a setting with one slip in a word, with other underscores, or without its last word. */
function isMisspelt(name: string, setting: string): boolean {
  if (name.replaceAll('_', '') === setting.replaceAll('_', '')) return true
  const [words, meant] = [name.split('_'), setting.split('_')]
  if (words.length > 1 && setting.startsWith(`${name}_`)) return true
  const wrong = words.flatMap((word, index) => (word === meant[index] ? [] : [index]))
  const [index = -1] = wrong
  return words.length === meant.length && wrong.length === 1 && isSlip(words[index]!, meant[index]!)
}

/** Whether letters are missing, one is added or replaced, or two neighbors are swapped. */
function isSlip(word: string, meant: string): boolean {
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
