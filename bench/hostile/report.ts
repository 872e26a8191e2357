/**
 * Results of the attacks as a table, and the violations in them.
 *
 * @module
 */
import { formatTable } from '../support/table.ts'
import type { AttackResult } from './measure.ts'

const MIB = 1024 * 1024
const MAX_PLAYLIST_MS = 250
const MAX_GROWTH_BYTES = 100 * MIB

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
      result.maxPlaylistMs,
      result.failures.length,
      result.newcomers,
      result.newcomersConnected,
    ]),
  )
}

/** @returns one sentence for each violation */
export function harmOf(result: AttackResult): string[] {
  const { failures, maxPlaylistMs, rssBytes } = result
  const harm = {
    [`${result.lost} datagrams of the publisher are lost`]: result.lost > 0,
    [`${result.gaps} gaps or discontinuities in the playlist`]: result.gaps > 0,
    [`${failures.length} requests of the viewer failed, first: ${failures[0]}`]:
      failures.length > 0,
    [`the viewer waited ${Math.round(maxPlaylistMs)} ms for a playlist`]:
      maxPlaylistMs > MAX_PLAYLIST_MS,
    [`${result.newcomers - result.newcomersConnected} newcomers got no connection`]:
      result.newcomersConnected < result.newcomers,
    [`memory grew by ${Math.round((rssBytes.after - rssBytes.before) / MIB)} MiB`]:
      rssBytes.after - rssBytes.before > MAX_GROWTH_BYTES,
  }
  return Object.entries(harm).flatMap(([sentence, happened]) => (happened ? [sentence] : []))
}
