/**
 * Headless Chromium on a player page.
 *
 * @module
 */
import { chromium, type Browser, type Frame, type Page } from 'playwright-core'

interface Test {
  teardown(close: () => Promise<unknown>): unknown
}

const FLAGS = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
  '--autoplay-policy=no-user-gesture-required',
]

/** Time limit of each step on a page, which a busy machine does not reach: that of `until`. */
const STEP_MS = 120_000

/** Starts headless Chromium, which closes with the test. */
export async function openBrowser(t: Test): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    headless: true,
    args: FLAGS,
  })
  browser.on('context', (context) => context.setDefaultTimeout(STEP_MS))
  t.teardown(() => browser.close())
  return browser
}

/** Less to draw than by default, which takes a fifth of the CPU. */
const VIEWPORT = { width: 640, height: 360 }

/** Opens a page in a new browser; `errors` collects the errors of the page. */
export async function openPage(t: Test, url: string): Promise<{ page: Page; errors: string[] }> {
  const browser = await openBrowser(t)
  const page = await browser.newPage({ viewport: VIEWPORT })
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(error.message))
  await page.goto(url)
  return { page, errors }
}

export interface Playback {
  readonly currentTimeSec: number
  readonly width: number
  readonly height: number
  readonly paused: boolean
  readonly ended: boolean
  /** Bytes of decoded audio so far. */
  readonly audioDecodedBytes: number
  /** Decoded video frames so far. */
  readonly framesDecoded: number
  readonly error: string | null
}

export async function playback(page: Page | Frame): Promise<Playback> {
  return page.evaluate(`(() => {
    const video = document.querySelector('video')
    return {
      currentTimeSec: video.currentTime,
      width: video.videoWidth,
      height: video.videoHeight,
      paused: video.paused,
      ended: video.ended,
      audioDecodedBytes: video.webkitAudioDecodedByteCount,
      framesDecoded: video.getVideoPlaybackQuality().totalVideoFrames,
      error: video.error && video.error.message,
    }
  })()`)
}
