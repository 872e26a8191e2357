/**
 * Rules on the times of media: durations; timestamps, counters and tracks from one segment or part to the next; a segment
 * and its parts; renditions and each other.
 *
 * @module
 */
import type { DatedMedia, InspectedMedia, Subjects, Summary } from './subjects.ts'
import { degrades, seconds, stalls, unless } from './evidence.ts'
import {
  AUDIO_PES_SEC,
  avTracks,
  contradiction,
  content,
  elapsed,
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
import type { Evidence, Fact, Rule } from './rule.ts'

/** Gap or overlap of timestamps that no player notices. */
const MAX_BREAK_SEC = 0.1

/** Distance between the starts of audio and video. */
const MAX_START_DISTANCE_SEC = 0.5

export type Neighbors = Subjects['sequence']

/** Change of the distance between dates and media time, in seconds for each second. */
const MAX_DATE_DRIFT = 0.001

export const MEDIA_TIMELINE: readonly Rule[] = [
  {
    id: 'SEGMENT_LENGTH',
    clause: 'RFC 8216bis 4.4.4.1',
    level: 'MUST',
    requirement: 'EXTINF is the duration of the media in the segment, to one frame.',
    effects: { apple: degrades('mediastreamvalidator reports an error (hls.js#2805).') },
    remedy: 'Measure EXTINF by timestamps, from the first frame of a segment to that of the next.',
    on: 'media',
    check: (media) => (media.part === undefined ? checkLength(media, 'EXTINF') : []),
  },
  {
    id: 'PART_LENGTH',
    clause: 'RFC 8216bis 4.4.4.9',
    level: 'MUST',
    requirement: 'DURATION is the duration of the media in the part, to one frame.',
    effects: {},
    remedy: 'Measure DURATION by timestamps, from the first frame of a part to that of the next.',
    on: 'media',
    check: (media) => (media.part === undefined ? [] : checkLength(media, 'DURATION')),
  },
  {
    id: 'TIMESTAMPS_BREAK',
    clause: 'RFC 8216bis 3, 4.4.4.3',
    level: 'MUST',
    requirement: 'Timestamps continue from segment to segment unless EXT-X-DISCONTINUITY says not.',
    effects: {
      hlsjs: stalls('Appends at the timestamps and realigns the playlist to them (hls.js#3110).'),
    },
    remedy: 'Write EXT-X-DISCONTINUITY where the encoder restarts or its clock jumps.',
    on: 'sequence',
    check: (neighbors) => (isContinuous(neighbors) ? checkTimestamps(neighbors) : []),
  },
  {
    id: 'TRACKS_CHANGE',
    clause: 'RFC 8216bis 4.4.4.3',
    level: 'MUST',
    requirement:
      'Container, number, kind and identifiers of tracks change only at EXT-X-DISCONTINUITY.',
    effects: {},
    remedy: 'Write EXT-X-DISCONTINUITY where tracks change, or keep PIDs and track_IDs.',
    on: 'sequence',
    check: checkTracks,
  },
  {
    id: 'PARTS_DIFFER',
    clause: 'RFC 8216bis 4.4.4.9',
    level: 'MUST',
    requirement: 'The parts of a segment have the same frames, at the same times, as the segment.',
    effects: {},
    remedy: 'Make the segment of the bytes of its parts.',
    on: 'parent',
    check: ({ segment, parts }) =>
      [segment, ...parts].every((media) => isJudged(media) && avTracks(media).length > 0)
        ? avTracks(segment).flatMap((track) => compareParts(segment, parts, track))
        : [],
  },
  {
    id: 'RENDITIONS_APART',
    clause: 'RFC 8216bis 6.2.4',
    level: 'MUST',
    requirement:
      'The same EXT-X-PROGRAM-DATE-TIME is the same media time in each rendition, to one frame.',
    effects: { hlsjs: degrades('Aligns renditions by date: a switch skips or repeats media.') },
    remedy: 'Give all renditions the timestamps and dates of one clock.',
    on: 'end',
    check: compareRenditions,
  },
  {
    id: 'COUNTERS_BREAK',
    clause: 'RFC 8216bis 3',
    level: 'MUST',
    requirement:
      'Continuity counters continue from segment to segment unless EXT-X-DISCONTINUITY says not.',
    effects: {},
    remedy: 'Keep the counter of each PID, PAT and PMT included, across segments.',
    on: 'sequence',
    check: (neighbors) => (isContinuous(neighbors) ? checkCounters(neighbors) : []),
  },
  {
    id: 'ENCODING_CHANGE',
    clause: 'RFC 8216bis 4.4.4.3',
    level: 'SHOULD',
    requirement:
      'Codec parameters, video size, sample rate and channels change only at EXT-X-DISCONTINUITY.',
    effects: {},
    remedy: 'Write EXT-X-DISCONTINUITY where the encoder changes its settings.',
    on: 'sequence',
    check: checkEncoding,
  },
  {
    id: 'STARTS_APART',
    clause: 'Millrace',
    level: 'SHOULD',
    requirement: 'Audio and video of a segment start within 0.5 s of each other.',
    effects: { hlsjs: degrades('Stalls at the hole in the audio or video buffer (hls.js#6169).') },
    remedy: 'Interleave audio and video by time, and cut both at the same time.',
    on: 'media',
    check: checkStarts,
  },
]

/** Compares EXTINF or DURATION with the media, to one frame. */
export function checkLength(media: InspectedMedia, name: string): readonly Evidence[] {
  const lead = leadOf(media)
  if (lead === undefined || lead.frames === 0 || !isJudged(media)) return []
  const listed = listedSec(media)
  const lengths = [
    elapsed(media, lead.endSec, lead.startSec),
    elapsed(media, lead.nextDecodeSec, lead.firstDecodeSec),
  ]
  const border = lead.kind === 'audio' && lead.decodeTimes === undefined ? AUDIO_PES_SEC : 0
  const { duration } = media.part ?? media.segment
  const rounding = ROUNDING_SEC + printedSec(media)
  // Leading frames of an open GOP are decoded after its key frame, in the next segment.
  const reorderSec = Math.max(
    0,
    elapsed(media, lead.startSec, lead.firstDecodeSec),
    elapsed(media, lead.endSec, lead.nextDecodeSec),
  )
  const tolerance = lead.longestFrameSec + reorderSec + border + rounding
  const isKept = !lengths.every((length) => Math.abs(length - listed) > tolerance)
  return unless(isKept, () => [
    listing(media, `${name} is ${duration} s`),
    content(media, `${nameTrack(lead)} of ${nameMedia(media)} lasts ${seconds(lengths[0]!)}`),
  ])
}

/** Whether a DISCONTINUITY lies between. */
function isMarked({ before, after }: Neighbors): boolean {
  return before.segment.sequence !== after.segment.sequence && after.segment.discontinuity
}

/** Whether media has to continue, and neither side is a GAP. */
export function isContinuous(neighbors: Neighbors): boolean {
  const { before, after } = neighbors
  const isSame = before.facts.container === after.facts.container
  return !isMarked(neighbors) && isSame && isJudged(before) && isJudged(after)
}

/** Looks for a gap or overlap that players notice. */
export function checkTimestamps({ before, after }: Neighbors): readonly Evidence[] {
  for (const track of avTracks(after)) {
    const known = findTrack(before, track)
    if (known === undefined || known.frames === 0 || track.frames === 0) continue
    const frameSec = Math.max(known.longestFrameSec, track.longestFrameSec)
    const border = track.kind === 'audio' ? AUDIO_PES_SEC : 0
    const gapSec = elapsed(after, track.firstDecodeSec, known.nextDecodeSec)
    const stepSec = elapsed(after, track.firstDecodeSec, known.firstDecodeSec)
    const isNext = Math.abs(gapSec) <= frameSec + MAX_BREAK_SEC
    // A long last frame looks like a gap in the timestamps; EXTINF includes it.
    const isListed = Math.abs(stepSec - listedSec(before)) <= frameSec + MAX_BREAK_SEC + border
    if (isNext || isListed) continue
    const name = nameTrack(track)
    return contradiction(
      content(before, `${name} of ${nameMedia(before)} ends at ${seconds(known.nextDecodeSec)}`),
      content(after, `in ${nameMedia(after)} it begins at ${seconds(track.firstDecodeSec)}`),
    )
  }
  return []
}

function checkCounters({ before, after }: Neighbors): readonly Evidence[] {
  if (isDamaged(before) || isDamaged(after)) return []
  for (const [pid, { first, announced }] of after.facts.counters) {
    const last = before.facts.counters.get(pid)?.last
    if (last === undefined || announced || first === ((last + 1) & 15)) continue
    return contradiction(
      content(before, `the last counter of PID ${pid} in ${nameMedia(before)} is ${last}`),
      content(after, `the first one in ${nameMedia(after)} is ${first}`),
    )
  }
  return []
}

function isDamaged({ facts }: InspectedMedia): boolean {
  return facts.faults.some(({ kind }) => kind === 'sync')
}

function isKnown(media: InspectedMedia): boolean {
  return isJudged(media) && avTracks(media).length > 0
}

/** Whether both sides have tracks that must not change from one to the other. */
function areComparable(neighbors: Neighbors): boolean {
  return !isMarked(neighbors) && isKnown(neighbors.before) && isKnown(neighbors.after)
}

function checkTracks(neighbors: Neighbors): readonly Evidence[] {
  const { before, after } = neighbors
  const [known, found] = [describeTracks(before), describeTracks(after)]
  return unless(known === found || !areComparable(neighbors), () => [
    content(before, `${nameMedia(before)} has ${known}`),
    content(after, `${nameMedia(after)} has ${found}`),
  ])
}

function describeTracks(media: InspectedMedia): string {
  return [media.facts.container, ...avTracks(media).map(nameTrack)].join(', ')
}

function checkEncoding(neighbors: Neighbors): readonly Evidence[] {
  const { before, after } = neighbors
  if (!areComparable(neighbors)) return []
  return avTracks(after).flatMap((track) => {
    const known = findTrack(before, track)
    // Parts without a key frame do not tell.
    if (known?.codec === undefined || track.codec === undefined) return []
    // Nor does AAC without the program_config_element that some encoders send once.
    const tellChannels = known.channels !== undefined && track.channels !== undefined
    const [was, is] = [known, track].map((each) => describeEncoding(each, tellChannels))
    return unless(was === is, () => [
      content(before, `${nameTrack(track)} of ${nameMedia(before)} is ${was}`),
      content(after, `in ${nameMedia(after)} it is ${is}`),
    ])
  })
}

function describeEncoding(track: AvTrack, tellChannels: boolean): string {
  const { codec, width, height, sampleRate, channels } = track
  const size = width === undefined ? '' : `, ${width}x${height}`
  const rate = sampleRate === undefined ? '' : `, ${sampleRate} Hz`
  return `${codec}${size}${rate}${tellChannels ? `, ${channels} channels` : ''}`
}

function checkStarts(media: InspectedMedia): readonly Evidence[] {
  const video = videoOf(media)
  if (media.part !== undefined || video === undefined || video.frames === 0) return []
  if (!isJudged(media)) return []
  return avTracks(media).flatMap((track) => {
    const distance = elapsed(media, track.startSec, video.startSec)
    return unless(!(Math.abs(distance) > MAX_START_DISTANCE_SEC), () => [
      content(media, `video of ${nameMedia(media)} starts at ${seconds(video.startSec)}`),
      content(media, `${nameTrack(track)} starts at ${seconds(track.startSec)}`),
    ])
  })
}

/** Compares a track of a segment with the same track of its parts. */
export function compareParts(
  segment: InspectedMedia,
  parts: readonly InspectedMedia[],
  track: AvTrack,
): readonly Evidence[] {
  const own = parts
    .flatMap((part) => findTrack(part, track) ?? [])
    .filter((each) => each.frames > 0)
  const frames = own.reduce((sum, each) => sum + each.frames, 0)
  const [first, last] = [own[0], own.at(-1)]
  const isSame = (a: number, b: number) => Math.abs(elapsed(segment, a, b)) < ROUNDING_SEC
  const isEqual =
    frames === track.frames &&
    (first === undefined || isSame(first.firstDecodeSec, track.firstDecodeSec)) &&
    (last === undefined ||
      isSame(last.nextDecodeSec, track.nextDecodeSec) ||
      // The duration of a last frame that is alone in its part is unknown.
      last.frames === 1)
  return unless(isEqual, () => [
    content(
      segment,
      `${nameTrack(track)} of ${nameMedia(segment)}: ${track.frames} frames${startingAt(track.firstDecodeSec)}`,
    ),
    listing(
      segment,
      `its ${parts.length} parts: ${frames} frames${startingAt(first?.firstDecodeSec)}`,
    ),
  ])
}

function startingAt(sec: number | undefined): string {
  return sec === undefined ? '' : ` from ${seconds(sec)} on`
}

/** Compares the newest media of each timeline of each rendition with that of the first. */
function compareRenditions({ renditions }: Summary): readonly Evidence[] {
  const [first, ...others] = renditions
  return others.flatMap((other) =>
    [...other.marks].flatMap(([timeline, mark]) => {
      const reference = first?.marks.get(timeline)
      return reference === undefined ? [] : compareMarks(reference, mark)
    }),
  )
}

function compareMarks(a: DatedMedia, b: DatedMedia): readonly Evidence[] {
  const [trackA, trackB] = [leadOf(a.media), leadOf(b.media)]
  if (trackA === undefined || trackB === undefined || !isJudged(a.media) || !isJudged(b.media))
    return []
  if (trackA.frames === 0 || trackB.frames === 0) return []
  const dateSec = (b.dateTimeMs - a.dateTimeMs) / 1000
  const mediaSec = elapsed(b.media, trackB.startSec, trackA.startSec)
  const isAudio = trackA.kind === 'audio' || trackB.kind === 'audio'
  const frameSec = Math.max(trackA.longestFrameSec, trackB.longestFrameSec)
  const drift = Math.abs(dateSec) * MAX_DATE_DRIFT
  const tolerance = frameSec + ROUNDING_SEC + drift + (isAudio ? AUDIO_PES_SEC : 0)
  return unless(Math.abs(mediaSec - dateSec) <= tolerance, () => [
    describeMark(a, trackA.startSec),
    describeMark(b, trackB.startSec),
  ])
}

function describeMark({ media, dateTimeMs }: DatedMedia, startSec: number): Fact {
  const date = new Date(dateTimeMs).toISOString()
  return content(media, `${date} is media time ${seconds(startSec)}`)
}
