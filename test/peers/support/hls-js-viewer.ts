/**
 * hls.js without a screen: it loads playlists of a low-latency stream as in a browser, and no media.
 *
 * @module
 */
import type { Loader, LoaderCallbacks, LoaderConfiguration, PlaylistLoaderContext } from 'hls.js'
import type { Test } from 'tap'

// The module looks for global objects of a browser.
Object.assign(globalThis, { self: globalThis, location: new URL('http://localhost/') })
const { default: Hls, LoadStats } = await import('hls.js')

/** A version of the playlist as hls.js has read it. */
export interface ViewedPlaylist {
  /** Time of arrival, `performance.now()`. */
  readonly atMs: number
  /** Number of the newest part in its stream. */
  readonly serial: number
  /** `Age` of the reply in seconds. */
  readonly ageSec: number
}

export interface PlaylistViewer {
  /** Versions so far, oldest first. */
  readonly versions: readonly ViewedPlaylist[]
  stop(): void
}

/** Follows a playlist until the test ends. */
export function watchPlaylist(t: Test, url: string): PlaylistViewer {
  const versions: ViewedPlaylist[] = []
  const hls = new Hls({ pLoader: FetchLoader, enableWorker: false, lowLatencyMode: true })
  hls.on(Hls.Events.LEVEL_LOADED, (_, { details }) => {
    const uri = details.partList?.at(-1)?.relurl ?? ''
    const serial = Number(/p(\d+)\.m4s$/.exec(uri)?.[1] ?? -1)
    versions.push({ atMs: performance.now(), serial, ageSec: details.ageHeader })
  })
  hls.on(Hls.Events.ERROR, (_, { details, error }) => t.fail(`hls.js: ${details} ${error.message}`))
  hls.loadSource(url)
  const stop = () => hls.destroy()
  t.teardown(stop)
  return { versions, stop }
}

class FetchLoader implements Loader<PlaylistLoaderContext> {
  readonly #abort = new AbortController()
  #headers = new Headers()
  stats = new LoadStats()
  context: PlaylistLoaderContext | null = null

  load(
    context: PlaylistLoaderContext,
    _: LoaderConfiguration,
    callbacks: LoaderCallbacks<PlaylistLoaderContext>,
  ): void {
    this.context = context
    this.stats.loading.start = performance.now()
    this.#load(context, callbacks).catch((error: unknown) => {
      if (this.stats.aborted) return
      callbacks.onError({ code: 0, text: String(error) }, context, undefined, this.stats)
    })
  }

  async #load(
    context: PlaylistLoaderContext,
    callbacks: LoaderCallbacks<PlaylistLoaderContext>,
  ): Promise<void> {
    const { stats } = this
    const reply = await fetch(context.url, { signal: this.#abort.signal })
    stats.loading.first = performance.now()
    const data = await reply.text()
    stats.loading.end = performance.now()
    stats.loaded = stats.total = data.length
    this.#headers = reply.headers
    if (reply.ok) callbacks.onSuccess({ url: reply.url, data }, stats, context, reply)
    else callbacks.onError({ code: reply.status, text: data }, context, reply, stats)
  }

  abort(): void {
    this.stats.aborted = true
    this.#abort.abort()
  }

  destroy(): void {
    this.abort()
  }

  getCacheAge(): number | null {
    const age = this.getResponseHeader('age')
    return age === null ? null : Number(age)
  }

  getResponseHeader(name: string): string | null {
    return this.#headers.get(name)
  }
}
