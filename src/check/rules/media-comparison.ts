/**
 * Comparison of a segment with its parts, and of renditions with each other.
 *
 * @module
 */
import type { InspectedMedia } from '../media/inspected-media.ts'
import type { DatedMedia, Summary } from '../summary.ts'
import { seconds, unless } from './evidence.ts'
import {
  AUDIO_PES_SEC,
  content,
  elapsed,
  findTrack,
  isJudged,
  leadOf,
  listing,
  nameMedia,
  nameTrack,
  ROUNDING_SEC,
  type AvTrack,
} from './media-facts.ts'
import type { Evidence, Fact } from './rule.ts'

/** Change of the distance between dates and media time, in seconds for each second. */
const MAX_DATE_DRIFT = 0.001

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
export function compareRenditions({ renditions }: Summary): readonly Evidence[] {
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
