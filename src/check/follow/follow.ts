/**
 * Follows a stream as players do: loads its multivariant playlist, and follows each media playlist that it names. Of a
 * player page of Millrace, the playlists of its stream.
 *
 * @module
 */
import { isWebPage, type Exchange } from '../exchange.ts'
import { isMultivariant, parseMultivariantPlaylist } from '../playlist/multivariant-playlist.ts'
import type { CheckClock } from './check-clock.ts'
import { GZIP, HttpClient, type Loaded, type Request } from './http-client.ts'
import { PlaylistFollower, type FollowContext } from './playlist-follower.ts'

interface FollowOptions {
  /** http or https; of a multivariant or a media playlist, or of a page `/watch/{stream_id}`. */
  readonly url: string
  /** Duration of the check; an ended stream ends it earlier. */
  readonly seconds: number
  readonly clock: CheckClock
  readonly signal?: AbortSignal | undefined
  /** Size of all bodies, decoded, at which the check ends; default none. */
  readonly maxBytes?: number | undefined
  /** Called for each exchange, without credentials, in the order in which rules are to see them. */
  readonly onExchange: (exchange: Exchange) => void
}

/** Media playlists that are followed, and those of them that are probed. */
const MAX_PLAYLISTS = 16
const MAX_PROBED = 2

/**
 * Resolves after `seconds`, at the end of the stream, at `maxBytes`, or when the signal aborts.
 *
 * @returns whether `maxBytes` ended it
 */
export async function followStream(options: FollowOptions): Promise<boolean> {
  const { url, seconds, clock, signal, maxBytes = Infinity, onExchange } = options
  const end = new AbortController()
  const stop = () => end.abort()
  const timer = clock.startTimer(seconds * 1000, stop)
  signal?.addEventListener('abort', stop, { once: true })
  if (signal?.aborted === true) stop()
  let bytesLeft = maxBytes
  const client = new HttpClient(url, clock, end.signal, (bytes) => {
    bytesLeft -= bytes
    if (bytesLeft <= 0) stop()
  })
  const context: FollowContext = {
    seconds,
    clock,
    signal: end.signal,
    load: (request) => client.load(request),
    emit: ({ exchange }) => onExchange(exchange),
  }
  try {
    const first = await client.load({ role: 'multivariant', url, headers: GZIP })
    if (first === undefined) return bytesLeft <= 0
    if (isWebPage(first.exchange)) await followPage(first, context)
    else await followAll(first, context, url)
  } finally {
    stop()
    timer.stop()
    signal?.removeEventListener('abort', stop)
  }
  return bytesLeft <= 0
}

/** Follows the first playlist of the page's stream that there is; reports the last if there is none. */
async function followPage(page: Loaded, context: FollowContext): Promise<void> {
  context.emit(page)
  const playlists = playlistsOfPage(page.url)
  for (const url of playlists) {
    const loaded = await context.load({ role: 'multivariant', url, headers: GZIP })
    if (loaded === undefined) return
    if (loaded.status === 200 || url === playlists.at(-1)) return followAll(loaded, context, url)
  }
}

/** @returns none unless the page is `/watch/{stream_id}`; a playback token or a prefix before that stays */
function playlistsOfPage(url: string): readonly string[] {
  const { origin, pathname } = new URL(url)
  const [, prefix = '', streamId] = /^(.*)\/watch\/([^/]+)$/.exec(pathname) ?? []
  if (streamId === undefined) return []
  return ['master.m3u8', 'playlist.m3u8'].map(
    (name) => `${origin}${prefix}/video/${streamId}/${name}`,
  )
}

async function followAll(first: Loaded, context: FollowContext, url: string): Promise<void> {
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
  { seconds, clock, load, emit, signal }: FollowContext,
  ended: AbortSignal,
): Promise<void> {
  const over = AbortSignal.any([signal, ended])
  await clock.sleep(seconds * 500, over)
  const loaded = over.aborted ? undefined : await load(request)
  if (loaded !== undefined) emit(loaded)
}
