/**
 * hls.js, Shaka and Video.js as published, with no option but the URL and the patience of hls.js, on both playlists of a
 * stream; hls.js and Video.js also when an encoder of another size replaces a killed one.
 */
import t from 'tap'
import { openBrowser, playback } from '../support/browser.ts'
import { FRAMES_PER_SEC, startEncoder } from '../support/live-encoder.ts'
import { startService } from '../../support/service.ts'
import { STOCK_PLAYERS } from '../support/stock-players.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'

const PLAYLISTS = ['master.m3u8', 'playlist.m3u8']

const SMALL = { width: 320, height: 180 }
const LARGE = { width: 640, height: 360 }

t.test('stock players', async (t) => {
  if (!requireTool(t, 'ffmpeg', 'chromium')) return
  const browser = await openBrowser(t)
  for (const playlist of PLAYLISTS) {
    for (const { name, open, errorsOf } of STOCK_PLAYERS) {
      // Shaka behind a killed encoder: see shaka.test.ts.
      const isForKills = name !== 'Shaka'
      const title = isForKills ? ', and plays on when another encoder replaces a killed one' : ''
      // Each alone: where three have not enough of the processor, one of them may never begin.
      await t.test(`${name} plays ${playlist}${title}`, async (t) => {
        // A window in which a player that is late finds all of its segments.
        const { server } = await startService(t, { hls: { playlistSegments: 60 } })
        const { srtUrl, masterUrl } = await server.startStream({ streamId: 'studio' })
        const first = startEncoder(t, srtUrl, '320x180')
        await until('a playlist to start with', () => server.status('studio').live)
        const context = await browser.newContext()
        t.teardown(() => context.close())
        const pageErrors: string[] = []
        context.on('weberror', (error) => pageErrors.push(error.error().message))
        const page = await open(context, new URL(playlist, masterUrl).href)
        /** Waits until a second of this size was shown, with audio. */
        const play = async ({ width, height }: typeof SMALL) => {
          const from = await until(`${height} lines`, async () => {
            const now = await playback(page)
            return now.width === width && now.height === height && now
          })
          await until('they are played', async () => {
            const { framesDecoded, audioDecodedBytes } = await playback(page)
            return (
              framesDecoded >= from.framesDecoded + FRAMES_PER_SEC &&
              audioDecodedBytes > from.audioDecodedBytes
            )
          })
          t.strictSame(await errorsOf(page), [], 'no error')
        }

        await play(SMALL)
        if (isForKills) {
          first.kill('SIGKILL')
          await first.exit
          startEncoder(t, srtUrl, '640x360')
          await play(LARGE)
        }
        t.strictSame(pageErrors, [])
      })
    }
  }
})
