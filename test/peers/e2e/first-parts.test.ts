/**
 * Players that wait for `master.m3u8` play before the third segment.
 */
import type { BrowserContext, Page } from 'playwright-core'
import t from 'tap'
import { openBrowser, playback } from '../support/browser.ts'
import { FRAMES_PER_SEC, startEncoder } from '../support/live-encoder.ts'
import { STOCK_PLAYERS } from '../support/stock-players.ts'
import { requireTool } from '../support/tools.ts'
import { startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'

interface Player {
  readonly name: string
  readonly open: (context: BrowserContext, masterUrl: string) => Promise<Page>
  /** Errors so far after which it stops. */
  readonly errorsOf: (page: Page) => Promise<readonly string[]>
}

const WATCH: Player = {
  name: '/watch',
  open: async (context, masterUrl) => {
    const page = await context.newPage()
    await page.goto(masterUrl.replace('/video/', '/watch/').replace('/master.m3u8', ''))
    return page
  },
  errorsOf: async (page) =>
    (await page.locator('body').getAttribute('data-notice')) === 'FAILED' ? ['FAILED'] : [],
}

const PLAYERS: readonly Player[] = [...STOCK_PLAYERS, WATCH]

/** Media up to which they play, in seconds. */
const PLAYED_SEC = 12

for (const { name, open, errorsOf } of PLAYERS)
  t.test(`${name} plays from the first parts on`, async (t) => {
    if (!requireTool(t, 'ffmpeg', 'chromium')) return
    const { server } = await startService(t)
    const { srtUrl, masterUrl, playlistUrl } = await server.startStream({ streamId: 'studio' })
    const context = await (await openBrowser(t)).newContext()
    const masters: Promise<string>[] = []
    context.on('response', (response) => {
      if (response.ok() && response.url().endsWith('/master.m3u8')) masters.push(response.text())
    })
    const page = await open(context, masterUrl)
    startEncoder(t, srtUrl)
    await until('a frame', async () => {
      return (await playback(page)).framesDecoded > 0 || (await errorsOf(page)).length > 0
    })
    t.match(await masters[0], 'CLOSED-CAPTIONS=NONE', 'as it is before the third segment')
    const isPlayed = async () => {
      const { currentTimeSec, framesDecoded } = await playback(page)
      const isAtEnd = currentTimeSec > PLAYED_SEC && framesDecoded > 4 * FRAMES_PER_SEC
      return isAtEnd || (await errorsOf(page)).length > 0
    }
    await until('what follows', isPlayed).catch(async (error: unknown) => {
      t.fail(`${String(error)}: ${JSON.stringify(await playback(page))}`)
    })
    t.strictSame(await errorsOf(page), [])
    t.ok((await fetch(playlistUrl)).ok)
  })
