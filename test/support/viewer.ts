/**
 * Viewer that records every version of a playlist and every segment listed in any.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'

export interface Recording {
  /** Versions of the media playlist in order of appearance. */
  readonly playlists: string[]
  /** Segments by URI, in playlist order. */
  readonly segments: Map<string, Buffer>
  /** URIs of listed segments that could not be fetched. */
  readonly failures: string[]
}

/**
 * Follows a media playlist until its ENDLIST or the signal.
 *
 * @param playlistUrl  URL from the API or a webhook; 404 means "not yet" until the first success
 */
export async function record(playlistUrl: string, signal: AbortSignal): Promise<Recording> {
  const recording: Recording = { playlists: [], segments: new Map(), failures: [] }
  while (!signal.aborted) {
    const reply = await fetch(playlistUrl)
    const text = await reply.text()
    if (reply.ok && text !== recording.playlists.at(-1)) {
      recording.playlists.push(text)
      await fetchNew(new URL(playlistUrl), text, recording)
    } else if (!reply.ok && recording.playlists.length > 0) {
      recording.failures.push(`${reply.status} ${playlistUrl}`)
    }
    if (text.includes('#EXT-X-ENDLIST')) break
    // The pace of a player that polls.
    await sleep(200, undefined, { signal }).catch(() => undefined)
  }
  return recording
}

async function fetchNew(base: URL, playlist: string, recording: Recording): Promise<void> {
  for (const uri of segmentUris(playlist)) {
    if (recording.segments.has(uri)) continue
    const reply = await fetch(new URL(uri, base))
    if (reply.ok) recording.segments.set(uri, Buffer.from(await reply.arrayBuffer()))
    else recording.failures.push(`${reply.status} ${uri}`)
  }
}

/** URIs of all segments without EXT-X-GAP. */
export function segmentUris(playlist: string): string[] {
  const uris: string[] = []
  let isGap = false
  for (const line of playlist.split('\n')) {
    if (line === '#EXT-X-GAP') isGap = true
    if (line === '' || line.startsWith('#')) continue
    if (!isGap) uris.push(line)
    isGap = false
  }
  return uris
}
