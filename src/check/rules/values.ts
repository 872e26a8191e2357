/**
 * Values of playlists, compared over versions and over renditions.
 *
 * @module
 */
import type { MediaPlaylist } from '../playlist/media-playlist.ts'
import { findTag, unquoted } from '../playlist/tag-reader.ts'
import { fact, unless } from './evidence.ts'
import type { Evidence, Fact, Subjects } from './rule.ts'

/** Rounding of printed numbers. */
export const ROUNDING_SEC = 1e-6

/** The value before and after, if it has changed. */
export function changed(
  { before, after }: Subjects['update'],
  pick: (playlist: MediaPlaylist) => unknown,
  describe: (playlist: MediaPlaylist) => Fact,
): readonly Evidence[] {
  return unless(Object.is(pick(before), pick(after)), () => [describe(before), describe(after)])
}

/** Each playlist whose value differs from that of the first one. */
export function different(
  playlists: readonly MediaPlaylist[],
  pick: (playlist: MediaPlaylist) => unknown,
  describe: (playlist: MediaPlaylist) => Fact,
): readonly Evidence[] {
  const [first, ...others] = playlists
  return others.flatMap((other) =>
    unless(Object.is(pick(first!), pick(other)), () => [describe(first!), describe(other)]),
  )
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

export function describeTarget(playlist: MediaPlaylist) {
  const tag = findTag(playlist, 'EXT-X-TARGETDURATION')
  return fact(playlist, `TARGETDURATION is ${tag?.value ?? 'absent'}`, tag)
}

export function describePartTarget(playlist: MediaPlaylist) {
  const tag = findTag(playlist, 'EXT-X-PART-INF')
  const target = tag && unquoted(tag, 'PART-TARGET')
  return fact(playlist, `PART-TARGET is ${target === undefined ? 'absent' : `${target} s`}`, tag)
}
