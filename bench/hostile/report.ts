/**
 * Results of the attacks as a table, and the violations in them.
 *
 * @module
 */
import { formatTable } from '../support/table.ts'
import type { AttackResult } from './measure.ts'

const MIB = 1024 * 1024
const MAX_PLAYLIST_MS = 250
const MAX_FIRST_BYTE_P99_MS = 250
/** Beside the media of the publisher: buffers and heap of closed connections, until V8 collects them. */
const MAX_GROWTH_BYTES = 100 * MIB
/** Tolerated share above the bound of memory. */
const MAX_RSS_EXCESS = 0.1

export function formatAttacks(results: readonly AttackResult[]): string {
  return formatTable(
    [
      { title: 'attack' },
      { title: 'seconds' },
      { title: 'CPU before, % of a core' },
      { title: 'during' },
      { title: 'RSS before, MiB' },
      { title: 'max' },
      { title: 'after' },
      { title: 'datagrams' },
      { title: 'lost' },
      { title: 'dropped' },
      { title: 'first byte of viewers p99, ms', decimals: 1 },
      { title: 'missed segments' },
      { title: 'slowest playlist, ms' },
      { title: 'failed requests' },
      { title: 'newcomers' },
      { title: 'connected' },
    ],
    results.map((result) => [
      result.name,
      result.seconds,
      result.cpuBefore * 100,
      result.cpuDuring * 100,
      result.rssBytes.before / MIB,
      result.rssBytes.max / MIB,
      result.rssBytes.after / MIB,
      result.sent,
      result.lost,
      result.dropped,
      firstByteP99Ms(result),
      result.viewers.missed,
      result.maxPlaylistMs,
      result.failures.length,
      result.newcomers,
      result.newcomersConnected,
    ]),
  )
}

function firstByteP99Ms({ viewers }: AttackResult): number {
  const times = [...viewers.playlistMs, ...viewers.segmentMs].toSorted((a, b) => a - b)
  return times[Math.floor(times.length * 0.99)] ?? NaN
}

/** @returns one sentence for each violation */
export function harmOf(result: AttackResult): string[] {
  const { failures, maxPlaylistMs, rssBytes, viewers, maxRssBytes = Infinity } = result
  const growthBytes = rssBytes.after - rssBytes.before - result.mediaBytes
  const harm = {
    [`${result.dropped} datagrams of the publisher are lost`]: result.dropped > 0,
    [`${viewers.missed} segments are missed by viewers`]: viewers.missed > 0,
    [`${viewers.failures} requests of the 20 viewers failed`]: viewers.failures > 0,
    [`1 % of first bytes come after ${Math.round(firstByteP99Ms(result))} ms`]:
      firstByteP99Ms(result) > MAX_FIRST_BYTE_P99_MS,
    [`memory was ${Math.round(rssBytes.max / MIB)} MiB, its bound is ${Math.round(maxRssBytes / MIB)} MiB`]:
      rssBytes.max > maxRssBytes * (1 + MAX_RSS_EXCESS),
    [`${result.gaps} gaps or discontinuities in the playlist`]: result.gaps > 0,
    [`${failures.length} requests of the viewer failed, first: ${failures[0]}`]:
      failures.length > 0,
    [`the viewer waited ${Math.round(maxPlaylistMs)} ms for a playlist`]:
      maxPlaylistMs > MAX_PLAYLIST_MS,
    [`${result.newcomers - result.newcomersConnected} newcomers got no connection`]:
      result.newcomersConnected < result.newcomers,
    [`memory grew by ${Math.round(growthBytes / MIB)} MiB beside media`]:
      growthBytes > MAX_GROWTH_BYTES,
  }
  return Object.entries(harm).flatMap(([sentence, happened]) => (happened ? [sentence] : []))
}
