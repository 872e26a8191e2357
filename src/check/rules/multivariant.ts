/**
 * Rules on variants (RFC 8216bis 4.4.6.2, 6.2.4).
 *
 * @module
 */
import type { ListedVariant, MultivariantPlaylist } from '../playlist/multivariant-playlist.ts'
import { findTag, findTags } from '../playlist/tag-reader.ts'
import { degrades, fact, MAY_REFUSE, stalls, stops, unless } from './evidence.ts'
import type { Evidence, Rule } from './rule.ts'

const VIDEO = /^(avc|hvc|hev|dvh|dva|vp0?[89]|av01)/
const AUDIO = /^(mp4a|ac-[34]|ec-3|opus|flac|alac|Opus|fLaC)/

/** Group attributes of a variant, with the TYPE that the group has. */
const GROUPS = [
  ['AUDIO', 'audio'],
  ['VIDEO', 'video'],
  ['SUBTITLES', 'subtitles'],
  ['CLOSED-CAPTIONS', 'closedCaptions'],
] as const

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

function deniesCaptions({ tag }: ListedVariant): boolean {
  return tag.attributes.get('CLOSED-CAPTIONS') === 'NONE'
}

function hasCodec({ codecs }: ListedVariant, pattern: RegExp): boolean {
  return codecs.some((codec) => pattern.test(codec))
}

/** Variants that should have an attribute and have not. */
function lacking(
  playlist: MultivariantPlaylist,
  name: string,
  applies: (variant: ListedVariant) => boolean,
): readonly Evidence[] {
  return playlist.variants
    .filter((variant) => applies(variant) && !variant.tag.attributes.has(name))
    .map(({ tag, uri }) => [
      fact(playlist, `the variant ${uri} has ${name}`),
      fact(playlist, 'there is none', tag),
    ])
}
