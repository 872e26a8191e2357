/**
 * Languages: from codes in transport streams (ISO 639-2) to tags in playlists (RFC 5646) and names for viewers.
 *
 * @module
 */

const NAMES = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' })

/** Codes without a language: undetermined, multiple, uncoded, no linguistic content. */
const NO_LANGUAGE: ReadonlySet<string> = new Set(['und', 'mul', 'mis', 'zxx'])

/**
 * @param code  three letters; if ISO 639-2 has two codes for a language, either one
 * @returns the shortest tag, for example `fr` for `fra` and `fre`; undefined for a code without a language
 */
export function languageTag(code: string): string | undefined {
  if (!/^[a-z]{3}$/.test(code) || NO_LANGUAGE.has(code)) return undefined
  return Intl.getCanonicalLocales(code)[0]
}

/** @returns name in English, for example `French`; undefined for a language without one */
export function languageName(tag: string): string | undefined {
  return NAMES.of(tag)
}
