/**
 * Worker with the clients that an attack must not affect: a publisher, a viewer of its stream, and new encoders that
 * connect.
 *
 * @module
 */
import * as http from 'node:http'
import * as https from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseSrtUrl } from '../../src/srt/io/srt-url.ts'
import { publish } from '../../src/cli/publisher/publisher.ts'
import { connect } from '../../src/srt/index.ts'
import { segmentUris } from '../../test/support/viewer.ts'
import { clipOf } from '../support/clip.ts'
import { answer, readTask } from '../support/worker.ts'

export interface BystandersTask {
  readonly publishUrl: string
  readonly playlistUrl: string
  readonly bitsPerSecond: number
  /** SRT URLs of unpublished streams; one connects in each second of `watch`. */
  readonly newcomerUrls: readonly string[]
}

export interface BystandersAnswers {
  /** Watches for this many milliseconds. */
  watch(durationMs: number): Promise<BystandersReport>
  /** Ends publishing. @returns numbers of datagrams sent and dropped by the publisher */
  finish(): Promise<{ readonly sent: number; readonly dropped: number }>
}

export interface BystandersReport {
  /** Maximum time from a playlist request to its last byte. */
  readonly maxPlaylistMs: number
  readonly playlists: number
  /** Failed requests, those for listed segments included. */
  readonly failures: readonly string[]
  /** Number of EXT-X-GAP and EXT-X-DISCONTINUITY tags. */
  readonly gaps: number
  readonly newcomers: number
  readonly newcomersConnected: number
}

const PLAYLIST_POLL_MS = 100
const NEWCOMER_EACH_MS = 1000

const task = (await readTask()) as BystandersTask
const stop = new AbortController()
const publishing = publish({
  file: clipOf(task.bitsPerSecond),
  url: task.publishUrl,
  loop: true,
  signal: stop.signal,
})
const { Agent, get } = task.playlistUrl.startsWith('https:') ? https : http
const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false })
const newcomerUrls = [...task.newcomerUrls]

answer<BystandersAnswers>({
  watch: async (durationMs) => {
    const endMs = performance.now() + durationMs
    const [viewer, newcomers] = await Promise.all([view(endMs), callEachSecond(endMs)])
    return { ...viewer, ...newcomers }
  },
  finish: async () => {
    stop.abort()
    const { datagrams, dropped } = await publishing
    return { sent: datagrams, dropped }
  },
})

async function view(endMs: number) {
  const seen = new Set<string>()
  const failures: string[] = []
  let [maxPlaylistMs, playlists, gaps] = [0, 0, 0]
  while (performance.now() < endMs) {
    const askedMs = performance.now()
    try {
      const text = await fetchText(task.playlistUrl)
      maxPlaylistMs = Math.max(maxPlaylistMs, performance.now() - askedMs)
      playlists++
      gaps = Math.max(gaps, (text.match(/#EXT-X-(GAP|DISCONTINUITY)$/gm) ?? []).length)
      for (const uri of segmentUris(text).filter((uri) => !seen.has(uri))) {
        seen.add(uri)
        await fetchText(new URL(uri, task.playlistUrl).href)
      }
    } catch (error) {
      failures.push(String(error))
    }
    await sleep(PLAYLIST_POLL_MS)
  }
  return { maxPlaylistMs, playlists, failures, gaps }
}

function fetchText(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent, timeout: 10_000 }, (reply) => {
      const chunks: Buffer[] = []
      reply.on('data', (chunk: Buffer) => chunks.push(chunk))
      reply.on('error', reject)
      reply.on('end', () => {
        if (reply.statusCode === 200) resolve(Buffer.concat(chunks).toString('latin1'))
        else reject(new Error(`${reply.statusCode} ${new URL(url).pathname}`))
      })
    })
    request.on('timeout', () => request.destroy(new Error('no answer for 10 s')))
    request.on('error', reject)
  })
}

async function callEachSecond(endMs: number) {
  let [newcomers, newcomersConnected] = [0, 0]
  while (performance.now() < endMs - NEWCOMER_EACH_MS) {
    const url = newcomerUrls.pop()
    if (url === undefined) break
    newcomers++
    const caller = await connect(parseSrtUrl(url)).catch(() => undefined)
    if (caller !== undefined) newcomersConnected++
    await caller?.close()
    await sleep(NEWCOMER_EACH_MS)
  }
  return { newcomers, newcomersConnected }
}
