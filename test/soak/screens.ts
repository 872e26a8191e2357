/**
 * hls.js, Shaka and Video.js as published, at one stream: which frames they show, and when they stand still.
 *
 * @module
 */
import type { Browser, Page } from 'playwright-core'
import { FRAMES_PER_SEC } from '../peers/support/live-encoder.ts'
import { STOCK_PLAYERS } from '../peers/support/stock-players.ts'
import { until } from '../support/until.ts'

/** Notes each frame that is shown: their number, and the longest time between two of them. */
const NOTE_FRAMES = `addEventListener('DOMContentLoaded', () => {
  const video = document.querySelector('video')
  window.onScreen = { frames: 0, stillMs: 0, atMs: undefined }
  const note = (nowMs) => {
    onScreen.frames++
    onScreen.stillMs = Math.max(onScreen.stillMs, nowMs - (onScreen.atMs ?? nowMs))
    onScreen.atMs = nowMs
    video.requestVideoFrameCallback(note)
  }
  video.requestVideoFrameCallback(note)
})`

interface Screen extends Pick<(typeof STOCK_PLAYERS)[number], 'name' | 'errorsOf'> {
  readonly page: Page
}

interface Shown {
  readonly frames: number
  readonly stillMs: number
}

/** Opens a page for each player, and waits until it has shown a second of the stream. */
export async function openScreens(browser: Browser, masterUrl: string): Promise<Screen[]> {
  const screens = await Promise.all(
    STOCK_PLAYERS.map(async ({ name, open, errorsOf }) => {
      const context = await browser.newContext()
      await context.addInitScript(NOTE_FRAMES)
      return { name, page: await open(context, masterUrl), errorsOf }
    }),
  )
  for (const { name, page } of screens)
    await until(`${name} plays`, async () => (await readShown(page)).frames > FRAMES_PER_SEC)
  return screens
}

/** @param from  'anew' forgets how long the video stood still so far */
export async function readShown(page: Page, from?: 'anew'): Promise<Shown> {
  const shown = await page.evaluate<Shown>('({ ...onScreen })')
  if (from === 'anew') await page.evaluate('onScreen.stillMs = 0')
  return shown
}
