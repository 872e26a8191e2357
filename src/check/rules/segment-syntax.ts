/**
 * Rules on the tags of segments and date ranges within one version of a media playlist (RFC 8216bis 4.4.4, 4.4.5.1).
 *
 * @module
 */
import type { MediaPlaylist } from '../playlist/media-playlist.ts'
import { findTag, findTags, unquoted, type Tag } from '../playlist/tag-reader.ts'
import { fact, MAY_REFUSE, nameOf, degrades, stops, unless } from './evidence.ts'
import type { Evidence, Rule } from './rule.ts'

/** Bit rate of a segment against EXT-X-BITRATE (4.4.4.8). */
const MIN_BITRATE = 0.9
const MAX_BITRATE = 1.1

const DATE = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?$/
const PRECISE_DATE = /:\d\d\.\d{3,}(Z|[+-]\d\d(:?\d\d)?)$/

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
      return unless(
        range === undefined || playlist.segments.some(({ dateTime }) => dateTime !== undefined),
        () => [
          fact(playlist, '#EXT-X-DATERANGE', range),
          fact(playlist, 'there is no EXT-X-PROGRAM-DATE-TIME'),
        ],
      )
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

function datesOf({ segments }: MediaPlaylist): readonly Tag[] {
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
