/**
 * Contents of the multivariant playlist, from the renditions and their measurements.
 *
 * @module
 */
import type { Track } from '../../mpegts/track.ts'
import { isAudioRendition, playlistUri, type RenditionName } from '../file-names.ts'
import { languageName, languageTag } from '../language.ts'
import { groupAudio } from '../rendition/audio-groups.ts'
import type { RenditionSummary } from './rendition-meter.ts'
import type { AudioRendition, MultivariantPlaylist, Variant } from './playlist.ts'

/** LANGUAGE of renditions without a language code (RFC 5646 4.1): Apple's authoring specification requires a value. */
const UNKNOWN_LANGUAGE = 'und'

/** Rendition that has media. */
interface Rendition {
  readonly name: RenditionName
  readonly summary: RenditionSummary
}

/** Renditions of one GROUP-ID. */
interface AudioGroup {
  readonly id: string
  /** Members of the group, the default one first. */
  readonly members: readonly GroupMember[]
}

interface GroupMember {
  readonly rendition: Rendition
  readonly language: string | undefined
  readonly describesVideo: boolean
}

/** Claim about captions: `auto` claims captions once they are seen; `always` and `never` are the operator's claims. */
export type CaptionsPolicy = 'auto' | 'always' | 'never'

/**
 * @param renditions  of one format: the main one first or, of CMAF, video before audio
 * @param isSearchable  whether players may look into the segments for captions that are not claimed
 */
export function describePresentation(
  renditions: readonly Rendition[],
  captions: CaptionsPolicy,
  isSearchable = true,
): MultivariantPlaylist {
  const withVideo = renditions.filter(({ name }) => !isAudioRendition(name))
  // Without video, the first audio is the variant.
  const variants = withVideo.length > 0 ? withVideo : renditions.slice(0, 1)
  const groups = groupRenditions(renditions)
  // If one variant is HDR, all variants state VIDEO-RANGE (Apple's authoring specification).
  const isHdr = variants.some(({ summary }) => (summary.videoRange ?? 'SDR') !== 'SDR')
  const closedCaptions = describeCaptions(renditions, captions, isSearchable)
  return {
    ...(closedCaptions !== undefined && { closedCaptions }),
    audios: groups.flatMap(describeGroup),
    variants: (groups.length === 0 ? [undefined] : groups).flatMap((group) =>
      variants.map((variant) => describeVariant(variant, group, isHdr)),
    ),
  }
}

/**
 * Describes the captions. CLOSED-CAPTIONS is absent until captions are seen: players read the playlist once, captions
 * may begin later, and players do not look for captions after CLOSED-CAPTIONS=NONE (RFC 8216bis 4.4.6.2).
 */
function describeCaptions(
  renditions: readonly Rendition[],
  policy: CaptionsPolicy,
  isSearchable: boolean,
): MultivariantPlaylist['closedCaptions'] {
  if (policy === 'never') return 'none'
  const isSeen = renditions.some(
    ({ summary }) => videoOf(summary)?.parameters?.closedCaptions === true,
  )
  if (policy === 'auto' && !isSeen) return isSearchable ? undefined : 'none'
  // CC1 is the primary caption service, in the language of the audio (CTA-608).
  const first = renditions.find(({ summary }) => audioOf(summary) !== undefined)
  return { language: languageOf(first) ?? UNKNOWN_LANGUAGE }
}

/** Groups the audio of the first rendition and of audio renditions; every variant is listed once for each group. */
function groupRenditions(renditions: readonly Rendition[]): AudioGroup[] {
  const alternatives = renditions.slice(1).filter(({ name }) => isAudioRendition(name))
  if (alternatives.length === 0) return []
  const byTrack = new Map<Track, Rendition>()
  for (const rendition of [...renditions.slice(0, 1), ...alternatives]) {
    const track = audioOf(rendition.summary)
    if (track !== undefined) byTrack.set(track, rendition)
  }
  return groupAudio([...byTrack.keys()]).map(({ codec, members }, index) => ({
    id: index === 0 ? 'audio' : `audio-${codec}`,
    members: members.map(({ track, ...member }) => ({ ...member, rendition: byTrack.get(track)! })),
  }))
}

function describeGroup({ id, members }: AudioGroup): AudioRendition[] {
  const names = new Set<string>()
  const kinds = new Set<string>()
  return members.map(({ rendition, language, describesVideo }, index) => {
    const plain = (language && languageName(language)) ?? `Audio ${index + 1}`
    const name = names.has(plain) ? `${plain} ${index + 1}` : plain
    names.add(name)
    const kind = `${language} ${describesVideo}`
    const isAutoselect = !kinds.has(kind)
    kinds.add(kind)
    const channels = audioOf(rendition.summary)?.parameters?.channels
    return {
      groupId: id,
      name,
      isDefault: index === 0,
      isAutoselect,
      language: language ?? UNKNOWN_LANGUAGE,
      ...(channels !== undefined && { channels }),
      ...(describesVideo && { characteristics: 'public.accessibility.describes-video' }),
      // Audio in the variants has no playlist of its own (RFC 8216bis 4.4.6.2.1).
      ...(isAudioRendition(rendition.name) && { uri: playlistUri(rendition.name) }),
    }
  })
}

function describeVariant(
  { name, summary }: Rendition,
  group: AudioGroup | undefined,
  isHdr: boolean,
): Variant {
  const alternatives = (group?.members ?? [])
    .map(({ rendition }) => rendition)
    .filter((rendition) => isAudioRendition(rendition.name) && rendition.name !== name)
  const maxAudio = (rate: 'peakBps' | 'averageBps') =>
    Math.max(0, ...alternatives.map((rendition) => rendition.summary[rate]))
  const { tracks, frameRate, videoRange } = summary
  const { width, height } = videoOf(summary)?.parameters ?? {}
  const carried = [...tracks, ...alternatives.flatMap((rendition) => rendition.summary.tracks)]
  return {
    uri: playlistUri(name),
    peakBps: summary.peakBps + maxAudio('peakBps'),
    averageBps: summary.averageBps + maxAudio('averageBps'),
    codecs: [...new Set(carried.flatMap(({ parameters }) => parameters?.codecString ?? []))],
    ...(width !== undefined && height !== undefined && { resolution: { width, height } }),
    ...(frameRate !== undefined && { frameRate }),
    ...(isHdr && videoRange !== undefined && { videoRange }),
    ...(group !== undefined && { audioGroup: group.id }),
  }
}

function videoOf({ tracks }: RenditionSummary): Track | undefined {
  return tracks.find(({ kind }) => kind === 'video')
}

function audioOf({ tracks }: RenditionSummary): Track | undefined {
  return tracks.find(({ kind }) => kind === 'audio')
}

function languageOf(rendition: Rendition | undefined): string | undefined {
  const code = rendition && audioOf(rendition.summary)?.language
  return code === undefined ? undefined : languageTag(code)
}
