/**
 * Seeks of a player page.
 *
 * @module
 */
import type { Page } from 'playwright-core'
import { until } from '../../support/until.ts'
import { playback } from './browser.ts'

/** Seeks, and waits for a second of frames. */
export async function playFrom(page: Page, toSec: number, what: string): Promise<void> {
  await page.evaluate(`document.querySelector('video').currentTime = ${toSec}`)
  const { framesDecoded: before } = await playback(page)
  await until(what, async () => {
    const { currentTimeSec, framesDecoded } = await playback(page)
    const isThere = currentTimeSec > toSec + 0.5 && currentTimeSec < toSec + 15
    return isThere && framesDecoded > before + 20
  })
}
