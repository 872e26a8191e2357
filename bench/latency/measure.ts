/**
 * Glass to glass: time from the capture of a frame to its display in Chromium, on the player page and in players as
 * published, with no option but the URL.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { BrowserContext, Page } from 'playwright-core'
import { openBrowser } from '../../test/peers/support/browser.ts'
import { openPlayer } from '../../test/peers/support/hls-player.ts'
import { openShaka } from '../../test/peers/support/shaka-player.ts'
import { openVideoJs } from '../../test/peers/support/video-js-player.ts'
import { until } from '../../test/support/until.ts'
import { quantile } from '../support/quantile.ts'
import { startService } from '../support/service.ts'
import { HEIGHT, READER, WIDTH } from './clock-picture.ts'
import { startEncoder } from './encoder.ts'

const STREAM_ID = 'bench'
const SRT_LATENCY_MS = 120
/** Time from the first frame on the screen until the measurement. */
const SETTLE_MS = 10_000

export interface LatencySetup {
  readonly name: string
  /** `HLS_PART_MS` */
  readonly partMs: number
  /** Distance of the player page from the newest part; by default PART-HOLD-BACK. */
  readonly playerSec?: number
  /** Opens another player than the player page. */
  readonly open?: (context: BrowserContext, playlistUrl: string) => Promise<Page>
  /** Playlist of that player; default: `master.m3u8`. */
  readonly playlist?: string
}

export const SETUPS: readonly LatencySetup[] = [
  { name: 'part-200', partMs: 200 },
  { name: 'part-200-near', partMs: 200, playerSec: 0.4 },
  { name: 'part-333', partMs: 333 },
  { name: 'part-333-near', partMs: 333, playerSec: 0.7 },
  { name: 'part-500', partMs: 500 },
  { name: 'hls.js', partMs: 200, open: openPlayer },
  { name: 'shaka', partMs: 200, open: openShaka },
  { name: 'video.js', partMs: 200, open: openVideoJs },
  { name: 'hls.js-ts', partMs: 200, open: openPlayer, playlist: 'playlist.m3u8' },
]

export interface LatencyResult {
  readonly name: string
  readonly partTargetSec: number
  readonly partHoldBackSec: number
  readonly medianMs: number
  readonly p95Ms: number
  readonly maxMs: number
  readonly stalls: number
  readonly shown: number
  /** Captured meanwhile, but not shown. */
  readonly missed: number
  readonly unreadable: number
}

export async function measureLatency(setup: LatencySetup, seconds: number): Promise<LatencyResult> {
  const { name, partMs, playerSec, open, playlist = 'master.m3u8' } = setup
  const closing: (() => Promise<unknown>)[] = []
  try {
    const service = await startService({
      env: {
        SRT_LATENCY_MS: String(SRT_LATENCY_MS),
        HLS_PART_MS: String(partMs),
      },
    })
    closing.push(() => service.stop())
    const srtUrl = await service.start(STREAM_ID)
    const encoder = await startEncoder(`${srtUrl}&latency=${SRT_LATENCY_MS * 1000}&linger=5`)
    closing.push(() => encoder.stop())
    const streamUrl = `${service.httpUrl}/video/${STREAM_ID}`
    const videoPlaylist = await startOf(`${streamUrl}/cmaf-video-1.m3u8`)

    const browser = await openBrowser({ teardown: (close) => closing.push(close) })
    const context = await browser.newContext()
    const query = playerSec === undefined ? '' : `?latency=${playerSec}`
    const page = open ? await open(context, `${streamUrl}/${playlist}`) : await context.newPage()
    if (!open) await page.goto(`${service.httpUrl}/watch/${STREAM_ID}${query}`)
    // Without a graphics card, scaling the video up costs more than decoding it.
    await page.setViewportSize({ width: WIDTH, height: HEIGHT })
    await page.evaluate(READER)
    const isPlaying = 'document.querySelector("video").currentTime > 0.5'
    await until('the video plays', () => page.evaluate<boolean>(isPlaying))
    await sleep(SETTLE_MS)
    await page.evaluate('window.measured = [], window.stalls = 0')
    const before = encoder.capturedMs.length
    await sleep(seconds * 1000)
    const captured = encoder.capturedMs.length - before
    const [delaysMs, stalls] = await page.evaluate<[number[], number]>('[measured, stalls]')
    const sorted = delaysMs.filter((delay) => !Number.isNaN(delay)).toSorted((a, b) => a - b)
    return {
      name,
      partTargetSec: attribute(videoPlaylist, 'PART-TARGET'),
      partHoldBackSec: attribute(videoPlaylist, 'PART-HOLD-BACK'),
      ...{ medianMs: quantile(sorted, 0.5), p95Ms: quantile(sorted, 0.95) },
      ...{ maxMs: quantile(sorted, 1), stalls, shown: delaysMs.length },
      missed: Math.max(0, captured - delaysMs.length),
      unreadable: delaysMs.length - sorted.length,
    }
  } finally {
    for (const close of closing.toReversed()) await close()
  }
}

/** @returns the first playlist with as many segments as players want */
async function startOf(url: string): Promise<string> {
  return until(
    'a playlist',
    async () => {
      const reply = await fetch(url)
      const text = await reply.text()
      return reply.ok && (text.match(/#EXTINF/g)?.length ?? 0) >= 3 ? text : undefined
    },
    { timeoutMs: 60_000, everyMs: 200 },
  )
}

function attribute(playlist: string, name: string): number {
  return Number(new RegExp(`[:,]${name}=([\\d.]+)`).exec(playlist)?.[1] ?? NaN)
}
