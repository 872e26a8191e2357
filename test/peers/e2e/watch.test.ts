/**
 * The player page on a live stream: figures, choices, and the way back to live.
 */
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { openPage, playback, watchStalls } from '../support/browser.ts'
import { start } from '../../support/process.ts'
import { startService, type TestService } from '../../support/service.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'

const SOURCE = [
  ...['-f', 'lavfi', '-re', '-i', 'testsrc2=size=320x180:rate=30'],
  ...['-f', 'lavfi', '-re', '-i', 'sine=frequency=440:sample_rate=48000'],
  ...['-f', 'lavfi', '-re', '-i', 'sine=frequency=880:sample_rate=48000'],
]
const OUTPUT = [
  ...['-filter_complex', '[0:v]split[a][b];[b]scale=160:90[c]'],
  ...['-map', '[a]', '-map', '[c]', '-map', '1:a', '-map', '2:a'],
  ...['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '30'],
  ...['-sc_threshold', '0', '-b:v:0', '600k', '-b:v:1', '200k', '-c:a', 'aac', '-b:a', '64k'],
  ...['-metadata:s:a:0', 'language=eng', '-metadata:s:a:1', 'language=fra', '-f', 'mpegts'],
]
/** Bounds of the latency of a viewer at the live position, and of the stalls after going there, on a busy machine. */
const MODES = [
  { mode: 'low-latency', lowLatency: true, maxLatencySec: 3, maxStalls: 1 },
  { mode: 'classic', lowLatency: false, maxLatencySec: 6, maxStalls: 0 },
]

for (const { mode, lowLatency, maxLatencySec, maxStalls } of MODES) {
  const title = `the ${mode} player page shows figures, switches quality and language, and returns to live`
  t.test(title, async (t) => {
    if (!requireTool(t, 'chromium', 'ffmpeg')) return
    const service = await startService(t, {
      hls: { segmentSec: 1, playlistSegments: 20, lowLatency },
    })
    const { page, errors } = await watchSource(t, service)
    const isLive = async () => (await shown(page, '#latency'))! < maxLatencySec
    await page.focus('summary')
    await page.keyboard.press('Enter')
    await until('the latency is shown', () => shown(page, '#latency'))
    await until('live', isLive)
    await until('media ahead', async () => (await shown(page, '#buffer'))! > 0)
    t.match(await page.textContent('#bitrate'), /^0\.\d Mbit\/s$/)
    t.match(await page.textContent('#dropped'), /^\d+ of \d+$/)
    t.match(await labels(page), ['Quality', 'Language'])

    await page.getByLabel('Quality').selectOption({ index: 2 })
    await until('90 lines', async () => (await playback(page)).height === 90)
    await page.getByLabel('Quality').selectOption({ index: 1 })
    await until('180 lines', async () => (await playback(page)).height === 180)
    const fetched = page.waitForRequest(/cmaf-audio-2\.m3u8/)
    await page.getByLabel('Language').selectOption('French')
    await fetched
    t.equal(await page.getByLabel('Language').inputValue(), '1')

    await page.evaluate('document.querySelector("video").pause()')
    await page.getByRole('button', { name: 'Go live' }).waitFor()
    await page.waitForTimeout(5000)
    await page.evaluate('document.querySelector("video").play()')
    await until('the latency from before the pause', isLive)

    // Playback reports a position between the seek and its event, as a busy browser may.
    await page.evaluate(`{
      const video = document.querySelector('video')
      video.currentTime -= 5
      video.dispatchEvent(new Event('timeupdate'))
    }`)
    await page.getByRole('button', { name: 'Go live' }).waitFor()
    await plays(page, 2)
    t.notOk(await isLive(), 'stays where the viewer went')
    await page.getByRole('button', { name: 'Go live' }).click()
    await until('live again', isLive)
    await page.getByRole('button', { name: 'Live', exact: true }).waitFor()

    await watchStalls(page)
    await plays(page, 5)
    const { stalls, error } = await playback(page)
    t.equal(error, null)
    t.ok(stalls <= maxStalls, `${stalls} stalls`)
    t.strictSame(errors, [])
  })
}

t.test('each page that plays is one viewer', async (t) => {
  if (!requireTool(t, 'chromium', 'ffmpeg')) return
  const service = await startService(t, { hls: { segmentSec: 1, playlistSegments: 20 } })
  const viewers = () => service.server.status('studio').viewers
  const { page, errors } = await watchSource(t, service)
  const sessions = new Set<string | undefined>()
  const urls: string[] = []
  page.on('request', (request) => {
    const url = request.url()
    if (!url.includes('/video/')) return
    sessions.add(request.headers()['cmcd-session'])
    urls.push(url)
  })
  await plays(page, 3)
  t.equal(viewers(), 1)
  t.equal(sessions.size, 1)
  t.match([...sessions][0], /^sid="[\da-f-]{8,64}"$/)
  t.ok(
    urls.some((url) => /-p\d+\.m4s$/.test(url)) && urls.some((url) => url.includes('_HLS_part=')),
  )
  t.strictSame(
    urls.filter((url) => url.includes('CMCD')),
    [],
    'URLs as without',
  )

  // The same address and User-Agent.
  const second = await page.context().browser()!.newPage()
  await second.goto(page.url())
  await plays(second, 3)
  t.equal(viewers(), 2)
  t.strictSame(errors, [])
})

/** Publishes two sizes and two languages, and opens the page once they are listed. */
async function watchSource(t: Test, { server, url }: TestService) {
  const { srtUrl } = await server.startStream({ streamId: 'studio' })
  start(t, 'ffmpeg', ['-v', 'error', ...SOURCE, ...OUTPUT, srtUrl])
  await until('a playlist to start with', () => server.status('studio').live)
  const opened = await openPage(t, `${url}/watch/studio`)
  await plays(opened.page, 1)
  return opened
}

/** Waits until so much more was played. */
async function plays(page: Page, seconds: number): Promise<void> {
  const { currentTimeSec } = await playback(page)
  await until(`${seconds} s were played`, async () => {
    return (await playback(page)).currentTimeSec >= currentTimeSec + seconds
  })
}

/** @returns number in a figure of the panel */
async function shown(page: Page, selector: string): Promise<number | undefined> {
  const number = Number.parseFloat((await page.textContent(selector)) ?? '')
  return Number.isFinite(number) ? number : undefined
}

function labels(page: Page): Promise<string[]> {
  return page.locator('label:visible').evaluateAll((all) => {
    return all.map(({ firstChild }) => firstChild!.textContent!.trim())
  })
}
