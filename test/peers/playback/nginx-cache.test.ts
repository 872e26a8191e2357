/**
 * Low latency through a cache that stores blocking replies and tells their age.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { watchPlaylist, type ViewedPlaylist } from '../support/hls-js-viewer.ts'
import { startLiveClip } from '../support/live-clip.ts'
import { startNginxCache } from '../support/nginx-cache.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'
import { MemoryService, startApp } from '../../http/memory-service.ts'

/** Time in which hls.js requests a part that is newer by the Age of its first playlist, and a busy machine starts it. */
const TUNE_IN_MS = 3000

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
  const direct = watchPlaylist(t, url + path)
  // Fills the cache with blocking replies.
  watchPlaylist(t, cache + path)
  await sleep(4000)
  // A playlist that is 2 s old when the viewer comes: nginx stores it for half a target duration, which is 4 s.
  await until('a playlist that has just been stored', async () => {
    return (await fetch(cache + path)).headers.get('x-cache') !== 'HIT'
  })
  await sleep(1900)
  const joinedMs = performance.now()
  const cached = watchPlaylist(t, cache + path)
  await until('parts through the cache', () => cached.length > 40)
  const [joined] = cached
  t.ok(joined !== undefined && joined.ageSec > 0, `an Age of ${joined?.ageSec} s`)
  const lags = lag(cached, direct, joinedMs + TUNE_IN_MS, performance.now())
  // Not always: a busy machine may serve one viewer later than the other.
  const median = lags.toSorted((a, b) => a - b)[Math.floor(lags.length / 2)]!
  t.ok(median <= 1, `behind by ${median} parts: ${lags.join(' ')}`)
})
