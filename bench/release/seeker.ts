/**
 * Viewer who seeks back every second, each time to another segment of the first half of the rewind playlist.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'

const SEEK_MS = 1000

export interface Seeker {
  /** @returns number of segments read */
  stop(): Promise<number>
}

/** @param playlistUrl  live playlist of the rendition */
export function startSeeker(playlistUrl: string): Seeker {
  const stopping = new AbortController()
  const seeking = seek(playlistUrl.replace(/([^/]+)$/, 'dvr-$1'), stopping.signal)
  return {
    stop: () => {
      stopping.abort()
      return seeking
    },
  }
}

async function seek(rewindUrl: string, signal: AbortSignal): Promise<number> {
  for (let count = 0; ; count++) {
    await sleep(SEEK_MS, undefined, { signal }).catch(() => undefined)
    if (signal.aborted) return count
    const playlist = await read(rewindUrl)
    const uris = playlist.toString().match(/^[^#\n].*$/gm) ?? []
    const uri = uris[Math.floor((Math.random() * uris.length) / 2)]
    if (uri === undefined) throw new Error('the rewind playlist is empty')
    await read(new URL(uri, rewindUrl))
  }
}

async function read(url: string | URL): Promise<Buffer> {
  const response = await fetch(url)
  if (!response.ok) throw new Error(`${String(url)} answered ${response.status}`)
  return Buffer.from(await response.arrayBuffer())
}
