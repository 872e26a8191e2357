/**
 * Delivery directives in playlist URLs (RFC 8216bis 6.2.5).
 *
 * @module
 */

export interface Directives {
  readonly sequence?: number
  readonly part?: number
  readonly skip?: boolean
}

/** @returns the URL with the directives, which replace others */
export function withDirectives(url: string, { sequence, part, skip }: Directives): string {
  const directed = new URL(withoutDirectives(url))
  if (sequence !== undefined) directed.searchParams.set('_HLS_msn', String(sequence))
  if (part !== undefined) directed.searchParams.set('_HLS_part', String(part))
  if (skip === true) directed.searchParams.set('_HLS_skip', 'YES')
  return directed.href
}

export function withoutDirectives(url: string): string {
  const plain = new URL(url)
  for (const name of ['_HLS_msn', '_HLS_part', '_HLS_skip']) plain.searchParams.delete(name)
  return plain.href
}
