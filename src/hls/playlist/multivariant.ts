/**
 * What a multivariant playlist says of the renditions there are.
 *
 * @module
 */
import type { Track } from '../../mpegts/track.ts'
import { listDescriptors } from '../../mpegts/psi/descriptors.ts'
import { languageName, languageTag } from './language.ts'
import type { RenditionSummary } from './rendition-meter.ts'
import type { AudioRendition, MultivariantPlaylist, Variant } from './playlist.ts'
import { isAudioRendition, playlistUri, type RenditionName } from '../file-names.ts'

/** ISO_639_language_descriptor and its audio_type for commentary on the picture (ISO/IEC 13818-1 2.6.18). */
const LANGUAGE_DESCRIPTOR = 0x0a
const VISUAL_IMPAIRED_COMMENTARY = 0x03

/** A rendition that can be played, and what is known of it. */
export interface Offer {
  readonly name: RenditionName
  readonly summary: RenditionSummary
}

/** EXT-X-MEDIA tags of one GROUP-ID. */
interface AudioGroup {
  readonly id: string
  readonly sounds: readonly Offer[]
}

/** @param offers  the main rendition first */
export function describePresentation(offers: readonly Offer[]): MultivariantPlaylist {
  const variants = offers.filter(({ name }) => !isAudioRendition(name))
  const groups = groupSounds(offers)
  return {
    independentSegments: offers.every(({ summary }) => summary.independentSegments),
    closedCaptions: variants.some(
      ({ summary }) => videoOf(summary)?.parameters?.closedCaptions === true,
    ),
    audios: groups.flatMap((group) => describeGroup(group, offers[0])),
    variants: (groups.length === 0 ? [undefined] : groups).flatMap((group) =>
      variants.map((variant) => describeVariant(variant, group)),
    ),
  }
}

/**
 * Alternative sound by codec, that of the main rendition first. A player leaves out a variant for one codec that it
 * lacks, so no group may ask for two, and every variant is there once for each group.
 */
function groupSounds(offers: readonly Offer[]): AudioGroup[] {
  const alternatives = offers.filter(({ name }) => isAudioRendition(name))
  if (alternatives.length === 0) return []
  const sounds = [...offers.slice(0, 1), ...alternatives].filter(({ summary }) => audioOf(summary))
  const codecs = new Set(sounds.map(({ summary }) => audioOf(summary)?.codec))
  return [...codecs].map((codec, index) => ({
    id: index === 0 ? 'audio' : `audio-${codec}`,
    sounds: sounds.filter(({ summary }) => audioOf(summary)?.codec === codec),
  }))
}

function describeGroup({ id, sounds }: AudioGroup, main: Offer | undefined): AudioRendition[] {
  const preferred = sounds.find((sound) => languageOf(sound) === languageOf(main)) ?? sounds[0]
  const names = new Set<string>()
  return sounds.map((sound, index) => {
    const language = languageOf(sound)
    const plain = (language && languageName(language)) ?? `Audio ${index + 1}`
    const name = names.has(plain) ? `${plain} ${index + 1}` : plain
    names.add(name)
    const channels = audioOf(sound.summary)?.parameters?.channels
    return {
      groupId: id,
      name,
      isDefault: sound === preferred,
      ...(language !== undefined && { language }),
      ...(channels !== undefined && { channels }),
      ...(describesVideo(sound) && { characteristics: 'public.accessibility.describes-video' }),
      // Sound that is in the variants has no playlist of its own (RFC 8216bis 4.4.6.2.1).
      ...(isAudioRendition(sound.name) && { uri: playlistUri(sound.name) }),
    }
  })
}

function describeVariant({ name, summary }: Offer, group: AudioGroup | undefined): Variant {
  const alternatives = (group?.sounds ?? []).filter((sound) => isAudioRendition(sound.name))
  const most = (rate: 'peakBps' | 'averageBps') =>
    Math.max(0, ...alternatives.map((sound) => sound.summary[rate]))
  const { tracks, frameRate } = summary
  const { width, height } = videoOf(summary)?.parameters ?? {}
  const carried = [...tracks, ...alternatives.flatMap((sound) => sound.summary.tracks)]
  return {
    uri: playlistUri(name),
    peakBps: summary.peakBps + most('peakBps'),
    averageBps: summary.averageBps + most('averageBps'),
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

function describesVideo({ summary }: Offer): boolean {
  const track = audioOf(summary)
  return listDescriptors(track?.descriptors ?? Buffer.alloc(0)).some(
    ({ tag, data }) => tag === LANGUAGE_DESCRIPTOR && data[3] === VISUAL_IMPAIRED_COMMENTARY,
  )
}

function languageOf(offer: Offer | undefined): string | undefined {
  const code = offer && audioOf(offer.summary)?.language
  return code === undefined ? undefined : languageTag(code)
}
