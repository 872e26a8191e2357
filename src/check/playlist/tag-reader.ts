/**
 * Lines of a playlist (RFC 8216bis 4.1): tags with their attributes, and URIs. Accepts everything, since rules judge it.
 *
 * @module
 */

export interface Tag {
  /** 1-based. */
  readonly line: number
  /** Without `#`. */
  readonly name: string
  /** Text after the colon; empty without one. */
  readonly value: string
  /** Attribute list of the value (4.2): quoted strings keep their quotes; the last value of a repeated name. */
  readonly attributes: ReadonlyMap<string, string>
}

interface UriLine {
  readonly line: number
  readonly uri: string
}

interface PlaylistLines {
  /** In order, without comments and blank lines. */
  readonly entries: readonly (Tag | UriLine)[]
  readonly tags: readonly Tag[]
}

type Tags = Pick<PlaylistLines, 'tags'>

/** Maximum number of lines that are read. */
const MAX_LINES = 200_000

export function readLines(text: string): PlaylistLines {
  const entries = text
    .replace(/^\ufeff/, '')
    .split('\n', MAX_LINES)
    .map((line, index) => readLine(line.replace(/\r$/, ''), index + 1))
    .filter((entry) => entry !== undefined)
  return { entries, tags: entries.filter(isTag) }
}

export function isTag(entry: Tag | UriLine): entry is Tag {
  return 'name' in entry
}

/** First tag of a name. */
export function findTag({ tags }: Tags, name: string): Tag | undefined {
  return tags.find((tag) => tag.name === name)
}

/** All tags of a name, in order. */
export function findTags({ tags }: Tags, name: string): readonly Tag[] {
  return tags.filter((tag) => tag.name === name)
}

/** Last EXT-X-DISCONTINUITY after a line. */
export function discontinuityAfter(tags: Tags, line: number): Tag | undefined {
  return findTags(tags, 'EXT-X-DISCONTINUITY').findLast((tag) => tag.line > line)
}

/** @returns attributes as `NAME=value` */
export function pairsOf({ attributes }: Tag): string[] {
  return [...attributes].map((attribute) => attribute.join('='))
}

/** @returns content of a quoted string; the value itself if it is not quoted; undefined without the attribute */
export function unquoted({ attributes }: Tag, name: string): string | undefined {
  return attributes.get(name)?.replace(/^"(.*)"$/, '$1')
}

/** @returns value of a decimal attribute; undefined without the attribute or if it is not a number */
export function decimal({ attributes }: Tag, name: string): number | undefined {
  return parseDecimal(attributes.get(name))
}

/** @returns decimal-integer or decimal-floating-point (4.2) */
export function parseDecimal(text: string | undefined): number | undefined {
  return text !== undefined && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : undefined
}

function readLine(text: string, line: number): Tag | UriLine | undefined {
  if (text.trim() === '') return undefined
  if (!text.startsWith('#')) return { line, uri: text }
  if (!text.startsWith('#EXT')) return undefined
  const colon = text.indexOf(':')
  const value = colon < 0 ? '' : text.slice(colon + 1)
  const name = colon < 0 ? text.slice(1) : text.slice(1, colon)
  return { line, name, value, attributes: readAttributes(value) }
}

/** NAME=value; the lookbehind keeps the time linear in hostile text. */
const ATTRIBUTE = /(?<![A-Z0-9-])([A-Z0-9-]+)=("[^"]*"|[^",]*)/g

const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map()

function readAttributes(list: string): ReadonlyMap<string, string> {
  if (!list.includes('=')) return NO_ATTRIBUTES
  const attributes = list.matchAll(ATTRIBUTE)
  return new Map([...attributes].map(([, name = '', value = '']) => [name, value]))
}

/** Number of pairs in an attribute list; more than `attributes` has if names are repeated. */
export function countAttributes(list: string): number {
  return list.match(ATTRIBUTE)?.length ?? 0
}
