/**
 * Rewind in stock players, over a lost encoder: back to segments that only a store has, which somebody else wrote, and to the
 * live edge again. Through the service, and by its redirects.
 */
import type { Response } from 'playwright-core'
import t, { type Test } from 'tap'
import { publishDemo } from '../../support/demo-encoder.ts'
import { archiveOptionsOf, startS3Server } from '../../support/s3-server.ts'
import { startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { openBrowser, playback } from '../support/browser.ts'
import { playFrom } from '../support/play-from.ts'
import { STOCK_PLAYERS } from '../support/stock-players.ts'
import { requireTool } from '../support/tools.ts'

/** Video.js 8 lands 20 s off in a timeline that it has not played, and plays on there. */
const PLAYERS = STOCK_PLAYERS.filter(({ name }) => name !== 'Video.js')

const BACK_SEC = 30
/** Media before the encoder is lost, and behind it. */
const MEDIA_SEC = { before: 10, behind: BACK_SEC }

/** Starts a stream with a lost encoder, whose beginning is in the store alone. */
async function startStream(t: Test, isPublic: boolean) {
  const store = await startS3Server(t)
  const { server } = await startService(t, {
    archive: { ...archiveOptionsOf(store), ...(!isPublic && { publicUrl: '' }) },
    hls: { segmentSec: 1, playlistSegments: 4, dvrSec: 3600, formats: 'cmaf' },
  })
  const { srtUrl, masterUrl } = await server.startStream({ streamId: 'studio' })
  const stream = server.findStream('studio')!
  let mediaSec = 0
  stream.on('segment', ({ rendition, durationSec }) => {
    if (rendition === 'cmaf-video-1') mediaSec += durationSec
  })
  const encoder = publishDemo(t, srtUrl)
  const patience = { timeoutMs: 120_000 }
  await until('media', () => mediaSec > MEDIA_SEC.before, patience)
  encoder.stop()
  await until('interrupted', () => stream.status === 'INTERRUPTED')
  mediaSec = 0
  publishDemo(t, srtUrl)
  await until('media', () => mediaSec > MEDIA_SEC.behind, patience)
  return { url: new URL('dvr.m3u8', masterUrl).href, stream }
}

t.test('hls.js and Shaka go back, and to the live edge again', async (t) => {
  if (!requireTool(t, 'chromium')) return
  // The store is on loopback, and another origin than the page.
  const options = { permissions: ['local-network-access'] }
  const context = await (await openBrowser(t)).newContext(options)
  const [served, redirected] = await Promise.all([startStream(t, false), startStream(t, true)])
  for (const { url, stream } of [served, redirected]) {
    const paths: string[] = []
    const refused: string[] = []
    const older = new Set<number>()
    const note = (response: Response) => {
      const { pathname, search } = new URL(response.url())
      const name = pathname.split('/').at(-1)!
      paths.push(name + search)
      if (/\.(m4s|m3u8)$/.test(name) && response.status() >= 400) refused.push(pathname)
      const isInMemory = stream.files.get(name) !== undefined
      if (name.endsWith('.m4s') && !isInMemory) older.add(response.status())
    }
    context.on('response', note)
    for (const { name, open, errorsOf } of PLAYERS) {
      const page = await open(context, url)
      const live = await until(`${name} is at the live edge`, async () => {
        const { currentTimeSec, framesDecoded } = await playback(page)
        return framesDecoded > 25 && currentTimeSec > BACK_SEC && currentTimeSec
      })
      const liveMs = performance.now()
      await playFrom(page, live - BACK_SEC, `${name} plays ${BACK_SEC} s ago`)
      const sinceSec = (performance.now() - liveMs) / 1000
      await playFrom(page, live + sinceSec, `${name} plays live again`)
      t.strictSame(await errorsOf(page), [], name)
      await page.close()
    }
    context.off('response', note)
    const isDelta = (path: string) => path.includes('_HLS_skip=')
    t.ok(paths.some(isDelta), 'delta updates')
    t.strictSame(refused, [])
    const statuses = stream === redirected.stream ? [200, 302] : [200]
    t.strictSame(
      [...older].toSorted((a, b) => a - b),
      statuses,
      'from the store',
    )
  }
})
