/**
 * Scrapes of a service with many live streams: their time, and the delay of the event loop that they cause.
 *
 * @module
 */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { systemClock } from '../../src/timing/clock.ts'
import { createServer } from '../../src/create-server.ts'
import type { Server } from '../../src/service/server.ts'
import { PUBLISHER_REPORT } from '../../test/stream/publisher-report.ts'

const run = promisify(execFile)

const PAYLOAD_BYTES = 1316

/** First 3 s of the clip, enough for a playlist. The path is relative to the working directory of `npm run`. */
const CLIP = readFileSync('fixtures/demo.mpegts').subarray(0, 231 * PAYLOAD_BYTES)

const TOKEN = randomBytes(32).toString('hex')

export interface MetricsLoad {
  readonly streams: number
  readonly scrapes: number
}

export interface MetricsResult {
  readonly series: number
  readonly bytes: number
  /** Times as curl measures them. */
  readonly scrapeMs: readonly number[]
  readonly cpuMs: number
  /** Lateness of a timer of 1 ms without scrapes and during them. */
  readonly idleDelaysMs: readonly number[]
  readonly delaysMs: readonly number[]
}

export async function measureMetrics({ streams, scrapes }: MetricsLoad): Promise<MetricsResult> {
  const server = await createServer({
    hmacSecret: randomBytes(32).toString('hex'),
    jwtSecret: randomBytes(32).toString('hex'),
    logLevel: 'silent',
    http: { host: '127.0.0.1', port: 0 },
    srt: { host: '127.0.0.1', port: 0 },
    hls: { segmentSec: 0.5 },
    cache: { maxMib: 2048 },
    maxStreams: streams,
    metrics: { token: TOKEN, perStream: 'always' },
  })
  for (let i = 0; i < streams; i++) await publish(server, `stream-${i}`)
  const url = `http://127.0.0.1:${server.httpPort}/metrics`
  // The first ones compile the code.
  await scrape(url, 10)
  const idleDelaysMs = await loopDelays(sleep(scrapes * 20))
  const cpu = process.cpuUsage()
  // Starting a process delays the loop, so that the measurement begins after it.
  const replies = scrape(url, scrapes)
  const delaysMs = await loopDelays(replies)
  const { user, system } = process.cpuUsage(cpu)
  const scrapeMs = (await replies).map(([sec]) => sec * 1000)
  const [, bytes] = (await replies)[0]!
  const reply = await fetch(url, { headers: { authorization: `Bearer ${TOKEN}` } })
  const text = await reply.text()
  const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length
  await server.close()
  const cpuMs = (user + system) / 1000 / scrapes
  return { series, bytes, scrapeMs, cpuMs, idleDelaysMs, delaysMs }
}

/** Feeds a new stream with the clip; its encoder stays connected. */
async function publish(server: Server, streamId: string): Promise<void> {
  await server.startStream({ streamId })
  const publication = server.findStream(streamId)!.publish({
    get lastPacketUs() {
      return systemClock.nowUs()
    },
    report: () => PUBLISHER_REPORT,
    close: () => undefined,
  })
  for (let at = 0; at < CLIP.length; at += PAYLOAD_BYTES) {
    publication.push(CLIP.subarray(at, at + PAYLOAD_BYTES))
  }
}

/** @returns seconds and bytes of each scrape, one after the other */
async function scrape(url: string, times: number): Promise<[sec: number, bytes: number][]> {
  const { stdout } = await run('curl', [
    ...['-sS', '-o', '/dev/null', '-w', '%{time_total} %{size_download}\\n'],
    ...['-H', `Authorization: Bearer ${TOKEN}`, `${url}?[1-${times}]`],
  ])
  const lines = stdout.trimEnd().split('\n')
  return lines.map((line) => line.split(' ').map(Number) as [number, number])
}

/** Lateness of a timer of 1 ms until `end`, in milliseconds. */
async function loopDelays(end: Promise<unknown>): Promise<number[]> {
  const delays: number[] = []
  let dueMs = performance.now() + 1
  const timer = setInterval(() => {
    const nowMs = performance.now()
    delays.push(Math.max(0, nowMs - dueMs))
    dueMs = nowMs + 1
  }, 1)
  await end
  clearInterval(timer)
  return delays
}
