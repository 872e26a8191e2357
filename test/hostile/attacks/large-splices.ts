/**
 * One key holder whose splice information sections, of up to 4 KiB each, become date ranges in the playlists of 16
 * renditions, and readers that reload these playlists.
 *
 * @module
 */
import { setMaxListeners } from 'node:events'
import { get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Target } from '../target.ts'
import { publishCostly } from './tables.ts'

export interface LargeSplices {
  /** One of the costly streams with 16 renditions. */
  readonly stream: string
  readonly megabitsPerSecond: number
  readonly readers: number
  /** Interval of reloads of each reader. */
  readonly reloadMs: number
  /** Returns CPU seconds of the service so far. */
  cpuSec?(): number
}

export interface LargeSplicesFigures {
  readonly payloads: number
  readonly playlists: number
  /** Size of the largest playlist, not compressed. */
  readonly maxPlaylistBytes: number
  /** Time from a request to the last byte. */
  readonly playlistP99Ms: number
  /** CPU of the service in cores while the stream was live. */
  readonly cores: number
}

const RENDITIONS = ['playlist.m3u8', ...Array.from({ length: 15 }, (_, i) => `audio-${i + 2}.m3u8`)]
/** Time until the stream is live and the code compiled. */
const WARM_UP_MS = 8000

/** Publishes and reads until the signal. */
export async function publishLargeSplices(
  target: Target,
  signal: AbortSignal,
  { stream, megabitsPerSecond, readers, reloadMs, cpuSec = () => NaN }: LargeSplices,
): Promise<LargeSplicesFigures> {
  setMaxListeners(0, signal)
  const streamId = `splices-${performance.now().toFixed(0)}`
  const publishing = publishCostly(target, signal, { stream, megabitsPerSecond, streamId })
  const folder = `http://${target.host}:${target.httpPort}/video/${streamId}/`
  const sizes: number[] = []
  const times: number[] = []
  await pause(WARM_UP_MS, signal)
  const start = { ms: performance.now(), cpuSec: cpuSec() }
  const read = async (index: number): Promise<void> => {
    const url = folder + RENDITIONS[index % RENDITIONS.length]!
    // One reader in 16 has the size of the text.
    const coding = index < readers / 16 ? 'identity' : ['gzip', 'gzip, br'][index % 2]!
    await pause((reloadMs * index) / readers, signal)
    while (!signal.aborted) {
      const askedMs = performance.now()
      const bytes = await load(url, coding).catch(() => undefined)
      if (bytes !== undefined) times.push(performance.now() - askedMs)
      if (bytes !== undefined && coding === 'identity') sizes.push(bytes)
      await pause(reloadMs, signal)
    }
  }
  await Promise.all(Array.from({ length: readers }, (_, index) => read(index)))
  const cores = (cpuSec() - start.cpuSec) / ((performance.now() - start.ms) / 1000)
  const { payloads } = await publishing
  return {
    payloads,
    playlists: times.length,
    maxPlaylistBytes: Math.max(0, ...sizes),
    playlistP99Ms: times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? NaN,
    cores,
  }
}

/** @returns size of the body; undefined without the file */
function load(url: string, coding: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get(url, { headers: { 'accept-encoding': coding }, timeout: 10_000 }, (reply) => {
      let bytes = 0
      reply.on('data', (chunk: Buffer) => (bytes += chunk.length))
      reply.on('end', () => resolve(reply.statusCode === 200 ? bytes : undefined))
      reply.on('error', reject)
    }).on('error', reject)
  })
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined)
}
