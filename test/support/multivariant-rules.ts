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
  const captions = new Set(
    renditions.filter((it) => it.get('TYPE') === 'CLOSED-CAPTIONS').map((it) => it.get('GROUP-ID')),
  )
  const claims = new Set(variants.map((variant) => variant.get('CLOSED-CAPTIONS')))
  const ranges = variants
    .filter((variant) => variant.has('RESOLUTION'))
    .map((variant) => variant.get('VIDEO-RANGE'))
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
      ...check(
        [new Set(autoselected(group)).size === autoselected(group).length],
        `4.4.6.1.1: two AUTOSELECT members of ${id} have the same LANGUAGE and CHARACTERISTICS`,
      ),
      ...check([listedGroups.has(id)], `4.4.6.2: no variant has AUDIO=${id}`),
    ]),
    ...renditions.flatMap((rendition) => [
      ...check(
        [/^"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*"$/.test(rendition.get('LANGUAGE') ?? '')],
        `4.4.6.1: ${rendition.get('NAME')} has no LANGUAGE`,
      ),
      ...check(
        [rendition.get('TYPE') !== 'CLOSED-CAPTIONS' || isCaptionService(rendition)],
        `4.4.6.1: ${rendition.get('NAME')} is no caption service`,
      ),
    ]),
    ...check(
      [!claims.has('NONE') || (claims.size === 1 && captions.size === 0)],
      '4.4.6.2: CLOSED-CAPTIONS=NONE, but not on all variants',
    ),
    ...[...claims].flatMap((claim) =>
      check(
        [claim === undefined || claim === 'NONE' || captions.has(claim)],
        `4.4.6.2: CLOSED-CAPTIONS=${claim}, which is no group`,
      ),
    ),
    ...check(
      [ranges.every((range) => range === undefined || /^(SDR|HLG|PQ)$/.test(range))],
      '4.4.6.2: VIDEO-RANGE of no known value',
    ),
    ...check(
      [ranges.every((range) => range !== undefined) || !ranges.some((it) => it && it !== 'SDR')],
      '4.4.6.2: VIDEO-RANGE on one HDR variant, but not on all',
    ),
    ...check(
      [!text.includes(promise) || mediaPlaylists.every((media) => media.includes(promise))],
      '4.4.2.1: INDEPENDENT-SEGMENTS, but not in every media playlist',
    ),
  ]
}

/** CEA-608 channels and CEA-708 services (RFC 8216bis 4.4.6.1, INSTREAM-ID); no playlist. */
function isCaptionService(rendition: ReadonlyMap<string, string>): boolean {
  const id = rendition.get('INSTREAM-ID') ?? ''
  return /^"(CC[1-4]|SERVICE([1-9]|[1-5]\d|6[0-3]))"$/.test(id) && !rendition.has('URI')
}

/** LANGUAGE and CHARACTERISTICS of the members that a player may choose by itself. */
function autoselected(group: readonly ReadonlyMap<string, string>[]): string[] {
  return group
    .filter((member) => member.get('AUTOSELECT') === 'YES')
    .map((member) => `${member.get('LANGUAGE')} ${member.get('CHARACTERISTICS')}`)
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
