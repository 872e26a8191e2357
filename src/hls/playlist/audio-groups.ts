/**
 * Groups of alternative audio. A player rejects a variant with one codec that it does not support, so each codec makes
 * a group. All groups have the same members (RFC 8216bis 4.4.6.1.1): what a viewer chooses, whatever the codec.
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
 * Groups for the codecs of the tracks, that of the first track first. A member that a codec lacks has the track of an
 * earlier codec.
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

/** Tracks of members that the first track's codec lacks: its group would need a codec that a player may not support. */
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
