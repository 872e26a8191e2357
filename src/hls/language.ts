/**
 * Languages: from codes in transport streams (ISO 639-2) to tags in playlists (RFC 5646) and names for viewers.
 *
 * @module
 */

const NAMES = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' })

/** Codes that name no language: undetermined, multiple, uncoded, no linguistic content. */
const NO_LANGUAGE: ReadonlySet<string> = new Set(['und', 'mul', 'mis', 'zxx'])

/**
 * @param code  three letters: either code of a language that has two in ISO 639-2
 * @returns the shortest tag, for example `fr` for `fra` and `fre`; undefined for a code that names no language
 */
export function languageTag(code: string): string | undefined {
  if (!/^[a-z]{3}$/.test(code) || NO_LANGUAGE.has(code)) return undefined
  return Intl.getCanonicalLocales(code)[0]
}

/** @returns English name, for example `French`; undefined for a language without a name */
export function languageName(tag: string): string | undefined {
  return NAMES.of(tag)
}
