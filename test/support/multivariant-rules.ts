/**
 * Rules that a multivariant playlist has to keep (RFC 8216bis 4.4.6), with the media playlists that it lists.
 *
 * @module
 */
import { check, parseAttributes } from './playlist-rules.ts'

/** Attributes in which the members of two groups may differ (RFC 8216bis 4.4.6.1.1). */
const ATTRIBUTES_OF_ENCODING = new Set(['GROUP-ID', 'URI', 'CHANNELS'])

/**
 * @param mediaPlaylists  every version of every media playlist that the multivariant playlist lists
 * @returns broken rules; empty where all are kept
 */
export function checkMultivariant(text: string, mediaPlaylists: readonly string[] = []): string[] {
  const renditions = readTags(text, 'EXT-X-MEDIA')
  const variants = readTags(text, 'EXT-X-STREAM-INF')
  const audio = renditions.filter((rendition) => rendition.get('TYPE') === 'AUDIO')
  const groups = new Map<string | undefined, ReadonlyMap<string, string>[]>()
  for (const rendition of audio) {
    const id = rendition.get('GROUP-ID')
    groups.set(id, [...(groups.get(id) ?? []), rendition])
  }
  const members = [...groups.values()].map((group) => group.map(describeMember).toSorted())
  const listedGroups = new Set(variants.map((variant) => variant.get('AUDIO')))
  const promise = '#EXT-X-INDEPENDENT-SEGMENTS\n'
  return [
    ...check(
      [members.every((group) => group.join() === members[0]!.join())],
      `4.4.6.1.1: audio groups with different members: ${members.join(' / ')}`,
    ),
    ...[...groups].flatMap(([id, group]) => [
      ...check(
        [new Set(group.map((member) => member.get('NAME'))).size === group.length],
        `4.4.6.1.1: two members of ${id} have the same NAME`,
      ),
      ...check(
        [group.filter((member) => member.get('DEFAULT') === 'YES').length <= 1],
        `4.4.6.1.1: ${id} has two defaults`,
      ),
      ...check([listedGroups.has(id)], `4.4.6.2: no variant has AUDIO=${id}`),
    ]),
    ...check(
      [!text.includes(promise) || mediaPlaylists.every((media) => media.includes(promise))],
      '4.4.2.1: INDEPENDENT-SEGMENTS, but not in every media playlist',
    ),
  ]
}

function describeMember(rendition: ReadonlyMap<string, string>): string {
  return [...rendition]
    .filter(([name]) => !ATTRIBUTES_OF_ENCODING.has(name))
    .map((attribute) => attribute.join('='))
    .toSorted()
    .join()
}

function readTags(text: string, name: string): ReadonlyMap<string, string>[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith(`#${name}:`))
    .map((line) => parseAttributes(line.slice(name.length + 2)))
}
