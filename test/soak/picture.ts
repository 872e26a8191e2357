/**
 * The picture of a player: which frames it shows, and when it stands still.
 *
 * @module
 */
import type { Page } from 'playwright-core'

/** Notes each frame that is shown: their number, and the longest time between two of them. */
export const WATCH_PICTURE = `addEventListener('DOMContentLoaded', () => {
  const video = document.querySelector('video')
  window.picture = { frames: 0, stillMs: 0, atMs: undefined }
  const note = (nowMs) => {
    picture.frames++
    picture.stillMs = Math.max(picture.stillMs, nowMs - (picture.atMs ?? nowMs))
    picture.atMs = nowMs
    video.requestVideoFrameCallback(note)
  }
  video.requestVideoFrameCallback(note)
})`

export interface Picture {
  readonly frames: number
  readonly stillMs: number
}

/** @param from  'anew' forgets how long the picture stood still so far */
export async function readPicture(page: Page, from?: 'anew'): Promise<Picture> {
  const picture = await page.evaluate<Picture>('({ ...picture })')
  if (from === 'anew') await page.evaluate('picture.stillMs = 0')
  return picture
}
