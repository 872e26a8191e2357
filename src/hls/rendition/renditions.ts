/**
 * Renditions of a program, with their tracks.
 *
 * - Transport stream: the main one, a variant for each further video track with the audio of the main rendition, and a
 *   rendition for each further audio track.
 * - CMAF: one for each track.
 *
 * @module
 */
import type { Program } from '../../mpegts/track.ts'
import { type Format, type RenditionName } from '../file-names.ts'
import {
  carryTracks,
  chooseTracks,
  type CarriedTracks,
  type TrackPolicy,
} from './carried-tracks.ts'

export interface RenditionPolicy {
  readonly formats: readonly Format[]
  readonly policy: TrackPolicy
}

/**
 * @param main  tracks of the main rendition
 * @param silentPids  PIDs of tracks that send no media
 * @returns the main rendition first, or the first of CMAF
 */
export function chooseRenditions(
  program: Program,
  { formats, policy }: RenditionPolicy,
  main: CarriedTracks,
  silentPids: ReadonlySet<number>,
): Map<RenditionName, CarriedTracks> {
  return new Map([
    ...(formats.includes('ts') ? chooseTs(program, policy, main, silentPids) : []),
    ...(formats.includes('cmaf') ? chooseCmaf(program, policy, silentPids) : []),
  ])
}

function chooseTs(
  program: Program,
  policy: TrackPolicy,
  main: CarriedTracks,
  silentPids: ReadonlySet<number>,
): [RenditionName, CarriedTracks][] {
  const { videos, audios } = chooseTracks(program, policy, { silentPids })
  const variants = videos
    .slice(1)
    .map((video, index): [RenditionName, CarriedTracks] => [
      `video-${index + 2}`,
      carryTracks(program, { video, audio: main.audio }),
    ])
  const alternatives = audios
    .slice(1)
    .map((audio, index): [RenditionName, CarriedTracks] => [
      `audio-${index + 2}`,
      carryTracks(program, { audio }),
    ])
  return [['main', main], ...variants, ...alternatives]
}

/** Timed metadata is in the first video or, without video, in the first audio. */
function chooseCmaf(
  program: Program,
  policy: TrackPolicy,
  silentPids: ReadonlySet<number>,
): [RenditionName, CarriedTracks][] {
  const { videos, audios, data } = chooseTracks(program, policy, { silentPids, format: 'cmaf' })
  const tracks = [
    ...videos.map((video, index) => ({ name: `cmaf-video-${index + 1}` as const, video })),
    ...audios.map((audio, index) => ({ name: `cmaf-audio-${index + 1}` as const, audio })),
  ]
  return tracks
    .map(({ name, ...track }, index): [RenditionName, CarriedTracks] => [
      name,
      carryTracks(program, { ...track, ...(index === 0 && { data }) }),
    ])
    .filter(([, { video, audio }]) => ![video, audio].some((it) => it && silentPids.has(it.pid)))
}

/**
 * Renditions of the presentation, the main one first. Another one of transport stream is not listed while the main
 * rendition carries its track in place of a silent track.
 */
export function listRenditions(
  renditions: ReadonlyMap<RenditionName, CarriedTracks>,
): RenditionName[] {
  const main = renditions.get('main')
  const isMain = ({ video, audio }: CarriedTracks) =>
    video === undefined ? audio?.pid === main?.audio?.pid : video.pid === main?.video?.pid
  return [...renditions]
    .filter(([name, carried]) => !/^(video|audio)-/.test(name) || !isMain(carried))
    .map(([name]) => name)
}
