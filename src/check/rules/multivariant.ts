/**
 * Rules on the multivariant playlist: EXT-X-STREAM-INF (RFC 8216bis 4.4.6.2, 6.2.4), and EXT-X-MEDIA with the groups that it
 * forms (4.4.6.1).
 *
 * @module
 */
import type {
  ParsedRendition,
  ParsedVariant,
  ParsedMultivariant,
} from '../playlist/multivariant-playlist.ts'
import { findTag, findTags, pairsOf } from '../playlist/tag-reader.ts'
import { degrades, fact, groupBy, MAY_REFUSE, stalls, stops, unless } from './evidence.ts'
import type { Evidence, Fact, Rule } from './rule.ts'

const VIDEO = /^(avc|hvc|hev|dvh|dva|vp0?[89]|av01)/
const AUDIO = /^(mp4a|ac-[34]|ec-3|opus|flac|alac|Opus|fLaC)/

/** Group attributes of a variant, with the TYPE that the group has. */
const GROUPS = [
  ['AUDIO', 'audio'],
  ['VIDEO', 'video'],
  ['SUBTITLES', 'subtitles'],
  ['CLOSED-CAPTIONS', 'closedCaptions'],
] as const

/** Attributes in which the members of two groups may differ (4.4.6.1.1). */
const ATTRIBUTES_OF_ENCODING: ReadonlySet<string> = new Set(
  'GROUP-ID URI CHANNELS BIT-DEPTH SAMPLE-RATE STABLE-RENDITION-ID INSTREAM-ID'.split(' '),
)

/** Attributes that a player chooses by (4.4.6.1.1). */
const ATTRIBUTES_OF_CHOICE = ['LANGUAGE', 'ASSOC-LANGUAGE', 'FORCED', 'CHARACTERISTICS']

const LANGUAGE_TAG = /^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/
const CAPTION_SERVICE = /^"(CC[1-4]|SERVICE([1-9]|[1-5]\d|6[0-3]))"$/

type Group = readonly [ParsedRendition, ...ParsedRendition[]]

export const MULTIVARIANT: readonly Rule[] = [
  {
    id: 'VARIANT_WITHOUT_URI',
    clause: 'RFC 8216bis 4.4.6.2',
    level: 'MUST',
    requirement: 'A URI follows each EXT-X-STREAM-INF.',
    effects: { apple: MAY_REFUSE, hlsjs: stops('Has no such variant.') },
    remedy: 'Write the URI of the media playlist on the line behind the tag.',
    on: 'multivariant',
    check: ({ playlist }) => {
      const withUri = new Set(playlist.variants.map(({ tag }) => tag))
      return findTags(playlist, 'EXT-X-STREAM-INF')
        .filter((tag) => !withUri.has(tag))
        .map((tag): Evidence => [
          fact(playlist, 'a URI follows #EXT-X-STREAM-INF'),
          fact(playlist, 'none follows this one', tag),
        ])
    },
  },
  {
    id: 'GROUP_UNDEFINED',
    clause: 'RFC 8216bis 4.4.6.2',
    level: 'MUST',
    requirement:
      'AUDIO, VIDEO, SUBTITLES and CLOSED-CAPTIONS of a variant name a group of EXT-X-MEDIA of that TYPE.',
    effects: { apple: MAY_REFUSE, hlsjs: stops('Plays the variant without the rendition.') },
    remedy: 'Write the EXT-X-MEDIA tags of the group, or remove the attribute.',
    on: 'multivariant',
    check: ({ playlist }) => {
      const defined = new Set(playlist.renditions.map(({ type, groupId }) => `${type} ${groupId}`))
      return playlist.variants.flatMap((variant) =>
        GROUPS.flatMap(([type, name]) => {
          const id = variant[name]
          const isNone = variant.tag.attributes.get(type) === 'NONE'
          return unless(id === undefined || isNone || defined.has(`${type} ${id}`), () => [
            fact(playlist, `${type}="${id}" of ${variant.uri}`, variant.tag),
            fact(playlist, `no EXT-X-MEDIA with TYPE=${type} has GROUP-ID="${id}"`),
          ])
        }),
      )
    },
  },
  {
    id: 'CODECS_WITHOUT_AUDIO',
    clause: 'RFC 8216bis 6.2.4',
    level: 'MUST',
    requirement: 'CODECS of a variant with an AUDIO group lists the formats of the group.',
    effects: { hlsjs: stops('Creates no buffer for audio (hls.js#7245).') },
    remedy: 'Add the codec of the audio renditions.',
    on: 'multivariant',
    check: ({ playlist }) =>
      playlist.variants.flatMap((variant) => {
        const { audio, codecs, uri, tag } = variant
        const isKept = audio === undefined || codecs.length === 0 || hasCodec(variant, AUDIO)
        return unless(isKept, () => [
          fact(playlist, `AUDIO="${audio}" of ${uri}`, tag),
          fact(playlist, `CODECS="${codecs.join()}" has no audio`, tag),
        ])
      }),
  },
  {
    id: 'CAPTIONS_NONE_MIXED',
    clause: 'RFC 8216bis 4.4.6.2',
    level: 'MUST',
    requirement: 'If one variant has CLOSED-CAPTIONS=NONE, all have.',
    effects: { apple: degrades('Playback may be inconsistent (RFC 8216bis 4.4.6.2).') },
    remedy: 'Declare the captions on all variants, or on none.',
    on: 'multivariant',
    check: ({ playlist }) => {
      const none = playlist.variants.find(deniesCaptions)
      const other = none && playlist.variants.find((variant) => !deniesCaptions(variant))
      const group = none && playlist.renditions.find(({ type }) => type === 'CLOSED-CAPTIONS')
      const seen = other ?? group
      return unless(seen === undefined, () => [
        fact(playlist, `CLOSED-CAPTIONS=NONE of ${none!.uri}`, none!.tag),
        other === undefined
          ? fact(playlist, `closed captions "${group!.name}"`, group!.tag)
          : fact(playlist, `${other.uri} has not`, other.tag),
      ])
    },
  },
  {
    id: 'AVERAGE_OVER_PEAK',
    clause: 'RFC 8216bis 4.4.6.2',
    level: 'MUST',
    requirement: 'BANDWIDTH is the peak: AVERAGE-BANDWIDTH is not greater.',
    effects: {
      apple: stalls('Chooses variants that the link cannot carry (RFC 8216bis 4.4.6.2).'),
    },
    remedy: 'Write the largest rate of the segments as BANDWIDTH.',
    on: 'multivariant',
    check: ({ playlist }) =>
      playlist.variants.flatMap(({ bandwidthBps, averageBandwidthBps, tag, uri }) =>
        unless(!((averageBandwidthBps ?? 0) > (bandwidthBps ?? Infinity)), () => [
          fact(playlist, `BANDWIDTH of ${uri} is ${bandwidthBps}`, tag),
          fact(playlist, `AVERAGE-BANDWIDTH is ${averageBandwidthBps}`, tag),
        ]),
      ),
  },
  {
    id: 'CODECS_MISSING',
    clause: 'RFC 8216bis 4.4.6.2',
    level: 'SHOULD',
    requirement: 'Each variant has CODECS.',
    effects: { hlsjs: degrades('Learns from the first segment alone what it has to decode.') },
    remedy: 'Write CODECS with every format of the variant.',
    on: 'multivariant',
    check: ({ playlist }) => lacking(playlist, 'CODECS', () => true),
  },
  {
    id: 'RESOLUTION_MISSING',
    clause: 'RFC 8216bis 4.4.6.2',
    level: 'SHOULD',
    requirement: 'A variant with video has RESOLUTION.',
    effects: { hlsjs: degrades('Cannot limit the variant to the size of the player.') },
    remedy: 'Write RESOLUTION=<width>x<height>.',
    on: 'multivariant',
    check: ({ playlist }) => lacking(playlist, 'RESOLUTION', (it) => hasCodec(it, VIDEO)),
  },
  {
    id: 'FRAME_RATE_MISSING',
    clause: 'RFC 8216bis 4.4.6.2; Apple HLS authoring',
    level: 'SHOULD',
    requirement: 'A variant with video has FRAME-RATE.',
    effects: {},
    remedy: 'Write FRAME-RATE with three decimals.',
    on: 'multivariant',
    check: ({ playlist }) =>
      lacking(playlist, 'FRAME-RATE', (it) => hasCodec(it, VIDEO) || it.resolution !== undefined),
  },
  {
    id: 'INDEPENDENT_SEGMENTS_TWICE',
    clause: 'RFC 8216bis 4.4.2.1',
    level: 'SHOULD',
    requirement:
      'EXT-X-INDEPENDENT-SEGMENTS is in the multivariant playlist or in media playlists, not in both.',
    effects: {},
    remedy: 'Keep it where the promise can be kept: in the media playlists of a live stream.',
    on: 'renditions',
    check: ({ multivariant, playlists }) => {
      const name = 'EXT-X-INDEPENDENT-SEGMENTS'
      if (!multivariant.independentSegments) return []
      return playlists
        .filter(({ independentSegments }) => independentSegments)
        .map((playlist): Evidence => [
          fact(multivariant, `#${name}`, findTag(multivariant, name)),
          fact(playlist, `#${name}`, findTag(playlist, name)),
        ])
    },
  },
]

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
      const named = new Set(tags.flatMap(pairsOf))
      return groupsOf(playlist).flatMap((group) => {
        const [{ type, groupId, tag }] = group
        // CLOSED-CAPTIONS=NONE is the subject of another rule.
        const isNamed = named.has(`${type}="${groupId}"`) || named.has(`${type}=NONE`)
        return unless(isNamed, () => [
          fact(playlist, `${type} group ${nameOf(group)}`, tag),
          fact(playlist, `no variant has ${type}="${groupId}"`),
        ])
      })
    },
  },
]

function deniesCaptions({ tag }: ParsedVariant): boolean {
  return tag.attributes.get('CLOSED-CAPTIONS') === 'NONE'
}

function hasCodec({ codecs }: ParsedVariant, pattern: RegExp): boolean {
  return codecs.some((codec) => pattern.test(codec))
}

/** Variants that should have an attribute and have not. */
function lacking(
  playlist: ParsedMultivariant,
  name: string,
  applies: (variant: ParsedVariant) => boolean,
): readonly Evidence[] {
  return playlist.variants
    .filter((variant) => applies(variant) && !variant.tag.attributes.has(name))
    .map(({ tag, uri }) => [
      fact(playlist, `the variant ${uri} has ${name}`),
      fact(playlist, 'there is none', tag),
    ])
}

function groupsOf({ renditions }: ParsedMultivariant): readonly Group[] {
  return [...groupBy(renditions, ({ type, groupId }) => `${type} ${groupId}`).values()]
}

function groupsByType(playlist: ParsedMultivariant): readonly (readonly [Group, ...Group[]])[] {
  return [...groupBy(groupsOf(playlist), ([{ type }]) => type).values()]
}

function nameOf([{ groupId }]: Group): string {
  return `"${groupId}"`
}

function describeMembers(group: Group): string {
  return group.map(describeMember).toSorted().join('; ')
}

function describeMember({ tag }: ParsedRendition): string {
  return [...tag.attributes]
    .filter(([name]) => !ATTRIBUTES_OF_ENCODING.has(name))
    .map((attribute) => attribute.join('='))
    .toSorted()
    .join()
}

function valueOf({ tag }: ParsedRendition, name: string, wanted: string): string | undefined {
  return tag.attributes.get(name) === wanted ? wanted : undefined
}

/** Members of a group that share a key with a member before; those without a key are skipped. */
function repeated(
  playlist: ParsedMultivariant,
  keyOf: (rendition: ParsedRendition) => string | undefined,
  attribute: string,
): readonly Evidence[] {
  return groupsOf(playlist).flatMap((group) => {
    const firsts = new Map<string, ParsedRendition>()
    return group.flatMap((rendition) => {
      const key = keyOf(rendition)
      if (key === undefined) return []
      const first = firsts.get(key) ?? rendition
      firsts.set(key, first)
      return unless(first === rendition, () => [
        describeRendition(playlist, first, attribute),
        describeRendition(playlist, rendition, attribute),
      ])
    })
  })
}

/** @returns the claim that an EXT-X-MEDIA breaks */
function faultOf({ type, language, uri, tag }: ParsedRendition): string | undefined {
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

function describeRendition(
  playlist: ParsedMultivariant,
  { name, groupId, tag }: ParsedRendition,
  attribute: string,
): Fact {
  const value = tag.attributes.get(attribute)
  return fact(playlist, `"${name}" of group "${groupId}" has ${attribute}=${value}`, tag)
}
