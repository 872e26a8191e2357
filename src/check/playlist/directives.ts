/**
 * Delivery directives in playlist URLs (RFC 8216bis 6.2.5). The rest of a URL keeps its characters, since signatures may
 * cover them.
 *
 * @module
 */

interface Directives {
  readonly sequence?: number
  readonly part?: number
  readonly skip?: boolean
}

/** @returns the URL with the directives, which replace others */
export function withDirectives(url: string, { sequence, part, skip }: Directives): string {
  const plain = withoutDirectives(url)
  const directives = [
    sequence === undefined ? [] : `_HLS_msn=${sequence}`,
    part === undefined ? [] : `_HLS_part=${part}`,
    skip === true ? '_HLS_skip=YES' : [],
  ].flat()
  if (directives.length === 0) return plain
  return `${plain}${plain.includes('?') ? '&' : '?'}${directives.join('&')}`
}

export function withoutDirectives(url: string): string {
  const [plain = '', ...rest] = url.replace(/#.*$/s, '').split('?')
  const parameters = rest
    .join('?')
    .split('&')
    .filter((parameter) => parameter !== '' && !/^_HLS_(msn|part|skip)(=|$)/.test(parameter))
  return parameters.length === 0 ? plain : `${plain}?${parameters.join('&')}`
}

/** Directives of a URL; a number that is none is left out. */
export function parseDirectives(url: string): Directives {
  const number = (name: string) => new RegExp(`[?&]${name}=(\\d{1,15})(?:[&#]|$)`).exec(url)?.[1]
  const [sequence, part] = [number('_HLS_msn'), number('_HLS_part')]
  return {
    ...(sequence !== undefined && { sequence: Number(sequence) }),
    ...(part !== undefined && { part: Number(part) }),
    ...(/[?&]_HLS_skip=/.test(url) && { skip: true }),
  }
}
