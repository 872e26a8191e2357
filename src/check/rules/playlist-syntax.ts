/**
 * Rules on the text of a playlist: form of lines, tags and attributes (RFC 8216bis 4.1, 4.2, 4.4 and 8).
 *
 * @module
 */
import { requiredVersion } from '../playlist/required-version.ts'
import { countAttributes, findTag, type Tag } from '../playlist/tag-reader.ts'
import { describeType, matchesType, TAG_FORMS, type TagKind } from '../playlist/tag-forms.ts'
import { degrades, fact, MAY_REFUSE, stops, unless } from './evidence.ts'
import type { Evidence, Rule, Subjects } from './rule.ts'

type Text = Subjects['text']['playlist']

/** Attribute lists (4.2): pairs with a comma between them, and nothing else. */
const ATTRIBUTE_LIST = /^[A-Z0-9-]+=("[^"]*"|[^",\s]+)(,[A-Z0-9-]+=("[^"]*"|[^",\s]+))*$/

const MEDIA_KINDS: ReadonlySet<TagKind> = new Set<TagKind>(['media', 'segment', 'metadata'])

/** All but line feed, carriage return, and the tab that RECENTLY-REMOVED-DATERANGES is separated by. */
// oxlint-disable-next-line no-control-regex
const CONTROL_CHARACTER = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F]/

export const PLAYLIST_SYNTAX: readonly Rule[] = [
  {
    id: 'NOT_EXTM3U',
    clause: 'RFC 8216bis 4.4.1.1',
    level: 'MUST',
    requirement: '#EXTM3U is the first line of each playlist.',
    effects: {
      apple: MAY_REFUSE,
      hlsjs: stops('Refuses the playlist: "Missing format identifier #EXTM3U".'),
      shaka: stops('Refuses the playlist with error 4015.'),
    },
    remedy: 'Write #EXTM3U first; where a page in HTML came instead, correct the URL.',
    on: 'text',
    check: ({ playlist }) =>
      unless(/^\uFEFF?#EXTM3U\r?(\n|$)/.test(playlist.text), () => [
        fact(playlist, 'a playlist starts with #EXTM3U'),
        fact(playlist, `it starts with ${JSON.stringify(playlist.text.slice(0, 30))}`, { line: 1 }),
      ]),
  },
  {
    id: 'TARGETDURATION_MISSING',
    clause: 'RFC 8216bis 4.4.3.1',
    level: 'MUST',
    requirement: 'A media playlist has an EXT-X-TARGETDURATION, a whole number of at least 1 s.',
    effects: {
      apple: MAY_REFUSE,
      hlsjs: stops('Refuses the playlist: "Missing Target Duration".'),
      shaka: stops('Refuses the live playlist with error 4024.'),
    },
    remedy: 'Write the longest EXTINF, rounded to the nearest second.',
    on: 'playlist',
    check: ({ playlist }) => {
      const tag = findTag(playlist, 'EXT-X-TARGETDURATION')
      return unless(/^[1-9]\d*$/.test(tag?.value ?? ''), () => [
        fact(playlist, 'TARGETDURATION is a decimal integer of at least 1'),
        fact(playlist, tag === undefined ? 'there is none' : `it is ${tag.value}`, tag),
      ])
    },
  },
  {
    id: 'PLAYLIST_MIXED',
    clause: 'RFC 8216bis 4.4.6',
    level: 'MUST',
    requirement: 'A playlist has multivariant tags or media tags, not both.',
    effects: { apple: MAY_REFUSE, shaka: stops('Refuses the playlist with error 4017.') },
    remedy: 'Write variants and segments to separate playlists.',
    on: 'text',
    check: ({ playlist }) => {
      const find = (accepts: (kind: TagKind) => boolean) =>
        playlist.tags.find(({ name }) => accepts(TAG_FORMS.get(name)?.kind ?? 'basic'))
      const multivariant = find((kind) => kind === 'multivariant')
      const media = multivariant && find((kind) => MEDIA_KINDS.has(kind))
      if (multivariant === undefined || media === undefined) return []
      const describe = (tag: Tag) => fact(playlist, `#${tag.name}`, tag)
      return [[describe(multivariant), describe(media)]]
    },
  },
  {
    id: 'TAG_REPEATED',
    clause: 'RFC 8216bis 4.4.1.2, 4.4.2, 4.4.3, 4.4.5',
    level: 'MUST',
    requirement: 'Tags on the playlist as a whole appear at most once.',
    effects: {
      apple: MAY_REFUSE,
      hlsjs: stops('Refuses the media playlist: "must not appear more than once".'),
    },
    remedy: 'Write each of these tags once.',
    on: 'text',
    check: ({ playlist }) => {
      const firsts = new Map<string, Tag>()
      return playlist.tags.flatMap((tag): readonly Evidence[] => {
        if (TAG_FORMS.get(tag.name)?.repeats !== false) return []
        const first = firsts.get(tag.name) ?? tag
        firsts.set(tag.name, first)
        return unless(first === tag, () => [
          fact(playlist, `#${tag.name} for the first time`, first),
          fact(playlist, `#${tag.name} for the second time`, tag),
        ])
      })
    },
  },
  {
    id: 'ATTRIBUTES_MALFORMED',
    clause: 'RFC 8216bis 4.2',
    level: 'MUST',
    requirement:
      'An attribute list is NAME=value pairs, each name once, with commas and no whitespace.',
    effects: { apple: MAY_REFUSE },
    remedy: 'Remove spaces and repeated attributes; close each quotation mark.',
    on: 'text',
    check: ({ playlist }) =>
      playlist.tags.flatMap((tag) => {
        if (!hasAttributes(tag)) return []
        return unless(
          ATTRIBUTE_LIST.test(tag.value) && countAttributes(tag.value) === tag.attributes.size,
          () => [
            fact(playlist, `#${tag.name} has an attribute list`),
            fact(playlist, tag.value === '' ? 'it is empty' : tag.value, tag),
          ],
        )
      }),
  },
  {
    id: 'ATTRIBUTE_MISSING',
    clause: 'RFC 8216bis 4.4',
    level: 'MUST',
    requirement: 'A tag has the attributes that its definition calls REQUIRED.',
    effects: { apple: MAY_REFUSE },
    remedy: 'Add the attribute.',
    on: 'text',
    check: ({ playlist }) =>
      playlist.tags.flatMap((tag) => {
        const form = TAG_FORMS.get(tag.name)
        const missing = form?.required.filter((name) => !tag.attributes.has(name)) ?? []
        return missing.map((name): Evidence => [
          fact(playlist, `#${tag.name} has ${name} (${form!.section})`),
          fact(playlist, tag.value, tag),
        ])
      }),
  },
  {
    id: 'ATTRIBUTE_TYPE',
    clause: 'RFC 8216bis 4.2, 4.4',
    level: 'MUST',
    requirement: 'The value of an attribute has the type that its definition names.',
    effects: { apple: MAY_REFUSE },
    remedy: 'Write the value in the type named: quoted strings in quotation marks, others without.',
    on: 'text',
    check: ({ playlist }) =>
      playlist.tags.flatMap((tag) => {
        const types = TAG_FORMS.get(tag.name)?.attributes ?? {}
        return [...tag.attributes].flatMap(([name, value]) => {
          const type = types[name]
          if (type === undefined || matchesType(value, type)) return []
          const claim = `${name} of #${tag.name} is ${describeType(type)}`
          return [[fact(playlist, claim), fact(playlist, `${name}=${value}`, tag)] as const]
        })
      }),
  },
  {
    id: 'SEQUENCE_TAG_LATE',
    clause: 'RFC 8216bis 4.4.3.2, 4.4.3.3',
    level: 'MUST',
    requirement:
      'EXT-X-MEDIA-SEQUENCE and EXT-X-DISCONTINUITY-SEQUENCE appear before the first segment and DISCONTINUITY.',
    effects: {
      apple: MAY_REFUSE,
      hlsjs: stops('Refuses the playlist: "must appear before the first Media Segment".'),
    },
    remedy: 'Write both tags in the head of the playlist.',
    on: 'playlist',
    check: ({ playlist }) => {
      const { tags } = playlist
      const first = tags.find(({ name }) => TAG_FORMS.get(name)?.kind === 'segment')
      return tags
        .filter(({ name }) => /^EXT-X-(MEDIA|DISCONTINUITY)-SEQUENCE$/.test(name))
        .flatMap((tag) =>
          unless(first === undefined || tag.line < first.line, () => [
            fact(playlist, `#${tag.name} comes before the first segment`, first),
            fact(playlist, 'it comes later', tag),
          ]),
        )
    },
  },
  {
    id: 'PLAYLIST_ENCODING',
    clause: 'RFC 8216bis 4.1',
    level: 'MUST',
    requirement: 'A playlist is UTF-8 without byte order mark and control characters.',
    effects: { apple: MAY_REFUSE },
    remedy: 'Save the playlist as UTF-8 without byte order mark.',
    on: 'text',
    check: ({ playlist }) => {
      const { text } = playlist
      const claim = fact(playlist, 'a playlist is UTF-8 without byte order mark')
      const line = (at: number) => ({ line: text.slice(0, at).split('\n').length })
      if (text.startsWith('\uFEFF')) {
        return [[claim, fact(playlist, 'it starts with a byte order mark', { line: 1 })]]
      }
      const invalidAt = text.indexOf('\uFFFD')
      if (invalidAt >= 0) return [[claim, fact(playlist, 'it is no UTF-8', line(invalidAt))]]
      const controlAt = text.search(CONTROL_CHARACTER)
      if (controlAt < 0) return []
      const code = text.charCodeAt(controlAt).toString(16).toUpperCase().padStart(4, '0')
      return [[claim, fact(playlist, `control character U+${code}`, line(controlAt))]]
    },
  },
  {
    id: 'VERSION_TOO_LOW',
    clause: 'RFC 8216bis 8',
    level: 'MUST',
    requirement: 'EXT-X-VERSION is at least what the tags and attributes need.',
    effects: { apple: MAY_REFUSE },
    remedy: 'Raise EXT-X-VERSION to the number named.',
    on: 'text',
    check: ({ playlist }) => {
      const { version, reason } = requiredVersion(playlist)
      return unless(declaredVersion(playlist) >= version, () => [
        fact(playlist, `${reason?.text} needs version ${version}`, reason),
        describeVersion(playlist),
      ])
    },
  },
  {
    id: 'VERSION_TOO_HIGH',
    clause: 'RFC 8216bis 6.2.1',
    level: 'SHOULD',
    requirement: 'EXT-X-VERSION is not greater than what the tags and attributes need.',
    effects: {
      apple: degrades(
        'Old systems that know only lower versions must not play it (RFC 8216bis 8).',
      ),
    },
    remedy: 'Lower EXT-X-VERSION to the number named.',
    on: 'text',
    check: ({ playlist }) => {
      // A server may say 4 in a multivariant playlist, to keep clients off that know no renditions (8).
      const permitted = 'variants' in playlist ? 4 : 1
      const { version } = requiredVersion(playlist)
      return unless(declaredVersion(playlist) <= Math.max(version, permitted), () => [
        fact(playlist, `its tags and attributes need version ${version}`),
        describeVersion(playlist),
      ])
    },
  },
]

function hasAttributes({ name }: Tag): boolean {
  return Object.keys(TAG_FORMS.get(name)?.attributes ?? {}).length > 0
}

function declaredVersion(playlist: Text): number {
  return Number(findTag(playlist, 'EXT-X-VERSION')?.value ?? 1)
}

function describeVersion(playlist: Text) {
  const tag = findTag(playlist, 'EXT-X-VERSION')
  const version = tag === undefined ? 'there is no EXT-X-VERSION' : `EXT-X-VERSION is ${tag.value}`
  return fact(playlist, version, tag)
}
