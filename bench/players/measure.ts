/**
 * Players as published, with no option but the URL, side by side on one live stream: errors, standstills of the picture,
 * media that they skip.
 *
 * @module
 */
import type { ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BrowserContext, Page } from 'playwright-core'
import { openBrowser } from '../../test/peers/support/browser.ts'
import { openPlayer } from '../../test/peers/support/hls-player.ts'
import { openShaka } from '../../test/peers/support/shaka-player.ts'
import { openVideoJs } from '../../test/peers/support/video-js-player.ts'
import { until } from '../../test/support/until.ts'
import { startProgram, stopProgram } from '../support/programs.ts'
import { startService } from '../support/service.ts'
import { WATCH, type Watched } from './watch.ts'

const STREAM_ID = 'bench'

interface Player {
  readonly name: string
  readonly open: (context: BrowserContext, url: string) => Promise<Page>
  /** Expression for the errors that the player tells by events of its own. */
  readonly errors: string
}

const PLAYERS: readonly Player[] = [
  { name: 'hls.js', open: openPlayer, errors: 'fatalErrors' },
  { name: 'shaka', open: openShaka, errors: 'errors' },
  { name: 'video.js', open: openVideoJs, errors: 'errors' },
  { name: 'video element', open: openElement, errors: '[]' },
]

export interface PlayersSetup {
  readonly name: string
  /** Frames a second, as ffmpeg takes them. */
  readonly rate: string
  readonly playlist: 'master.m3u8' | 'playlist.m3u8' | 'ts.m3u8'
  /** Whether the encoder is killed in the middle, and another one with another frame size connects. */
  readonly isKilled?: boolean
  /** Whether the encoder sends three sizes and two languages. */
  readonly hasRenditions?: boolean
}

const RATES = ['30', '30000/1001', '25', '50']
const PLAYLISTS = ['master.m3u8', 'playlist.m3u8'] as const

export const SETUPS: readonly PlayersSetup[] = [
  ...RATES.flatMap((rate) =>
    PLAYLISTS.map((playlist) => ({ name: nameOf(rate, playlist), rate, playlist })),
  ),
  ...PLAYLISTS.map((playlist) => ({
    name: nameOf('killed', playlist),
    rate: '30',
    playlist,
    isKilled: true,
  })),
  ...(['master.m3u8', 'ts.m3u8'] as const).map((playlist) => ({
    name: nameOf('renditions', playlist),
    rate: '30',
    playlist,
    hasRenditions: true,
  })),
]

const MEDIA_AFTER_DISCONTINUITY = /#EXT-X-DISCONTINUITY\n[^]*#EXT(?:INF|-X-PART):/

export interface PlayersResult {
  readonly setup: string
  readonly player: string
  readonly watched: Watched
  /** All errors. */
  readonly errors: readonly string[]
  /** Time without media between the two encoders; 0 for one. */
  readonly awaySec: number
}

export async function measurePlayers(
  setup: PlayersSetup,
  seconds: number,
): Promise<readonly PlayersResult[]> {
  const closing: (() => Promise<unknown>)[] = []
  try {
    const service = await startService()
    closing.push(() => service.stop())
    const srtUrl = await service.start(STREAM_ID)
    const url = `${service.httpUrl}/video/${STREAM_ID}/${setup.playlist}`
    let encoder = startEncoder(srtUrl, setup, '640x360')
    closing.push(() => stopProgram(encoder, 'SIGKILL'))
    await until('the playlist', async () => (await fetch(url)).ok, { everyMs: 200 })

    const browser = await openBrowser({ teardown: (close) => closing.push(close) })
    const screens = await Promise.all(
      PLAYERS.map(async (player) => {
        const context = await browser.newContext()
        await context.addInitScript(WATCH)
        return { player, page: await player.open(context, url) }
      }),
    )
    let awaySec = 0
    if (setup.isKilled === true) {
      await sleep((seconds * 1000) / 2)
      const goneMs = performance.now()
      await stopProgram(encoder, 'SIGKILL')
      encoder = startEncoder(srtUrl, setup, '320x180')
      const videoUrl = url.replace('master', 'cmaf-video-1')
      const hasMedia = async () => MEDIA_AFTER_DISCONTINUITY.test(await fetchText(videoUrl))
      await until('media', hasMedia, { everyMs: 20 })
      awaySec = (performance.now() - goneMs) / 1000
      await sleep((seconds * 1000) / 2)
    } else await sleep(seconds * 1000)
    return await Promise.all(
      screens.map(async ({ player, page }) => {
        const [watched, errors] = await page.evaluate<[Watched, string[]]>(
          `[watched(), ${player.errors}]`,
        )
        const all = [...new Set([...watched.errors, ...errors])]
        return { setup: setup.name, player: player.name, watched, errors: all, awaySec }
      }),
    )
  } finally {
    for (const close of closing.toReversed()) await close()
  }
}

function nameOf(what: string, playlist: string): string {
  return `${what}-${playlist.replace('.m3u8', '')}`.replace('30000/1001', '29.97')
}

async function fetchText(url: string): Promise<string> {
  return (await fetch(url)).text()
}

async function openElement(context: BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage()
  const body = `<!doctype html><video muted playsinline autoplay src="${url}"></video>`
  await page.route('**/element', (route) => route.fulfill({ contentType: 'text/html', body }))
  await page.goto(new URL('/element', url).href)
  return page
}

/** ffmpeg with its default audio packets, and a key frame every 2 s. */
function startEncoder(
  srtUrl: string,
  { rate, hasRenditions = false }: PlayersSetup,
  size: string,
): ChildProcess {
  const sources = [
    ...['-re', '-f', 'lavfi', '-i', `testsrc2=size=${size}:rate=${rate}`],
    ...['-re', '-f', 'lavfi', '-i', 'sine=sample_rate=48000'],
    ...['-re', '-f', 'lavfi', '-i', 'sine=frequency=880:sample_rate=48000'],
  ]
  const sizes = [
    ...['-filter_complex', '[0:v]split=3[a][b][c];[b]scale=480:270[b];[c]scale=320:180[c]'],
    ...['-map', '[a]', '-map', '[b]', '-map', '[c]', '-map', '1:a', '-map', '2:a'],
    ...['-b:v:0', '1500k', '-b:v:1', '700k', '-b:v:2', '300k'],
    ...['-metadata:s:a:0', 'language=eng', '-metadata:s:a:1', 'language=fra'],
  ]
  const codecs = [
    ...['-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-pix_fmt', 'yuv420p'],
    ...['-force_key_frames', 'expr:gte(t,n_forced*2)', '-sc_threshold', '0', '-c:a', 'aac'],
  ]
  const maps = hasRenditions ? sizes : ['-map', '0:v', '-map', '1:a']
  return startProgram('ffmpeg', [
    ...['-v', 'error', ...sources, ...maps, ...codecs],
    ...['-f', 'mpegts', `${srtUrl}&linger=5`],
  ])
}
