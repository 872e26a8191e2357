/**
 * Groups of alternative audio, one for each codec, since a player rejects a variant with a codec that it does not
 * support. A member is a choice of the viewer, for example "English"; all groups have the same members (RFC 8216bis
 * 4.4.6.1.1).
 *
 * @module
 */
import { listDescriptors } from '../../mpegts/psi/descriptors.ts'
import type { Codec, Track } from '../../mpegts/track.ts'
import { languageTag } from '../language.ts'

/** Tag of the ISO_639_language_descriptor (ISO/IEC 13818-1 2.6.18). */
const LANGUAGE_DESCRIPTOR = 0x0a
/** audio_type of audio description (ISO/IEC 13818-1 2.6.19). */
const VISUAL_IMPAIRED_COMMENTARY = 0x03

interface AudioGroup {
  readonly codec: Codec
  /** The same in all groups, in the same order. */
  readonly members: readonly AudioMember[]
}

interface AudioMember {
  /** Tag of RFC 5646; undefined for an unknown language. */
  readonly language: string | undefined
  readonly describesVideo: boolean
  /** Track in the group's codec; if the member has none, its first track. */
  readonly track: Track
}

/** Tracks of one member, each in another codec. */
interface Choice {
  language: string | undefined
  readonly describesVideo: boolean
  readonly tracks: Track[]
}

/** Groups the tracks by codec, the codec of the first track first. */
export function groupAudio(tracks: readonly Track[]): AudioGroup[] {
  const choices = findChoices(tracks)
  return codecsOf(tracks).map((codec) => ({
    codec,
    members: choices.map(({ language, describesVideo, tracks: own }) => ({
      language,
      describesVideo,
      track: own.find((track) => track.codec === codec) ?? own[0]!,
    })),
  }))
}

/**
 * Tracks of members that have no track of the first group's codec. With them, the first group would contain a second
 * codec, which a player may not support.
 */
export function findUngrouped(tracks: readonly Track[]): Track[] {
  return findChoices(tracks)
    .filter((choice) => !choice.tracks.some(({ codec }) => codec === tracks[0]?.codec))
    .flatMap((choice) => choice.tracks)
}

/**
 * Finds for each codec's tracks, in order, the members of the same language and role; then a track without a language
 * joins any member of its role, and a member without a language takes any track. The second AC-3 track in English
 * belongs with the second AAC track in English.
 */
function findChoices(tracks: readonly Track[]): Choice[] {
  const choices: Choice[] = []
  for (const codec of codecsOf(tracks)) {
    const free = new Set(choices)
    const join = (track: Track, matches: (a?: string, b?: string) => boolean): boolean => {
      const choice = [...free].find(
        (each) =>
          each.describesVideo === isDescription(track) && matches(each.language, tagOf(track)),
      )
      if (choice === undefined) return false
      choice.tracks.push(track)
      choice.language ??= tagOf(track)
      return free.delete(choice)
    }
    const rest = tracks
      .filter((track) => track.codec === codec)
      .filter((track) => !join(track, (a, b) => a === b))
      .filter((track) => !join(track, (a, b) => a === undefined || b === undefined))
    for (const track of rest) {
      choices.push({
        language: tagOf(track),
        describesVideo: isDescription(track),
        tracks: [track],
      })
    }
  }
  return choices
}

function codecsOf(tracks: readonly Track[]): Codec[] {
  return [...new Set(tracks.map(({ codec }) => codec))]
}

function tagOf({ language }: Track): string | undefined {
  return language === undefined ? undefined : languageTag(language)
}

/** Whether the track is an audio description. */
function isDescription({ descriptors }: Track): boolean {
  return listDescriptors(descriptors).some(
    ({ tag, data }) => tag === LANGUAGE_DESCRIPTOR && data[3] === VISUAL_IMPAIRED_COMMENTARY,
  )
}
