/**
 * Rules on the attributes of variants against the bitstream (RFC 6381, RFC 8216bis 4.4.6.2).
 *
 * @module
 */
import type { InspectedTrack } from '../media/media-facts.ts'
import type { ParsedVariant } from '../playlist/multivariant-playlist.ts'
import type { RenditionFigures, Summary } from './subjects.ts'
import { degrades, everyPlayer, fact, stalls, unless } from './evidence.ts'
import type { Evidence, Fact, Rule } from './rule.ts'

/** Largest peak of a live stream in BANDWIDTH (Apple HLS authoring), and largest average in AVERAGE-BANDWIDTH. */
const MAX_LIVE_PEAK = 1.25
/** Maximum peak, in BANDWIDTH, that the next version of the multivariant playlist may still correct. */
const MAX_PEAK_ERROR = 1.05
const MAX_AVERAGE = 1.1

/** Shortest media that an average is judged by, in target durations. */
const MIN_AVERAGE_SPAN = 8

/** Maximum relative deviation of FRAME-RATE, which permits 30 for 29.97. */
const MAX_FRAME_RATE_ERROR = 0.01

/** Sample entries of the same codec with parameter sets in the other place (14496-15). */
const OTHER_ENTRIES: Readonly<Record<string, string>> = {
  avc1: 'avc3',
  avc3: 'avc1',
  hvc1: 'hev1',
  hev1: 'hvc1',
}

/** A variant with its own media and the audio renditions that it may be played with. */
interface VariantMedia {
  readonly variant: ParsedVariant
  readonly own: RenditionFigures
  readonly audio: readonly RenditionFigures[]
  /** At the line of EXT-X-STREAM-INF. */
  readonly claim: (text: string) => Fact
  readonly seen: (rendition: RenditionFigures, text: string) => Fact
}

/** Names of one format, by the first element of the codec string in lower case. */
const FAMILIES: Readonly<Record<string, string>> = {
  avc1: 'H.264',
  avc3: 'H.264',
  dva1: 'H.264',
  dvav: 'H.264',
  hvc1: 'H.265',
  hev1: 'H.265',
  dvh1: 'H.265',
  dvhe: 'H.265',
  'ac-3': 'AC-3',
  'ec-3': 'E-AC-3',
  'ec+3': 'E-AC-3',
  mp3: 'MP3',
}

/** Object types of MPEG-4 and MPEG audio by the rest of `mp4a`. HE-AAC may look like AAC-LC. */
const MPEG_AUDIO: Readonly<Record<string, string>> = {
  '40.34': 'MP3',
  '69': 'MP3',
  '6b': 'MP3',
  '40.32': 'MP2',
  '40.33': 'MP2',
}

interface VideoLevel {
  readonly profile: string
  readonly level: number
}

export const VARIANT_MEDIA: readonly Rule[] = [
  {
    id: 'CODECS_INCOMPLETE',
    clause: 'RFC 8216bis 4.4.6.2',
    level: 'MUST',
    requirement: 'CODECS lists every format in the segments of the variant and of its audio group.',
    effects: {},
    remedy: 'Add the missing codec to CODECS, or leave CODECS out.',
    on: 'end',
    check: (summary) =>
      eachVariant(summary).flatMap(({ variant, own, audio, claim, seen }) =>
        [own, ...audio].flatMap((rendition) =>
          codecsOf(rendition)
            .filter((codec) => variant.codecs.length > 0 && !listsFamily(variant, codec))
            .map((codec): Evidence => [
              claim(`CODECS is ${variant.codecs.join(',')}`),
              seen(rendition, `the segments contain ${codec}`),
            ]),
        ),
      ),
  },
  {
    id: 'CODECS_SAMPLE_ENTRY',
    clause: 'RFC 8216bis 4.4.6.2, RFC 6381 3.3',
    level: 'MUST',
    requirement: 'The first element of a codec in CODECS is the sample entry of the fMP4 video.',
    effects: {},
    remedy:
      'Write avc1 or hvc1 in CODECS where the init segment has it, and avc3 or hev1 likewise.',
    on: 'end',
    check: (summary) =>
      eachVideo(summary).flatMap(([{ variant, own, claim, seen }, { sampleEntry = '' }]) => {
        const other = OTHER_ENTRIES[sampleEntry]
        const lists = (entry: string) => variant.codecs.some((codec) => codec.startsWith(entry))
        return unless(other === undefined || !lists(other) || lists(sampleEntry), () => [
          claim(`CODECS is ${variant.codecs.join(',')}`),
          seen(own, `the sample entry is ${sampleEntry}`),
        ])
      }),
  },
  {
    id: 'VIDEO_RANGE_WRONG',
    clause: 'RFC 8216bis 4.4.6.2',
    level: 'MUST',
    requirement: 'VIDEO-RANGE is that of the bitstream; without it, the video is SDR.',
    effects: {},
    remedy: 'Set VIDEO-RANGE to the transfer characteristics of the encoder.',
    on: 'end',
    check: (summary) =>
      eachVideo(summary).flatMap(([{ variant, own, claim, seen }, { videoRange }]) => {
        const listed = variant.videoRange ?? 'SDR'
        const isKept = videoRange === undefined || videoRange === listed
        return unless(isKept, () => [
          claim(`VIDEO-RANGE is ${variant.videoRange ?? 'absent'}`),
          seen(own, `the video is ${videoRange}`),
        ])
      }),
  },
  {
    id: 'BANDWIDTH_BELOW_PEAK',
    clause: 'RFC 8216bis 4.4.6.2, Apple HLS authoring 9.13',
    level: 'MUST',
    requirement:
      'BANDWIDTH is at least the peak segment bit rate with the largest audio; live, up to 125 % of it are allowed.',
    effects: everyPlayer(stalls('May stall or not play the variant (RFC 8216bis 4.4.6.2).')),
    remedy:
      'Measure segments, or cap the encoder with maxrate and bufsize; add audio and overhead.',
    on: 'end',
    check: (summary) => checkPeak(summary, (peak, isEnded) => peak > (isEnded ? 1 : MAX_LIVE_PEAK)),
  },
  {
    id: 'BANDWIDTH_TIGHT',
    clause: 'RFC 8216bis 4.4.6.2',
    level: 'SHOULD',
    requirement: 'Live, BANDWIDTH is the peak of representative content, to 5 %.',
    effects: {},
    remedy: 'Raise BANDWIDTH to the peak that was seen.',
    on: 'end',
    check: (summary) =>
      checkPeak(
        summary,
        (peak, isEnded) => !isEnded && peak > MAX_PEAK_ERROR && peak <= MAX_LIVE_PEAK,
      ),
  },
  {
    id: 'RESOLUTION_WRONG',
    clause: 'RFC 8216bis 4.4.6.2',
    level: 'SHOULD',
    requirement:
      'RESOLUTION is the size of the video; its width may include the pixel aspect ratio.',
    effects: { hlsjs: degrades('Chooses variants by a wrong size where it caps to the player.') },
    remedy: 'Set RESOLUTION to the size in the sequence parameter set.',
    on: 'end',
    check: (summary) =>
      eachVideo(summary).flatMap(([{ variant, own, claim, seen }, { width, height }]) => {
        const { resolution } = variant
        const isKept =
          resolution === undefined || height === undefined || resolution.height === height
        return unless(isKept, () => [
          claim(`RESOLUTION is ${resolution?.width}x${resolution?.height}`),
          seen(own, `the video is ${width}x${height}`),
        ])
      }),
  },
  {
    id: 'FRAME_RATE_WRONG',
    clause: 'RFC 8216bis 4.4.6.2',
    level: 'SHOULD',
    requirement: 'FRAME-RATE is the frame rate of the video, to 1 %.',
    effects: {},
    remedy: 'Set FRAME-RATE to the rate of the encoder.',
    on: 'end',
    check: (summary) =>
      eachVideo(summary).flatMap(([{ variant, own, claim, seen }, { frameRate }]) => {
        const listed = variant.frameRate
        if (listed === undefined || frameRate === undefined) return []
        const isKept = Math.abs(listed - frameRate) <= MAX_FRAME_RATE_ERROR * frameRate
        return unless(isKept, () => [
          claim(`FRAME-RATE is ${listed}`),
          seen(own, `the video has ${Number(frameRate.toFixed(3))} frames/s`),
        ])
      }),
  },
  {
    id: 'CODECS_INEXACT',
    clause: 'RFC 8216bis 4.4.6.2',
    level: 'SHOULD',
    requirement: 'CODECS has the profile of the video, and at least its level.',
    effects: {},
    remedy: 'Take profile and level from the sequence parameter set.',
    on: 'end',
    check: (summary) =>
      eachVideo(summary).flatMap(([{ variant, own, claim, seen }, { codec }]) => {
        if (codec === undefined || !listsFamily(variant, codec)) return []
        const isKept = variant.codecs.some(
          (listed) => codecFamily(listed) === codecFamily(codec) && coversCodec(listed, codec),
        )
        return unless(isKept, () => [
          claim(`CODECS is ${variant.codecs.join(',')}`),
          seen(own, `the video is ${codec}`),
        ])
      }),
  },
  {
    id: 'AVERAGE_BANDWIDTH_LOW',
    clause: 'Apple HLS authoring, AVERAGE-BANDWIDTH of live streams',
    level: 'SHOULD',
    requirement: 'The average segment bit rate is at most 110 % of AVERAGE-BANDWIDTH.',
    effects: {},
    remedy: 'Measure segments over a long time, or set the rate control of the encoder.',
    on: 'end',
    check: (summary) =>
      eachVariant(summary).flatMap(({ variant, own, audio, claim, seen }) => {
        const listed = variant.averageBandwidthBps
        const isShort = own.mediaSec < MIN_AVERAGE_SPAN * own.playlist.targetSec
        if (listed === undefined || isShort) return []
        const bps = own.averageBps + Math.max(0, ...audio.map(({ averageBps }) => averageBps))
        return unless(bps <= listed * MAX_AVERAGE, () => [
          claim(`AVERAGE-BANDWIDTH is ${listed}`),
          seen(own, `${own.mediaSec.toFixed(0)} s of segments have ${Math.round(bps)} bit/s`),
        ])
      }),
  },
]

function eachVariant({ multivariant, renditions }: Summary): readonly VariantMedia[] {
  if (multivariant === undefined) return []
  return renditions.flatMap((own) =>
    own.variants.map((variant) => ({
      variant,
      own,
      audio: renditions.filter(({ alternatives }) =>
        alternatives.some(({ type, groupId }) => type === 'AUDIO' && groupId === variant.audio),
      ),
      claim: (text) => fact(multivariant, text, variant.tag),
      seen: ({ playlist: { url } }, text) => ({ text, url }),
    })),
  )
}

function eachVideo(summary: Summary): readonly (readonly [VariantMedia, InspectedTrack])[] {
  return eachVariant(summary).flatMap((each) => {
    const video = each.own.tracks.find(({ kind, frames }) => kind === 'video' && frames > 0)
    return video === undefined ? [] : [[each, video] as const]
  })
}

function codecsOf({ tracks }: RenditionFigures): readonly string[] {
  return tracks.flatMap(({ kind, codec, frames }) =>
    kind !== 'data' && codec !== undefined && frames > 0 ? codec : [],
  )
}

function listsFamily({ codecs }: ParsedVariant, codec: string): boolean {
  return codecs.some((listed) => codecFamily(listed) === codecFamily(codec))
}

function checkPeak(
  summary: Summary,
  isBroken: (share: number, isEnded: boolean) => boolean,
): readonly Evidence[] {
  return eachVariant(summary).flatMap(({ variant, own, audio, claim, seen }) => {
    const { bandwidthBps } = variant
    if (bandwidthBps === undefined || own.peakBps === 0) return []
    const audioBps = Math.max(0, ...audio.map(({ peakBps }) => peakBps))
    const bps = own.peakBps + audioBps
    const parts = audioBps > 0 ? `, ${Math.round(audioBps)} of it audio` : ''
    return unless(!isBroken(bps / bandwidthBps, own.playlist.ended), () => [
      claim(`BANDWIDTH is ${bandwidthBps}`),
      seen(own, `segments have up to ${Math.round(bps)} bit/s${parts}`),
    ])
  })
}

function codecFamily(codec: string): string {
  const [name = '', ...rest] = codec.toLowerCase().split('.')
  if (name === 'mp4a') return MPEG_AUDIO[rest.join('.')] ?? 'AAC'
  return FAMILIES[name] ?? name
}

/** Whether a listed codec promises the profile of the bitstream, and at least its level; true if unknown. */
function coversCodec(listed: string, found: string): boolean {
  const [a, b] = [videoLevel(listed), videoLevel(found)]
  if (a === undefined || b === undefined) return true
  return a.profile === b.profile && a.level >= b.level
}

function videoLevel(codec: string): VideoLevel | undefined {
  const h264 = /^avc[13]\.([0-9a-f]{2})[0-9a-f]{2}([0-9a-f]{2})$/i.exec(codec)
  if (h264 !== null) {
    return { profile: h264[1]!.toLowerCase(), level: Number.parseInt(h264[2]!, 16) }
  }
  const h265 = /^(?:hvc1|hev1)\.([abc]?\d+)\.[0-9a-f]+\.[lh](\d+)/i.exec(codec)
  if (h265 !== null) return { profile: h265[1]!.toLowerCase(), level: Number(h265[2]) }
  const av1 = /^av01\.(\d)\.(\d\d)[mh]/i.exec(codec)
  if (av1 !== null) return { profile: av1[1]!, level: Number(av1[2]) }
  return undefined
}
