/**
 * Contents of the multivariant playlist, from the renditions and their measurements.
 *
 * @module
 */
import type { Track } from '../../mpegts/track.ts'
import { listDescriptors } from '../../mpegts/psi/descriptors.ts'
import { languageName, languageTag } from './language.ts'
import type { RenditionSummary } from './rendition-meter.ts'
import type { AudioRendition, MultivariantPlaylist, Variant } from './playlist.ts'
import { isAudioRendition, playlistUri, type RenditionName } from '../file-names.ts'

/** ISO_639_language_descriptor and its audio_type for audio description (ISO/IEC 13818-1 2.6.18). */
const LANGUAGE_DESCRIPTOR = 0x0a
const VISUAL_IMPAIRED_COMMENTARY = 0x03

/** Playable rendition. */
export interface Rendition {
  readonly name: RenditionName
  readonly summary: RenditionSummary
}

/** EXT-X-MEDIA tags of one GROUP-ID. */
interface AudioGroup {
  readonly id: string
  readonly members: readonly Rendition[]
}

/** @param renditions  the main one first */
export function describePresentation(renditions: readonly Rendition[]): MultivariantPlaylist {
  const variants = renditions.filter(({ name }) => !isAudioRendition(name))
  const groups = groupAudio(renditions)
  return {
    independentSegments: renditions.every(({ summary }) => summary.independentSegments),
    closedCaptions: variants.some(
      ({ summary }) => videoOf(summary)?.parameters?.closedCaptions === true,
    ),
    audios: groups.flatMap((group) => describeGroup(group, renditions[0])),
    variants: (groups.length === 0 ? [undefined] : groups).flatMap((group) =>
      variants.map((variant) => describeVariant(variant, group)),
    ),
  }
}

/**
 * Groups alternative audio by codec, that of the main rendition first. A player rejects a variant with one codec that
 * it does not support, so each group has a single codec, and every variant is listed once per group.
 */
function groupAudio(renditions: readonly Rendition[]): AudioGroup[] {
  const alternatives = renditions.filter(({ name }) => isAudioRendition(name))
  if (alternatives.length === 0) return []
  const members = [...renditions.slice(0, 1), ...alternatives].filter(({ summary }) =>
    audioOf(summary),
  )
  const codecs = new Set(members.map(({ summary }) => audioOf(summary)?.codec))
  return [...codecs].map((codec, index) => ({
    id: index === 0 ? 'audio' : `audio-${codec}`,
    members: members.filter(({ summary }) => audioOf(summary)?.codec === codec),
  }))
}

function describeGroup({ id, members }: AudioGroup, main: Rendition | undefined): AudioRendition[] {
  const preferred = members.find((each) => languageOf(each) === languageOf(main)) ?? members[0]
  const names = new Set<string>()
  return members.map((member, index) => {
    const language = languageOf(member)
    const plain = (language && languageName(language)) ?? `Audio ${index + 1}`
    const name = names.has(plain) ? `${plain} ${index + 1}` : plain
    names.add(name)
    const channels = audioOf(member.summary)?.parameters?.channels
    return {
      groupId: id,
      name,
      isDefault: member === preferred,
      ...(language !== undefined && { language }),
      ...(channels !== undefined && { channels }),
      ...(describesVideo(member) && { characteristics: 'public.accessibility.describes-video' }),
      // Audio in the variants has no playlist of its own (RFC 8216bis 4.4.6.2.1).
      ...(isAudioRendition(member.name) && { uri: playlistUri(member.name) }),
    }
  })
}

function describeVariant({ name, summary }: Rendition, group: AudioGroup | undefined): Variant {
  const alternatives = (group?.members ?? []).filter((member) => isAudioRendition(member.name))
  const maxAudio = (rate: 'peakBps' | 'averageBps') =>
    Math.max(0, ...alternatives.map((member) => member.summary[rate]))
  const { tracks, frameRate } = summary
  const { width, height } = videoOf(summary)?.parameters ?? {}
  const carried = [...tracks, ...alternatives.flatMap((member) => member.summary.tracks)]
  return {
    uri: playlistUri(name),
    peakBps: summary.peakBps + maxAudio('peakBps'),
    averageBps: summary.averageBps + maxAudio('averageBps'),
    codecs: [...new Set(carried.flatMap(({ parameters }) => parameters?.codecString ?? []))],
    ...(width !== undefined && height !== undefined && { resolution: { width, height } }),
    ...(frameRate !== undefined && { frameRate }),
    ...(group !== undefined && { audioGroup: group.id }),
  }
}

function videoOf({ tracks }: RenditionSummary): Track | undefined {
  return tracks.find(({ kind }) => kind === 'video')
}

function audioOf({ tracks }: RenditionSummary): Track | undefined {
  return tracks.find(({ kind }) => kind === 'audio')
}

function describesVideo({ summary }: Rendition): boolean {
  const track = audioOf(summary)
  return listDescriptors(track?.descriptors ?? Buffer.alloc(0)).some(
    ({ tag, data }) => tag === LANGUAGE_DESCRIPTOR && data[3] === VISUAL_IMPAIRED_COMMENTARY,
  )
}

function languageOf(rendition: Rendition | undefined): string | undefined {
  const code = rendition && audioOf(rendition.summary)?.language
  return code === undefined ? undefined : languageTag(code)
}
