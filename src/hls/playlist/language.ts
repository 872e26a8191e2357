/**
 * Languages: codes of transport streams (ISO 639-2), tags of playlists (RFC 5646), names for viewers.
 *
 * @module
 */

const NAMES = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' })

/** Codes that name no language: undetermined, multiple, uncoded, no linguistic content. */
const NO_LANGUAGE: ReadonlySet<string> = new Set(['und', 'mul', 'mis', 'zxx'])

/**
 * @param code  three letters, of either kind where ISO 639-2 has two
 * @returns the shortest tag, `fr` for `fra` and `fre`; undefined where the code names no language
 */
export function languageTag(code: string): string | undefined {
  if (!/^[a-z]{3}$/.test(code) || NO_LANGUAGE.has(code)) return undefined
  return Intl.getCanonicalLocales(code)[0]
}

/** @returns for example `French`; undefined for a language without a name in English */
export function languageName(tag: string): string | undefined {
  return NAMES.of(tag)
}
