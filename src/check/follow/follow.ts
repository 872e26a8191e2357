/**
 * Follows a stream: its multivariant playlist, and each media playlist that it names.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Exchange } from '../exchange.ts'
import { isMultivariant, parseMultivariantPlaylist } from '../playlist/multivariant-playlist.ts'
import { GZIP, HttpClient, type Loaded, type Request } from './http-client.ts'
import { PlaylistFollower, type FollowContext } from './playlist-follower.ts'

export interface FollowOptions {
  /** http or https; of a multivariant or a media playlist. */
  readonly url: string
  /** Duration of the check; an ended stream ends it earlier. */
  readonly seconds: number
  /** Milliseconds since 1970, on a clock that does not jump. */
  readonly nowMs: () => number
  readonly signal?: AbortSignal | undefined
  /** Called for each exchange, without credentials, in the order in which rules are to see them. */
  readonly onExchange: (exchange: Exchange) => void
}

/** Media playlists that are followed, and those of them that are probed. */
const MAX_PLAYLISTS = 16
const MAX_PROBED = 2

/** Resolves after `seconds`, at the end of the stream, or when the signal aborts. */
export async function follow(options: FollowOptions): Promise<void> {
  const { url, seconds, nowMs, onExchange } = options
  const end = new AbortController()
  const stop = () => end.abort()
  const timer = setTimeout(stop, seconds * 1000)
  options.signal?.addEventListener('abort', stop, { once: true })
  if (options.signal?.aborted === true) stop()
  const client = new HttpClient(url, nowMs, end.signal)
  const context: FollowContext = {
    seconds,
    nowMs,
    signal: end.signal,
    load: (request) => client.load(request),
    emit: ({ exchange }) => onExchange(exchange),
  }
  try {
    const first = await client.load({ role: 'multivariant', url, headers: GZIP })
    if (first !== undefined) await followAll(first, context, options)
  } finally {
    stop()
    clearTimeout(timer)
    options.signal?.removeEventListener('abort', stop)
  }
}

async function followAll(
  first: Loaded,
  context: FollowContext,
  { url }: FollowOptions,
): Promise<void> {
  const text = first.body.toString()
  if (!isMultivariant(text)) {
    const asPlaylist: Loaded = { ...first, exchange: { ...first.exchange, role: 'playlist' } }
    if (first.status !== 200) return context.emit(asPlaylist)
    return new PlaylistFollower(url, context, true).run(asPlaylist)
  }
  context.emit(first)
  const { variants, renditions } = parseMultivariantPlaylist(text, first.url)
  const urls = [...variants, ...renditions].map((each) => each.url)
  const playlists = [...new Set(urls)]
    .filter((each) => each !== undefined && /^https?:/.test(each))
    .slice(0, MAX_PLAYLISTS) as string[]
  const probed = probedOf(
    playlists,
    renditions.map((rendition) => rendition.url),
  )
  const done = new AbortController()
  const halfway = reloadHalfway({ role: 'multivariant', url, headers: GZIP }, context, done.signal)
  await Promise.all(
    playlists.map((each) => new PlaylistFollower(each, context, probed.includes(each)).run()),
  )
  done.abort()
  await halfway
}

/** A variant, and an alternative rendition if there is one. */
function probedOf(playlists: readonly string[], renditions: readonly (string | undefined)[]) {
  const isRendition = (url: string) => renditions.includes(url)
  const variant = playlists.find((url) => !isRendition(url))
  const rendition = playlists.find(isRendition)
  return [variant, rendition].filter((url) => url !== undefined).slice(0, MAX_PROBED)
}

/** Reloads the multivariant playlist halfway, unless the stream ends before. */
async function reloadHalfway(
  request: Request,
  { seconds, load, emit, signal }: FollowContext,
  ended: AbortSignal,
): Promise<void> {
  const over = AbortSignal.any([signal, ended])
  await sleep(seconds * 500, undefined, { signal: over }).catch(() => undefined)
  const loaded = over.aborted ? undefined : await load(request)
  if (loaded !== undefined) emit(loaded)
}
