/**
 * Groups of alternative audio, one for each codec: a player rejects a variant if it does not support one of its codecs.
 * A member is what a viewer chooses, for example "English"; every group has all members (RFC 8216bis 4.4.6.1.1).
 *
 * @module
 */
import { listDescriptors } from '../../mpegts/psi/descriptors.ts'
import type { Codec, Track } from '../../mpegts/track.ts'
import { languageTag } from './language.ts'

/** ISO_639_language_descriptor and its audio_type for audio description (ISO/IEC 13818-1 2.6.18). */
const LANGUAGE_DESCRIPTOR = 0x0a
const VISUAL_IMPAIRED_COMMENTARY = 0x03

export interface AudioGroup {
  readonly codec: Codec
  /** A track for each member, in the same order in all groups. */
  readonly tracks: readonly Track[]
}

/**
 * Groups the tracks by codec, the codec of the first track first. For a member without a track of the group's codec,
 * the group has the member's first track of any codec.
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
 * Tracks of members that have no track of the first group's codec. With them, the first group would contain a second
 * codec, which a player may not support.
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
 * Key of each track's member: its language and role, and its place among the tracks of the same language, role and
 * codec. The second AC-3 track in English belongs with the second AAC track in English.
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
