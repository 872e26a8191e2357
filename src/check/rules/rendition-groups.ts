/**
 * Rules on EXT-X-MEDIA and the groups that it forms (RFC 8216bis 4.4.6.1).
 *
 * @module
 */
import type { ListedRendition, MultivariantPlaylist } from '../playlist/multivariant-playlist.ts'
import { degrades, fact, MAY_REFUSE, stops, unless } from './evidence.ts'
import type { Evidence, Fact, Rule } from './rule.ts'
import { groupBy } from './values.ts'

/** Attributes in which the members of two groups may differ (4.4.6.1.1). */
const ATTRIBUTES_OF_ENCODING: ReadonlySet<string> = new Set(
  'GROUP-ID URI CHANNELS BIT-DEPTH SAMPLE-RATE STABLE-RENDITION-ID INSTREAM-ID'.split(' '),
)

/** Attributes that a player chooses by (4.4.6.1.1). */
const ATTRIBUTES_OF_CHOICE = ['LANGUAGE', 'ASSOC-LANGUAGE', 'FORCED', 'CHARACTERISTICS']

const LANGUAGE_TAG = /^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/
const CAPTION_SERVICE = /^"(CC[1-4]|SERVICE([1-9]|[1-5]\d|6[0-3]))"$/

export const RENDITION_GROUPS: readonly Rule[] = [
  {
    id: 'GROUP_MEMBERS_DIFFER',
    clause: 'RFC 8216bis 4.4.6.1.1',
    level: 'MUST',
    requirement: 'Groups of one TYPE have the same members, alike but for URI and encoding.',
    effects: {
      apple: stops('May lose the rendition where it changes the variant (RFC 8216bis 4.4.6.1.1).'),
      hlsjs: degrades('Loses the chosen rendition where it changes the variant.'),
    },
    remedy:
      'List each rendition in each group, with the same NAME, LANGUAGE, DEFAULT and AUTOSELECT.',
    on: 'multivariant',
    check: ({ playlist }) =>
      groupsByType(playlist).flatMap(([first, ...others]) => {
        const expected = describeMembers(first)
        // One for each TYPE: they name all members.
        const other = others.find((group) => describeMembers(group) !== expected)
        return unless(other === undefined, () => [
          fact(playlist, `group ${nameOf(first)}: ${expected}`, first[0].tag),
          fact(playlist, `group ${nameOf(other!)}: ${describeMembers(other!)}`, other![0].tag),
        ])
      }),
  },
  {
    id: 'NAME_REPEATED',
    clause: 'RFC 8216bis 4.4.6.1.1',
    level: 'MUST',
    requirement: 'Members of a group have different NAMEs.',
    effects: { apple: MAY_REFUSE },
    remedy: 'Name each rendition.',
    on: 'multivariant',
    check: ({ playlist }) => repeated(playlist, (it) => it.name, 'NAME'),
  },
  {
    id: 'DEFAULT_REPEATED',
    clause: 'RFC 8216bis 4.4.6.1.1',
    level: 'MUST',
    requirement: 'A group has at most one member with DEFAULT=YES.',
    effects: { apple: MAY_REFUSE },
    remedy: 'Keep DEFAULT=YES on one member.',
    on: 'multivariant',
    check: ({ playlist }) => repeated(playlist, (it) => valueOf(it, 'DEFAULT', 'YES'), 'DEFAULT'),
  },
  {
    id: 'MEDIA_CONTRADICTORY',
    clause: 'RFC 8216bis 4.4.6.1, 4.4.6.2.1',
    level: 'MUST',
    requirement:
      'CLOSED-CAPTIONS have an INSTREAM-ID of CC1 to CC4 or SERVICE1 to SERVICE63 and no URI; SUBTITLES have a URI; DEFAULT=YES is not AUTOSELECT=NO; LANGUAGE is a tag of RFC 5646.',
    effects: { apple: MAY_REFUSE },
    remedy: 'Correct the attribute.',
    on: 'multivariant',
    check: ({ playlist }) =>
      playlist.renditions.flatMap((rendition) => {
        const fault = faultOf(rendition)
        return unless(fault === undefined, () => [
          fact(playlist, fault!),
          fact(playlist, rendition.tag.value, rendition.tag),
        ])
      }),
  },
  {
    id: 'AUTOSELECT_AMBIGUOUS',
    clause: 'RFC 8216bis 4.4.6.1.1',
    level: 'SHOULD',
    requirement:
      'Members with AUTOSELECT=YES differ in LANGUAGE, ASSOC-LANGUAGE, FORCED or CHARACTERISTICS.',
    effects: { apple: degrades('Cannot tell the members apart by the language of the viewer.') },
    remedy: 'Write CHARACTERISTICS, or AUTOSELECT=NO on all but one.',
    on: 'multivariant',
    check: ({ playlist }) =>
      repeated(
        playlist,
        (rendition) =>
          valueOf(rendition, 'AUTOSELECT', 'YES') &&
          ATTRIBUTES_OF_CHOICE.map((name) => rendition.tag.attributes.get(name)).join(),
        'LANGUAGE',
      ),
  },
  {
    id: 'LANGUAGE_MISSING',
    clause: 'Apple HLS authoring',
    level: 'SHOULD',
    requirement: 'Audio, subtitles and closed captions have LANGUAGE.',
    effects: { apple: degrades('Cannot choose by the language of the viewer.') },
    remedy: 'Write LANGUAGE; "und" where it is not known.',
    on: 'multivariant',
    check: ({ playlist }) =>
      playlist.renditions.flatMap(({ type, language, name, tag }) =>
        unless(type === 'VIDEO' || language !== undefined, () => [
          fact(playlist, `${type} "${name}"`, tag),
          fact(playlist, 'it has no LANGUAGE', tag),
        ]),
      ),
  },
  {
    id: 'CHANNELS_MISSING',
    clause: 'RFC 8216bis 4.4.6.1',
    level: 'SHOULD',
    requirement: 'Audio renditions have CHANNELS.',
    effects: {},
    remedy: 'Write CHANNELS="2", or as many as there are.',
    on: 'multivariant',
    check: ({ playlist }) =>
      playlist.renditions.flatMap(({ type, name, tag }) =>
        unless(type !== 'AUDIO' || tag.attributes.has('CHANNELS'), () => [
          fact(playlist, `audio "${name}"`, tag),
          fact(playlist, 'it has no CHANNELS', tag),
        ]),
      ),
  },
  {
    id: 'GROUP_UNUSED',
    clause: 'RFC 8216bis 4.4.6.2.1',
    level: 'SHOULD',
    requirement: 'A variant names each group.',
    effects: { apple: degrades('Does not offer its renditions (RFC 8216bis 4.4.6.2.1).') },
    remedy: 'Write AUDIO, VIDEO, SUBTITLES or CLOSED-CAPTIONS to the variants.',
    on: 'multivariant',
    check: ({ playlist }) => {
      const tags = playlist.tags.filter(({ name }) => name.endsWith('STREAM-INF'))
      const named = new Set(
        tags.flatMap(({ attributes }) => [...attributes].map((attribute) => attribute.join('='))),
      )
      return groupsOf(playlist).flatMap((group) => {
        const [{ type, groupId, tag }] = group
        // What is said of CLOSED-CAPTIONS=NONE is another rule.
        const isNamed = named.has(`${type}="${groupId}"`) || named.has(`${type}=NONE`)
        return unless(isNamed, () => [
          fact(playlist, `${type} group ${nameOf(group)}`, tag),
          fact(playlist, `no variant has ${type}="${groupId}"`),
        ])
      })
    },
  },
]

type Group = readonly [ListedRendition, ...ListedRendition[]]

function groupsOf({ renditions }: MultivariantPlaylist): readonly Group[] {
  return [...groupBy(renditions, ({ type, groupId }) => `${type} ${groupId}`).values()]
}

function groupsByType(playlist: MultivariantPlaylist): readonly (readonly [Group, ...Group[]])[] {
  return [...groupBy(groupsOf(playlist), ([{ type }]) => type).values()]
}

function nameOf([{ groupId }]: Group): string {
  return `"${groupId}"`
}

function describeMembers(group: Group): string {
  return group.map(describeMember).toSorted().join('; ')
}

function describeMember({ tag }: ListedRendition): string {
  return [...tag.attributes]
    .filter(([name]) => !ATTRIBUTES_OF_ENCODING.has(name))
    .map((attribute) => attribute.join('='))
    .toSorted()
    .join()
}

function valueOf({ tag }: ListedRendition, name: string, wanted: string): string | undefined {
  return tag.attributes.get(name) === wanted ? wanted : undefined
}

/** Members of a group that share a key with a member before; without a key they are left out. */
function repeated(
  playlist: MultivariantPlaylist,
  keyOf: (rendition: ListedRendition) => string | undefined,
  attribute: string,
): readonly Evidence[] {
  return groupsOf(playlist).flatMap((group) => {
    const firsts = new Map<string, ListedRendition>()
    return group.flatMap((rendition) => {
      const key = keyOf(rendition)
      if (key === undefined) return []
      const first = firsts.get(key) ?? rendition
      firsts.set(key, first)
      return unless(first === rendition, () => [
        describe(playlist, first, attribute),
        describe(playlist, rendition, attribute),
      ])
    })
  })
}

/** @returns the claim that an EXT-X-MEDIA breaks */
function faultOf({ type, language, uri, tag }: ListedRendition): string | undefined {
  const { attributes } = tag
  if (language !== undefined && !LANGUAGE_TAG.test(language)) return 'LANGUAGE is a tag of RFC 5646'
  if (attributes.get('DEFAULT') === 'YES' && attributes.get('AUTOSELECT') === 'NO') {
    return 'DEFAULT=YES implies AUTOSELECT=YES'
  }
  if (type === 'SUBTITLES' && uri === undefined) return 'SUBTITLES have a URI'
  if (type !== 'CLOSED-CAPTIONS') return undefined
  if (uri !== undefined) return 'CLOSED-CAPTIONS have no URI'
  const isService = CAPTION_SERVICE.test(attributes.get('INSTREAM-ID') ?? '')
  return isService ? undefined : 'INSTREAM-ID is CC1 to CC4 or SERVICE1 to SERVICE63'
}

function describe(
  playlist: MultivariantPlaylist,
  { name, groupId, tag }: ListedRendition,
  attribute: string,
): Fact {
  const value = tag.attributes.get(attribute)
  return fact(playlist, `"${name}" of group "${groupId}" has ${attribute}=${value}`, tag)
}
