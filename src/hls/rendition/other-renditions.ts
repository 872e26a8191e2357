/**
 * Renditions other than the main one: a variant for each further video track, with the audio of the main rendition, and
 * a rendition for each further audio track.
 *
 * @module
 */
import type { Program } from '../../mpegts/track.ts'
import type { RenditionName } from '../file-names.ts'
import {
  carryTracks,
  chooseTracks,
  type CarriedTracks,
  type TrackPolicy,
} from './carried-tracks.ts'

/**
 * @param main  tracks of the main rendition
 * @param silentPids  PIDs of tracks that send no media
 */
export function chooseOtherRenditions(
  program: Program,
  policy: TrackPolicy,
  { audio: mainAudio }: CarriedTracks,
  silentPids: ReadonlySet<number>,
): [RenditionName, CarriedTracks][] {
  const { videos, audios } = chooseTracks(program, policy, silentPids)
  const variants = videos
    .slice(1)
    .map((video, index): [RenditionName, CarriedTracks] => [
      `video-${index + 2}`,
      carryTracks(program, { video, audio: mainAudio }),
    ])
  const alternatives = audios
    .slice(1)
    .map((audio, index): [RenditionName, CarriedTracks] => [
      `audio-${index + 2}`,
      carryTracks(program, { audio }),
    ])
  return [...variants, ...alternatives]
}

/**
 * Renditions of the presentation, the main one first. Another one is not listed while the main rendition carries its
 * track in place of a silent track.
 */
export function listRenditions(
  main: CarriedTracks,
  others: ReadonlyMap<RenditionName, CarriedTracks>,
): RenditionName[] {
  const listed = [...others].filter(([, { video, audio }]) =>
    video === undefined ? audio?.pid !== main.audio?.pid : video.pid !== main.video?.pid,
  )
  return ['main', ...listed.map(([name]) => name)]
}
