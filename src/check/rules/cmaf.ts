/**
 * Rules on CMAF: what fragmented MP4 promises beyond the times and formats of all media.
 *
 * @module
 */
import type { InspectedMedia, Subjects } from './subjects.ts'
import { isSameMap } from '../playlist/media-playlist.ts'
import { findTag } from '../playlist/tag-reader.ts'
import { degrades, fact, seconds, stalls, stops, unless } from './evidence.ts'
import {
  avTracks,
  content,
  findTrack,
  isJudged,
  leadOf,
  listedSec,
  listing,
  nameMedia,
  nameTrack,
  printedSec,
  ROUNDING_SEC,
  videoOf,
  type AvTrack,
} from './media-evidence.ts'
import {
  checkLength,
  checkTimestamps,
  compareParts,
  isContinuous,
  type Neighbors,
} from './media-timeline.ts'
import type { Evidence, Rule } from './rule.ts'

/** Maximum excess of DURATION over the media: some 10 µs keep Shaka from taking rounding for drift. */
const MAX_EXCESS_SEC = 0.0001

/** Sample entries whose parameter sets are in the samples. */
const IN_BAND = /^(avc3|hev1|dvav|dvhe)$/

export const CMAF: readonly Rule[] = [
  {
    id: 'RENDITIONS_START_APART',
    clause: 'hls.js, Safari',
    level: 'SHOULD',
    requirement:
      'In low latency, audio and video of a media sequence number start within one PART-TARGET of each other.',
    effects: {
      apple: stops('Shows no video where audio starts later.'),
      hlsjs: stalls('Waits for the part of the other rendition.'),
    },
    remedy: 'Cut all renditions at the same time, and list audio no sooner than it is there.',
    on: 'starts',
    check: checkStarts,
  },
  {
    id: 'MAP_CHANGED',
    clause: 'RFC 8216bis 4.4.4.3',
    level: 'SHOULD',
    requirement: 'EXT-X-MAP changes only at EXT-X-DISCONTINUITY.',
    effects: {},
    remedy:
      'Write EXT-X-DISCONTINUITY where the format changes, and keep the URI where it does not.',
    on: 'playlist',
    check: ({ playlist }) =>
      playlist.segments.flatMap((segment, index) => {
        const before = playlist.segments[index - 1]
        const { map, discontinuity, tags, sequence } = segment
        const isKept = discontinuity || isSameMap(before?.map, map)
        return unless(isKept, () => [
          fact(playlist, `segment ${sequence} has no DISCONTINUITY`, segment),
          fact(playlist, 'its EXT-X-MAP is another one', findTag({ tags }, 'EXT-X-MAP')),
        ])
      }),
  },
  {
    id: 'IN_BAND_ENTRY',
    clause: 'Apple HLS authoring 1.10',
    level: 'SHOULD',
    requirement: 'The sample entry of video is avc1 or hvc1, with parameter sets in EXT-X-MAP.',
    effects: { apple: stops('Refuses the video.') },
    remedy: 'Write avc1 or hvc1, with the parameter sets in the init segment.',
    on: 'end',
    check: ({ renditions }) =>
      renditions.flatMap(({ playlist, tracks }) =>
        tracks
          .filter(({ sampleEntry = '' }) => IN_BAND.test(sampleEntry))
          .map((track): Evidence => [
            { text: 'Apple devices want avc1, hvc1 or dvh1' },
            fact(playlist, `${nameTrack(track)} is ${track.sampleEntry}`),
          ]),
      ),
  },
  {
    id: 'PART_DURATION_INEXACT',
    clause: 'RFC 8216bis 4.4.4.9',
    level: 'SHOULD',
    requirement:
      'In fMP4, DURATION is the sum of the durations of the samples, or up to 0.1 ms more.',
    effects: {
      shaka: degrades(
        'Where DURATION is shorter, takes rounding for drift and drops frames up to a key frame.',
      ),
    },
    remedy: 'Take DURATION from the samples, with five decimals, rounded up.',
    on: 'media',
    check: (media) => {
      if (media.part === undefined) return []
      return checkDuration(media, 'DURATION', (excessSec, tickSec) => {
        const roundingSec = printedSec(media)
        const isShort = excessSec < -roundingSec - tickSec
        return !isShort && !(excessSec > MAX_EXCESS_SEC + roundingSec)
      })
    },
  },
  {
    id: 'EXTINF_INEXACT',
    clause: 'RFC 8216bis 4.4.4.1',
    level: 'SHOULD',
    requirement: 'In fMP4, EXTINF is the sum of the durations of the samples, to 2 ms.',
    effects: {},
    remedy: 'Take EXTINF from the samples, or write more decimals.',
    on: 'media',
    check: (media) => {
      if (media.part !== undefined) return []
      const maxSec = ROUNDING_SEC + printedSec(media)
      return checkDuration(media, 'EXTINF', (excessSec) => !(Math.abs(excessSec) > maxSec))
    },
  },
  {
    id: 'DECODE_TIME_BREAK',
    clause: 'ISO/IEC 23000-19 7.3.2.2, 14496-12 8.8.12',
    level: 'SHOULD',
    requirement:
      'The tfdt of a segment or part is the end of the one before, to a tick of video or a sample of audio, unless EXT-X-DISCONTINUITY says not.',
    effects: {},
    remedy: 'Count decode times by durations, and let the last sample before a gap last as long.',
    on: 'sequence',
    check: checkDecodeTimes,
  },
  {
    id: 'PART_BYTES_DIFFER',
    clause: 'ISO/IEC 23000-19 7.3.3.1',
    level: 'SHOULD',
    requirement: 'An fMP4 segment is its parts in sequence, byte for byte.',
    effects: {},
    remedy: 'Make the segment of the bytes of its parts.',
    on: 'parent',
    check: checkBytes,
  },
]

function checkStarts({ one, other }: Subjects['starts']): readonly Evidence[] {
  const [video, audio] = videoOf(one) === undefined ? [other, one] : [one, other]
  const [videoTrack, audioTrack] = [videoOf(video), leadOf(audio)]
  const isComparable =
    [one, other].every((media) => media.facts.container === 'fmp4' && isJudged(media)) &&
    one.segment.discontinuitySequence === other.segment.discontinuitySequence
  if (!isComparable || videoTrack === undefined || audioTrack?.kind !== 'audio') return []
  const { partTargetSec = 0 } = video.playlist
  const distanceSec = audioTrack.startSec - videoTrack.startSec
  return unless(!(Math.abs(distanceSec) > partTargetSec + ROUNDING_SEC), () => [
    content(video, `video of ${nameMedia(video)} starts at ${seconds(videoTrack.startSec)}`),
    content(audio, `audio of ${nameMedia(audio)} starts at ${seconds(audioTrack.startSec)}`),
  ])
}

/**
 * Compares EXTINF or DURATION with the samples, where it is right to one frame.
 *
 * @param isKept  judges the excess over the samples, given the duration of a tick
 */
function checkDuration(
  media: InspectedMedia,
  name: string,
  isKept: (excessSec: number, tickSec: number) => boolean,
): readonly Evidence[] {
  const lead = leadOf(media)
  if (lead?.decodeTimes === undefined || !isJudged(media)) return []
  const { durationTicks, ticksPerSec } = lead.decodeTimes
  const mediaSec = durationTicks / ticksPerSec
  if (isKept(listedSec(media) - mediaSec, 1 / ticksPerSec)) return []
  if (checkLength(media, name).length > 0) return []
  const { duration } = media.part ?? media.segment
  const samples = `samples of ${nameTrack(lead)} of ${nameMedia(media)}`
  return [
    [
      listing(media, `${name} is ${duration} s`),
      content(media, `the ${samples} last ${seconds(mediaSec)}`),
    ],
  ]
}

/** Compares decode times where no gap is so large that players notice it. */
function checkDecodeTimes(neighbors: Neighbors): readonly Evidence[] {
  const { before, after } = neighbors
  if (!isContinuous(neighbors) || checkTimestamps(neighbors).length > 0) return []
  return avTracks(after).flatMap((track) => {
    const [known, own] = [findTrack(before, track)?.decodeTimes, track.decodeTimes]
    if (known === undefined || known.ticksPerSec !== own?.ticksPerSec) return []
    const isKept = Math.abs(own.firstTicks - known.nextTicks) <= toleranceTicks(track, own)
    const end = `ends at tick ${known.nextTicks} of 1/${known.ticksPerSec} s`
    return unless(isKept, () => [
      content(before, `${nameTrack(track)} of ${nameMedia(before)} ${end}`),
      content(after, `${nameMedia(after)} begins at tick ${own.firstTicks}`),
    ])
  })
}

/** A tick of video, a sample of audio. */
function toleranceTicks(
  { kind, sampleRate = 0 }: AvTrack,
  { ticksPerSec }: { readonly ticksPerSec: number },
): number {
  return kind === 'audio' && sampleRate > 0 ? Math.max(1, ticksPerSec / sampleRate) : 1
}

/** Compares bytes where the frames are the same. */
function checkBytes({ segment, parts }: Subjects['parent']): readonly Evidence[] {
  const isFragmented = [segment, ...parts].every(
    (media) => media.facts.container === 'fmp4' && isJudged(media),
  )
  if (!isFragmented || isInSequence(segment, parts)) return []
  const tracks = avTracks(segment)
  if (tracks.some((track) => compareParts(segment, parts, track).length > 0)) return []
  return [
    [
      listing(segment, `the ${parts.length} parts of ${nameMedia(segment)} are its media`),
      content(segment, `its ${segment.facts.sizeBytes} bytes are not theirs in sequence`),
    ],
  ]
}

function isInSequence({ reply }: InspectedMedia, parts: readonly InspectedMedia[]): boolean {
  let at = 0
  for (const { reply: part } of parts) {
    const end = at + part.body.length
    if (!reply.body.subarray(at, end).equals(part.body)) return false
    at = end
  }
  return at === reply.body.length
}
