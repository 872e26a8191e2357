/**
 * What rules are written with: facts, evidence and effects.
 *
 * @module
 */
import type { ParsedSegment } from '../playlist/media-playlist.ts'
import type { Effect, Evidence, Fact, Player } from './rule.ts'

interface Source {
  readonly url: string
}

/** Maximum length of a fact: thousands of them may quote one line of a playlist, which has up to 4 MiB. */
const MAX_CHARACTERS = 2000

/** A fact at a line of a playlist; without `place`, of the playlist as a whole. */
export function fact({ url }: Source, text: string, place?: { readonly line: number }): Fact {
  const short = text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text
  return place === undefined ? { text: short, url } : { text: short, url, line: place.line }
}

/** @returns the evidence, made only if the condition is false */
export function unless(isKept: boolean, contradict: () => Evidence): readonly Evidence[] {
  return isKept ? NONE : [contradict()]
}

const NONE: readonly Evidence[] = []

/** Plays nothing, or nothing more. */
export function stops(text: string): Effect {
  return { severity: 'stops', text }
}

export function stalls(text: string): Effect {
  return { severity: 'stalls', text }
}

export function degrades(text: string): Effect {
  return { severity: 'degrades', text }
}

/** The same effect on each player. */
export function everyPlayer(effect: Effect): Readonly<Record<Player, Effect>> {
  return { apple: effect, ...everyPage(effect), android: effect }
}

/** The same effect on each player that is a script in a page. */
export function everyPage(effect: Effect): Readonly<Record<'hlsjs' | 'shaka' | 'videojs', Effect>> {
  return { hlsjs: effect, shaka: effect, videojs: effect }
}

/** Effect of text that clients "MUST fail to parse" (RFC 8216bis 4). */
export const MAY_REFUSE = stops('May refuse the playlist, as RFC 8216bis 4 demands of clients.')

export function nameOf({ sequence, uri }: Pick<ParsedSegment, 'sequence' | 'uri'>): string {
  return uri === undefined ? `segment ${sequence}, not complete,` : `segment ${sequence}`
}

/** @param index  of the part in its segment */
export function namePart(sequence: number, index: number): string {
  return `part ${index} of segment ${sequence}`
}

/** Seconds in the precision that playlists have. */
export function seconds(value: number): string {
  return `${Number(value.toFixed(5))} s`
}

/** Groups items by a key, both in the order of their first appearance. */
export function groupBy<Key, Item>(
  items: readonly Item[],
  keyOf: (item: Item) => Key,
): ReadonlyMap<Key, readonly [Item, ...Item[]]> {
  const groups = new Map<Key, [Item, ...Item[]]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}
