/**
 * Names of the files of a stream. Each rendition has its own playlist, and all are cut at the same times.
 *
 * - Transport stream: the main rendition has video and audio; further videos are variants, further audio is alternative
 *   audio.
 * - CMAF: one track in each rendition (ISO/IEC 23000-19 7.3).
 *
 * @module
 */

/** Format of segments. */
export type Format = 'ts' | 'cmaf'

/** Extension of segments and parts, by format. */
const EXTENSIONS: Readonly<Record<Format, string>> = { ts: 'ts', cmaf: 'm4s' }

/** Characters of an epoch and of what distinguishes its files. */
const STEM = '[A-Za-z0-9_-]{1,120}'
const EXTENSION = `\\.(?:${Object.values(EXTENSIONS).join('|')})`

// Regular expressions of names that come from outside.
export const RENDITION_PATTERN = '^(main|(cmaf-)?(video|audio)-[1-9][0-9]{0,2})$'
export const SEGMENT_URI_PATTERN = `^${STEM}${EXTENSION}$`
export const INIT_URI_PATTERN = `^${STEM}\\.mp4$`

const PART_URI = new RegExp(`-p\\d+${EXTENSION}$`)
const CMAF_URI = /-([av])(\d+)-\w+\.(?:m4s|mp4)$/
const CMAF_AUDIO_PLAYLIST_URI = /^cmaf-audio-\d+\.m3u8$/

/** Multivariant playlist for players: CMAF or, without it, transport stream. */
export const MULTIVARIANT_URI = 'master.m3u8'

/** Multivariant playlist of transport stream. */
export const TS_MULTIVARIANT_URI = 'ts.m3u8'

/** Before the name of a playlist: the one that lists what has left it, too, as far as the archive has it. */
export const REWIND_PREFIX = 'dvr-'

/** Multivariant playlist of these. */
export const REWIND_URI = 'dvr.m3u8'

/** The newest key frame of the main rendition. */
export const PREVIEW_URI = 'preview.ts'

/** The numbers begin at 2, since the first video track and the first audio track are in the main rendition. */
type TsRendition = 'main' | `video-${number}` | `audio-${number}`

/** The numbers begin at 1. */
export type CmafRendition = `cmaf-video-${number}` | `cmaf-audio-${number}`

/** Name of a rendition in file names: a playlist, and its segments. */
export type RenditionName = TsRendition | CmafRendition

export function formatOf(name: RenditionName): Format {
  return isCmafRendition(name) ? 'cmaf' : 'ts'
}

export function isCmafRendition(name: RenditionName): name is CmafRendition {
  return name.startsWith('cmaf-')
}

/** URI of a rendition's media playlist, relative to the multivariant playlist. */
export function playlistUri(name: RenditionName): string {
  return name === 'main' ? 'playlist.m3u8' : `${name}.m3u8`
}

export function isPlaylistUri(uri: string): boolean {
  return uri.endsWith('.m3u8')
}

/** Whether the file is the media playlist of an audio rendition of CMAF, by its name. */
export function isCmafAudioPlaylistUri(uri: string): boolean {
  return CMAF_AUDIO_PLAYLIST_URI.test(uri)
}

/** URI of the media playlist with a segment, part or init segment, by its name; of transport stream: the main one. */
export function playlistUriOf(uri: string): string {
  const [, kind, number] = CMAF_URI.exec(uri) ?? []
  if (kind === undefined) return playlistUri('main')
  return playlistUri(`cmaf-${kind === 'v' ? 'video' : 'audio'}-${Number(number)}`)
}

/** @returns for example `{epoch}-7.ts`, `{epoch}-a2-7.ts` or `{epoch}-v1-7.m4s`: unique in the process */
export function segmentUri(epoch: string, name: RenditionName, mediaSequence: number): string {
  return `${epoch}-${tagOf(name)}${mediaSequence}.${EXTENSIONS[formatOf(name)]}`
}

/**
 * @param serial  number of the part in its stream, so that the URI of the next part is known before its segment is
 * @returns for example `{epoch}-v1-p7.m4s` or `{epoch}-a2-p7.m4s`: unique in the process
 */
export function partUri(epoch: string, name: RenditionName, serial: number): string {
  return `${epoch}-${tagOf(name)}p${serial}.${EXTENSIONS.cmaf}`
}

/** Whether the file is a part, by its name. */
export function isPartUri(uri: string): boolean {
  return PART_URI.test(uri)
}

/**
 * @param hash  of the content
 * @returns for example `{epoch}-v1-0123456789ab.mp4`
 */
export function initUri(epoch: string, name: CmafRendition, hash: string): string {
  return `${epoch}-${tagOf(name)}${hash}.mp4`
}

export function isAudioRendition(name: RenditionName): boolean {
  return /^(cmaf-)?audio-/.test(name)
}

/** @returns for example `v2-` or `a1-`; empty for the main rendition */
function tagOf(name: RenditionName): string {
  return name === 'main' ? '' : `${name.replace(/^(?:cmaf-)?(.).*-/, '$1')}-`
}
