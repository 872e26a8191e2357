/**
 * Languages as transport streams write them (ISO 639-2), as playlists do (RFC 5646), and as people say them.
 *
 * @module
 */

const NAMES = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' })

/** Codes for what is no language: undetermined, several, not coded, no words at all. */
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
