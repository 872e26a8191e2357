/**
 * Names of the files of a stream. The renditions of a stream are the main one, further variants and alternative audio:
 * each is a transport stream with its own playlist, and all are cut at the same times.
 *
 * @module
 */

export const MULTIVARIANT_URI = 'master.m3u8'

/** The newest key frame of the main rendition. */
export const PREVIEW_URI = 'preview.ts'

/** The numbers begin at 2, since the first video track and the first audio track are in the main rendition. */
export type RenditionName = 'main' | `video-${number}` | `audio-${number}`

/** URI of a rendition's media playlist, relative to the multivariant playlist. */
export function playlistUri(name: RenditionName): string {
  return name === 'main' ? 'playlist.m3u8' : `${name}.m3u8`
}

/** @returns for example `{epoch}-7.ts`, `{epoch}-v2-7.ts` or `{epoch}-a2-7.ts`: unique in the process */
export function segmentUri(epoch: string, name: RenditionName, mediaSequence: number): string {
  return `${epoch}-${tagOf(name)}${mediaSequence}.ts`
}

/**
 * @param serial  number of the part in its stream, so that the URI of the next part is known before its segment is
 * @returns for example `{epoch}-p7.ts`, `{epoch}-v2-p7.ts` or `{epoch}-a2-p7.ts`: unique in the process
 */
export function partUri(epoch: string, name: RenditionName, serial: number): string {
  return `${epoch}-${tagOf(name)}p${serial}.ts`
}

export function isAudioRendition(name: RenditionName): boolean {
  return name.startsWith('audio-')
}

function tagOf(name: RenditionName): string {
  return name === 'main' ? '' : `${name.replace(/^(.).*-/, '$1')}-`
}
