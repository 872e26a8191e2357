/**
 * Variables of the environment that look like a misspelt setting.
 *
 * @module
 */
import { isSlip } from '../api/slip.ts'
import { SETTINGS } from './setting-names.ts'

const NAMES: readonly string[] = SETTINGS.flatMap(({ env, hasFile }) =>
  hasFile ? [env, `${env}_FILE`] : [env],
)

/** Beginnings that no other program uses. */
const OWN_PREFIX = /^(HLS|SRT)_/

/** Variables that Kubernetes sets for a service, here of the name `srt` or `hls`. */
const KUBERNETES = /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP|SCTP)(_|$)/

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
