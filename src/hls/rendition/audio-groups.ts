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

export interface AudioGroup {
  readonly codec: Codec
  /** One track for each member, in the same order of members in all groups. */
  readonly tracks: readonly Track[]
}

/**
 * Groups the tracks by codec; the first group has the codec of the first track. A member without a track of the group's
 * codec is represented by its first track of any codec.
 */
export function groupAudio(tracks: readonly Track[]): AudioGroup[] {
  const members = identifyMembers(tracks)
  const keys = [...new Set(members.values())]
  const codecs = [...new Set(tracks.map(({ codec }) => codec))]
  return codecs.map((codec) => ({
    codec,
    tracks: keys.map((key) => {
      const candidates = tracks.filter((track) => members.get(track) === key)
      return candidates.find((track) => track.codec === codec) ?? candidates[0]!
    }),
  }))
}

/**
 * Tracks of the members that have no track of the first group's codec. They would add a second codec to the first
 * group, which a player may not support.
 */
export function findUngrouped(tracks: readonly Track[]): Track[] {
  const members = identifyMembers(tracks)
  const offered = new Set(
    tracks.filter(({ codec }) => codec === tracks[0]?.codec).map((track) => members.get(track)),
  )
  return tracks.filter((track) => !offered.has(members.get(track)))
}

/** Whether the track is an audio description. */
export function describesVideo({ descriptors }: Track): boolean {
  return listDescriptors(descriptors).some(
    ({ tag, data }) => tag === LANGUAGE_DESCRIPTOR && data[3] === VISUAL_IMPAIRED_COMMENTARY,
  )
}

/**
 * Key of the member that each track belongs to: language, role, and position among the tracks of the same language,
 * role and codec. So the second AC-3 track in English belongs with the second AAC track in English.
 */
function identifyMembers(tracks: readonly Track[]): Map<Track, string> {
  const counts = new Map<string, number>()
  const members = new Map<Track, string>()
  for (const track of tracks) {
    const { codec, language = '' } = track
    const kind = `${languageTag(language) ?? ''} ${describesVideo(track)}`
    const place = counts.get(`${codec} ${kind}`) ?? 0
    counts.set(`${codec} ${kind}`, place + 1)
    members.set(track, `${kind} ${place}`)
  }
  return members
}
