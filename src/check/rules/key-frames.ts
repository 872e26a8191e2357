/**
 * Rules on key frames: where players can start.
 *
 * @module
 */
import { degrades, fact, stalls, stops, unless } from './evidence.ts'
import {
  avTracks,
  content,
  isJudged,
  listing,
  nameMedia,
  nameTrack,
  videoOf,
  type AvTrack,
} from './media-evidence.ts'
import { findTag } from '../playlist/tag-reader.ts'
import type { Evidence, Rule } from './rule.ts'
import type { InspectedMedia } from './subjects.ts'

export const KEY_FRAMES: readonly Rule[] = [
  {
    id: 'SEGMENT_NOT_INDEPENDENT',
    clause: 'RFC 8216bis 4.4.2.1',
    level: 'MUST',
    requirement:
      'With EXT-X-INDEPENDENT-SEGMENTS, each segment starts with a key frame and its parameter sets.',
    effects: { hlsjs: degrades('Drops the frames up to the next key frame: a hole in the video.') },
    remedy:
      'Cut at key frames with SPS and PPS, or leave EXT-X-INDEPENDENT-SEGMENTS out of the playlist.',
    on: 'media',
    check: (media) => {
      const video = videoOf(media)
      const isClaimed = media.part === undefined && media.playlist.independentSegments
      if (video === undefined || video.frames === 0 || !isClaimed || !isJudged(media)) return []
      const name = 'EXT-X-INDEPENDENT-SEGMENTS'
      return unless(video.startsWithKeyFrame, () => [
        fact(media.playlist, `${name} is present`, findTag(media.playlist, name)),
        content(media, `${nameMedia(media)} does not start with a key frame`),
      ])
    },
  },
  {
    id: 'PART_NOT_INDEPENDENT',
    clause: 'RFC 8216bis 4.4.4.9',
    level: 'MUST',
    requirement: 'A part with INDEPENDENT=YES contains a key frame with its parameter sets.',
    effects: {
      hlsjs: stalls('Starts at the part, finds no key frame in it and drops it.'),
    },
    remedy: 'Mark only parts that contain an IDR or IRAP picture.',
    on: 'media',
    check: (media) =>
      checkMark(media, true, ({ keyFrames, frames }, name) =>
        keyFrames > 0 ? undefined : `${name} has ${frames} frames and no key frame`,
      ),
  },
  {
    id: 'PART_WITHOUT_AUDIO',
    clause: 'hls.js#7245',
    level: 'SHOULD',
    requirement: 'A part with INDEPENDENT=YES has audio if its rendition has.',
    effects: { hlsjs: stops('Creates no buffer for audio and ends in an error (hls.js#7245).') },
    remedy: 'Wait for audio before the part is closed, or leave the part unmarked.',
    on: 'media',
    check: (media) => {
      if (media.part?.independent !== true || !isJudged(media)) return []
      const tracks = avTracks(media)
      const silent = tracks.filter(({ kind, frames }) => kind === 'audio' && frames === 0)
      if (tracks.every(({ frames }) => frames === 0)) return []
      return silent.map((track) => [
        listing(media, 'INDEPENDENT is YES'),
        content(media, `${nameMedia(media)} has no frame of ${nameTrack(track)}`),
      ])
    },
  },
  {
    id: 'PART_KEY_FRAME_LATE',
    clause: 'hls.js#7782',
    level: 'SHOULD',
    requirement: 'The key frame of a part with INDEPENDENT=YES is its first frame.',
    effects: { hlsjs: degrades('Leaves a hole up to the key frame (hls.js#7782).') },
    remedy: 'Begin a part with each key frame.',
    on: 'media',
    check: (media) =>
      checkMark(media, true, ({ keyFrames, startsWithKeyFrame }, name) =>
        keyFrames === 0 || startsWithKeyFrame
          ? undefined
          : `the key frame of ${name} is not its first frame`,
      ),
  },
  {
    id: 'PART_NOT_MARKED',
    clause: 'RFC 8216bis 4.4.4.9',
    level: 'SHOULD',
    requirement: 'A part that contains a key frame has INDEPENDENT=YES.',
    effects: { hlsjs: degrades('Starts at an earlier part, further from the live edge.') },
    remedy: 'Mark each part that starts with a key frame.',
    on: 'media',
    check: (media) =>
      checkMark(media, false, ({ startsWithKeyFrame }, name) =>
        startsWithKeyFrame ? `${name} starts with a key frame` : undefined,
      ),
  },
  {
    id: 'SEGMENT_WITHOUT_KEY_FRAME',
    clause: 'RFC 8216bis 3',
    level: 'SHOULD',
    requirement: 'Each segment with video contains a key frame.',
    effects: {
      hlsjs: degrades('Loads earlier segments up to one with a key frame (hls.js#4807).'),
    },
    remedy: 'Set a fixed key frame interval of at most the segment duration.',
    on: 'media',
    check: (media) => {
      const video = videoOf(media)
      const { part, playlist } = media
      if (part !== undefined || playlist.independentSegments || !isJudged(media)) return []
      if (video === undefined || video.frames === 0) return []
      return unless(video.keyFrames > 0, () => [
        listing(media, `${nameMedia(media)} lasts ${media.segment.duration} s`),
        content(media, `none of its ${video.frames} frames is a key frame`),
      ])
    },
  },
]

/**
 * Compares INDEPENDENT of a part with its video.
 *
 * @param marked  parts that are checked: those with INDEPENDENT=YES, or those without
 * @param contradict  @returns what contradicts the mark; undefined if nothing does
 */
function checkMark(
  media: InspectedMedia,
  marked: boolean,
  contradict: (video: AvTrack, name: string) => string | undefined,
): readonly Evidence[] {
  const video = videoOf(media)
  if (media.part?.independent !== marked || video === undefined || !isJudged(media)) return []
  const seen = contradict(video, nameMedia(media))
  return unless(seen === undefined, () => [
    listing(media, `INDEPENDENT is ${marked ? 'YES' : 'absent'}`),
    content(media, seen!),
  ])
}
