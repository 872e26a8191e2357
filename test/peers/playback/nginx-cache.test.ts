/**
 * Low latency through a cache that stores blocking replies and tells their age.
 */
import t from 'tap'
import { watchPlaylist, type ViewedPlaylist } from '../support/hls-js-viewer.ts'
import { startLiveClip } from '../support/live-clip.ts'
import { startNginxCache } from '../support/nginx-cache.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'
import { MemoryService, startApp } from '../../http/memory-service.ts'

/** Playlists with which hls.js requests a part that is newer by the Age of its first one; a few do. */
const TUNE_IN_VERSIONS = 10
/** Playlists that are compared. */
const COMPARED_VERSIONS = 30

/** Parts by which one viewer was behind the other, every 20 ms of a time. */
function lag(
  viewer: readonly ViewedPlaylist[],
  other: readonly ViewedPlaylist[],
  fromMs: number,
  toMs: number,
): number[] {
  const at = (versions: readonly ViewedPlaylist[], ms: number) =>
    versions.findLast(({ atMs }) => atMs <= ms)?.serial ?? -Infinity
  const lags: number[] = []
  for (let ms = fromMs; ms < toMs; ms += 20) lags.push(at(other, ms) - at(viewer, ms))
  return lags
}

t.test('hls.js behind a cache with Age is within one part of hls.js without', async (t) => {
  if (!requireTool(t, 'nginx')) return
  const service = new MemoryService()
  const { stream } = startLiveClip(t, { segmentSec: 8, playlistSegments: 6, startSec: 30 })
  service.stored.set('studio', stream)
  const { url } = await startApp(t, service)
  const cache = await startNginxCache(t, url)
  const path = '/video/studio/cmaf-video-1.m3u8'
  const { versions: direct } = watchPlaylist(t, url + path)
  await until('a player without the cache', () => direct.length > 0)
  // Fills the cache, with blocking replies too.
  watchPlaylist(t, cache + path)
  // nginx stores a playlist for half a target duration, which is 4 s.
  const cached = await until(
    'a player whose first playlist is 2 s old',
    async () => {
      const { versions, stop } = watchPlaylist(t, cache + path)
      const first = await until('a playlist', () => versions[0])
      if (first.ageSec >= 2) return versions
      stop()
      return undefined
    },
    { everyMs: 500 },
  )
  await until('parts through the cache', () => cached.length > TUNE_IN_VERSIONS + COMPARED_VERSIONS)
  const lags = lag(cached, direct, cached[TUNE_IN_VERSIONS]!.atMs, performance.now())
  // Not always: a busy machine may serve one viewer later than the other.
  const median = lags.toSorted((a, b) => a - b)[Math.floor(lags.length / 2)]!
  t.ok(median <= 1, `behind by ${median} parts: ${lags.join(' ')}`)
})
