/**
 * Rules on the text of one version: lines, tags and attributes of any playlist (RFC 8216bis 4.1, 4.2, 4.4 and 8), and the
 * tags of segments and date ranges (4.4.4, 4.4.5.1).
 *
 * @module
 */
import {
  describeType,
  matchesType,
  requiredVersion,
  TAG_FORMS,
  type TagKind,
} from '../playlist/tag-forms.ts'
import { countAttributes, findTag, findTags, unquoted, type Tag } from '../playlist/tag-reader.ts'
import { degrades, fact, MAY_REFUSE, nameOf, stops, unless } from './evidence.ts'
import type { Evidence, Rule } from './rule.ts'
import type { Subjects } from './subjects.ts'
import { hasDates, type ParsedPlaylist } from '../playlist/media-playlist.ts'

type Text = Subjects['text']['playlist']

/** Attribute lists (4.2): pairs with a comma between them, and nothing else. */
const ATTRIBUTE_LIST = /^[A-Z0-9-]+=("[^"]*"|[^",\s]+)(,[A-Z0-9-]+=("[^"]*"|[^",\s]+))*$/

const MEDIA_KINDS: ReadonlySet<TagKind> = new Set<TagKind>(['media', 'segment', 'metadata'])

/** Control characters other than line feed, carriage return, and the tab that separates RECENTLY-REMOVED-DATERANGES. */
// oxlint-disable-next-line no-control-regex
const CONTROL_CHARACTER = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F]/

/** Bit rate of a segment against EXT-X-BITRATE (4.4.4.8). */
const MIN_BITRATE = 0.9
const MAX_BITRATE = 1.1

const DATE = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?$/
const PRECISE_DATE = /:\d\d\.\d{3,}(Z|[+-]\d\d(:?\d\d)?)$/

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

export const SEGMENT_SYNTAX: readonly Rule[] = [
  {
    id: 'EXTINF_NOT_ONE',
    clause: 'RFC 8216bis 4.4.4.1',
    level: 'MUST',
    requirement: 'Each segment has one EXTINF with its duration in seconds.',
    effects: { apple: MAY_REFUSE },
    remedy: 'Write one #EXTINF:<seconds>, before each segment URI.',
    on: 'playlist',
    check: ({ playlist }) =>
      playlist.segments.flatMap((segment) => {
        const tags = findTags(segment, 'EXTINF')
        if (segment.uri === undefined) return []
        return unless(tags.length === 1 && segment.durationSec >= 0, () => [
          fact(playlist, `${nameOf(segment)} has one EXTINF with a number`, segment),
          tags.length === 1
            ? fact(playlist, `EXTINF of ${nameOf(segment)} is "${segment.duration}"`, tags[0])
            : fact(playlist, `${nameOf(segment)} has ${tags.length}`, tags.at(-1)),
        ])
      }),
  },
  {
    id: 'KEY_MALFORMED',
    clause: 'RFC 8216bis 4.4.4.4, 4.4.4.5',
    level: 'MUST',
    requirement:
      'EXT-X-KEY has a URI unless METHOD is NONE, which has no other attribute; AES-128 of an EXT-X-MAP has an IV.',
    effects: { apple: MAY_REFUSE, hlsjs: stops('Cannot decrypt the segments.') },
    remedy: 'Write the URI of the key, and the IV where EXT-X-MAP is encrypted.',
    on: 'playlist',
    check: ({ playlist }) => {
      let key: Tag | undefined
      return playlist.tags.flatMap((tag): readonly Evidence[] => {
        if (tag.name === 'EXT-X-KEY') key = tag
        if (tag.name !== 'EXT-X-KEY' && tag.name !== 'EXT-X-MAP') return []
        if (key === undefined) return []
        const method = key.attributes.get('METHOD')
        const seen = fact(playlist, key.value, key)
        if (tag.name === 'EXT-X-MAP') {
          const isKept = method !== 'AES-128' || key.attributes.has('IV')
          return unless(isKept, () => [fact(playlist, 'AES-128 applies to EXT-X-MAP', tag), seen])
        }
        const isKept = method === 'NONE' ? tag.attributes.size === 1 : tag.attributes.has('URI')
        const claim = method === 'NONE' ? 'METHOD=NONE stands alone' : `METHOD=${method} has a URI`
        return method === undefined ? [] : unless(isKept, () => [fact(playlist, claim), seen])
      })
    },
  },
  {
    id: 'BYTERANGE_UNDEFINED',
    clause: 'RFC 8216bis 4.4.4.2',
    level: 'MUST',
    requirement: 'A byte range without offset follows a byte range of the same resource.',
    effects: { apple: MAY_REFUSE },
    remedy: 'Write EXT-X-BYTERANGE:<length>@<offset>.',
    on: 'playlist',
    check: ({ playlist }) =>
      playlist.segments.flatMap((segment, index) => {
        const tag = findTag(segment, 'EXT-X-BYTERANGE')
        if (tag === undefined || tag.value.includes('@')) return []
        const before = playlist.segments[index - 1]
        return unless(before?.byteRange !== undefined && before.url === segment.url, () => [
          fact(playlist, `the byte range of ${nameOf(segment)} has no offset`, tag),
          fact(playlist, 'no byte range of the same resource precedes it', before),
        ])
      }),
  },
  {
    id: 'PROGRAM_DATE_TIME_INVALID',
    clause: 'RFC 8216bis 4.4.4.6',
    level: 'MUST',
    requirement: 'EXT-X-PROGRAM-DATE-TIME is a date and time of ISO/IEC 8601.',
    effects: { hlsjs: degrades('Ignores the date.') },
    remedy: 'Write YYYY-MM-DDThh:mm:ss.SSSZ.',
    on: 'playlist',
    check: ({ playlist }) =>
      datesOf(playlist).flatMap((tag) =>
        unless(isDate(tag.value), () => [
          fact(playlist, 'a date is YYYY-MM-DDThh:mm:ss.SSSZ'),
          fact(playlist, tag.value, tag),
        ]),
      ),
  },
  {
    id: 'DATERANGE_WITHOUT_DATE',
    clause: 'RFC 8216bis 4.4.5.1',
    level: 'MUST',
    requirement: 'A playlist with an EXT-X-DATERANGE has at least one EXT-X-PROGRAM-DATE-TIME.',
    effects: { apple: MAY_REFUSE },
    remedy: 'Write EXT-X-PROGRAM-DATE-TIME.',
    on: 'playlist',
    check: ({ playlist }) => {
      const range = findTag(playlist, 'EXT-X-DATERANGE')
      return unless(range === undefined || hasDates(playlist), () => [
        fact(playlist, '#EXT-X-DATERANGE', range),
        fact(playlist, 'there is no EXT-X-PROGRAM-DATE-TIME'),
      ])
    },
  },
  {
    id: 'DATERANGE_MALFORMED',
    clause: 'RFC 8216bis 4.4.5.1',
    level: 'MUST',
    requirement:
      'The first EXT-X-DATERANGE of an ID has a START-DATE; dates are dates, and none ends before it starts.',
    effects: {
      apple: degrades('Ignores the date range.'),
      hlsjs: degrades('Ignores the date range.'),
    },
    remedy: 'Correct the attribute.',
    on: 'playlist',
    check: ({ playlist }) => {
      const started = new Set<string | undefined>()
      return findTags(playlist, 'EXT-X-DATERANGE').flatMap((tag) => {
        const id = tag.attributes.get('ID')
        const fault = id === undefined ? undefined : faultOf(tag, started.has(id))
        started.add(id)
        return unless(fault === undefined, () => [
          fact(playlist, `${fault} (date range ${id})`),
          fact(playlist, tag.value, tag),
        ])
      })
    },
  },
  {
    id: 'DATERANGE_CONFLICT',
    clause: 'RFC 8216bis 4.4.5.1',
    level: 'MUST',
    requirement: 'Tags of one date range have the same value for the same attribute.',
    effects: { hlsjs: degrades('Ignores the date range.') },
    remedy: 'Give each date range an ID of its own, and never change an attribute.',
    on: 'playlist',
    check: ({ playlist }) => {
      const known = new Map<string, { value: string; tag: Tag }>()
      return findTags(playlist, 'EXT-X-DATERANGE').flatMap((tag) =>
        [...tag.attributes].flatMap(([name, value]) => {
          const key = `${tag.attributes.get('ID')} ${name}`
          const before = known.get(key) ?? { value, tag }
          known.set(key, before)
          const describe = (tag: Tag, value: string) =>
            fact(playlist, `${name}=${value} (date range ${tag.attributes.get('ID')})`, tag)
          return unless(before.value === value, () => [
            describe(before.tag, before.value),
            describe(tag, value),
          ])
        }),
      )
    },
  },
  {
    id: 'BITRATE_WRONG',
    clause: 'RFC 8216bis 4.4.4.8',
    level: 'MUST',
    requirement:
      'EXT-X-BITRATE is within 90 to 110 % of the bit rate of each segment that it applies to.',
    effects: {},
    remedy: 'Write the rate of each segment in kbit/s, or leave the tag out.',
    on: 'media',
    check: ({ playlist, segment, part, facts }) => {
      const tags = findTags(playlist, 'EXT-X-BITRATE')
      const tag = tags.findLast(({ line }) => line < segment.line)
      if (tag === undefined || part !== undefined || segment.byteRange !== undefined) return []
      const rate = (facts.sizeBytes * 8) / segment.durationSec / 1000
      const claimed = Number(tag.value)
      return unless(claimed >= MIN_BITRATE * rate && claimed <= MAX_BITRATE * rate, () => [
        fact(playlist, `EXT-X-BITRATE is ${tag.value}`, tag),
        fact(playlist, `${nameOf(segment)} has ${Math.round(rate)} kbit/s`, segment),
      ])
    },
  },
  {
    id: 'I_FRAMES_IN_PARTS',
    clause: 'RFC 8216bis 4.4.4.9',
    level: 'SHOULD',
    requirement: 'A playlist with EXT-X-I-FRAMES-ONLY has no parts.',
    effects: {},
    remedy: 'Leave EXT-X-PART out of I-frame playlists.',
    on: 'playlist',
    check: ({ playlist }) => {
      const only = findTag(playlist, 'EXT-X-I-FRAMES-ONLY')
      const part = findTag(playlist, 'EXT-X-PART')
      return unless(only === undefined || part === undefined, () => [
        fact(playlist, '#EXT-X-I-FRAMES-ONLY', only),
        fact(playlist, '#EXT-X-PART', part),
      ])
    },
  },
  {
    id: 'PROGRAM_DATE_TIME_COARSE',
    clause: 'RFC 8216bis 4.4.4.6',
    level: 'SHOULD',
    requirement: 'EXT-X-PROGRAM-DATE-TIME has a time zone and milliseconds.',
    effects: {
      hlsjs: degrades('Takes a date without time zone for the local time of the viewer.'),
    },
    remedy: 'Write YYYY-MM-DDThh:mm:ss.SSSZ.',
    on: 'playlist',
    check: ({ playlist }) =>
      datesOf(playlist).flatMap((tag) =>
        unless(!isDate(tag.value) || PRECISE_DATE.test(tag.value), () => [
          fact(playlist, 'a date has a time zone and milliseconds'),
          fact(playlist, tag.value, tag),
        ]),
      ),
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

function datesOf({ segments }: ParsedPlaylist): readonly Tag[] {
  return segments.flatMap((segment) => findTags(segment, 'EXT-X-PROGRAM-DATE-TIME'))
}

function isDate(text: string): boolean {
  return DATE.test(text) && !Number.isNaN(Date.parse(text.replace(/([+-]\d\d)(\d\d)?$/, '$1:$2')))
}

/** @returns the claim that a date range breaks */
function faultOf(tag: Tag, isStarted: boolean): string | undefined {
  const start = unquoted(tag, 'START-DATE')
  const end = unquoted(tag, 'END-DATE')
  if (start === undefined && !isStarted) return 'a date range has a START-DATE'
  if (start !== undefined && !isDate(start)) return 'START-DATE is a date'
  if (end !== undefined && !isDate(end)) return 'END-DATE is a date'
  const isBackward = start !== undefined && end !== undefined && Date.parse(end) < Date.parse(start)
  if (isBackward) return 'END-DATE is not before START-DATE'
  if (tag.attributes.get('END-ON-NEXT') !== 'YES') return undefined
  if (!tag.attributes.has('CLASS')) return 'END-ON-NEXT=YES has a CLASS'
  const isFixed = tag.attributes.has('DURATION') || end !== undefined
  return isFixed ? 'END-ON-NEXT=YES has neither DURATION nor END-DATE' : undefined
}
