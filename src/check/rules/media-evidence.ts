/**
 * Evidence about media: tracks, times and names that the rules on media share.
 *
 * @module
 */
import type { InspectedMedia } from './subjects.ts'
import { secondsAfter, type InspectedTrack } from '../media/media-facts.ts'
import { fact, nameOf, namePart } from './evidence.ts'
import type { Evidence, Fact } from './rule.ts'

/** Audio that belongs to one side of a border may lie on the other: a PES packet of audio lasts up to 0.2 s. */
export const AUDIO_PES_SEC = 0.2

/** Rounding of timestamps and of durations with three decimals. */
export const ROUNDING_SEC = 0.002

export type AvTrack = InspectedTrack & { readonly kind: 'video' | 'audio' }

/** Whether media is to be judged: a GAP has none, and encrypted media is not inspected. */
export function isJudged({ segment, part, facts }: InspectedMedia): boolean {
  return !segment.gap && part?.gap !== true && facts.container !== 'encrypted'
}

/** Audio and video tracks. */
export function avTracks({ facts }: InspectedMedia): readonly AvTrack[] {
  return facts.tracks.filter((track): track is AvTrack => track.kind !== 'data')
}

/** The same track in other media. */
export function findTrack(media: InspectedMedia, { id, kind }: AvTrack): AvTrack | undefined {
  return avTracks(media).find((track) => track.id === id && track.kind === kind)
}

export function videoOf(media: InspectedMedia): AvTrack | undefined {
  return avTracks(media).find(({ kind }) => kind === 'video')
}

/** Track that EXTINF and DURATION count: video, or audio without video. */
export function leadOf(media: InspectedMedia): AvTrack | undefined {
  return videoOf(media) ?? avTracks(media)[0]
}

/** Duration in the playlist: DURATION of the part, or EXTINF. */
export function listedSec({ segment, part }: InspectedMedia): number {
  return (part ?? segment).durationSec
}

/** Rounding of the duration in the playlist, by its decimals. */
export function printedSec({ segment, part }: InspectedMedia): number {
  const decimals = /\.(\d+)/.exec((part ?? segment).duration)?.[1]?.length ?? 0
  return 0.5 * 10 ** -decimals
}

/** A fact about the listing of a segment or part, at its line. */
export function listing({ playlist, segment, part }: InspectedMedia, text: string): Fact {
  return fact(playlist, text, part ?? segment)
}

/** A fact about the bytes of a segment or part. */
export function content({ exchange: { url } }: InspectedMedia, text: string): Fact {
  return { text, url }
}

export function nameMedia({ segment, part }: InspectedMedia): string {
  if (part === undefined) return nameOf(segment)
  return namePart(segment.sequence, segment.parts.indexOf(part))
}

export function nameTrack({ kind, id }: InspectedTrack): string {
  return `${kind} track ${id}`
}

/** Seconds between two times of the same media. */
export function elapsed({ facts }: InspectedMedia, laterSec: number, earlierSec: number): number {
  return secondsAfter(facts.container, laterSec, earlierSec)
}

/** Evidence of a rule that is broken in one place. */
export function contradiction(claim: Fact, seen: Fact): readonly Evidence[] {
  return [[claim, seen]]
}
