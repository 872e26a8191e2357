/**
 * The player page: figures, choices, the way back to live, and what it says while nothing plays.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Frame, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { createStreamFile } from '../../../src/hls/store/stream-file.ts'
import { MemoryService, MemoryStream, startApp } from '../../http/memory-service.ts'
import { AXE, findFaults } from '../support/accessibility.ts'
import { openBrowser, openPage, playback } from '../support/browser.ts'
import { start } from '../../support/process.ts'
import { publishDemo } from '../../support/demo-encoder.ts'
import { startS3Server } from '../../support/s3-server.ts'
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
const MODES = [
  { mode: 'low-latency', lowLatency: true },
  { mode: 'classic', lowLatency: false },
]

for (const { mode, lowLatency } of MODES) {
  const title = `the ${mode} player page shows figures, switches quality and language, and returns to live`
  t.test(title, async (t) => {
    if (!requireTool(t, 'chromium', 'ffmpeg')) return
    const service = await startService(t, {
      hls: { segmentSec: 1, playlistSegments: 20, lowLatency },
    })
    const { page, errors } = await watchSource(t, service)
    const isLive = async () => (await page.textContent('#badge')) === 'Live'
    await until('the latency is shown', () => shown(page, '#latency'))
    await until('live', isLive)
    await until('media ahead', async () => (await shown(page, '#buffer'))! > 0)
    // The first seconds of the encoder may have more than its mean.
    await until('the bitrate of the source', async () => {
      return /^0\.\d Mbit\/s$/.test((await page.textContent('#bitrate')) ?? '')
    })
    t.match(await page.textContent('#dropped'), /^\d+ of \d+$/)
    await page.getByLabel('Quality').waitFor()
    await page.getByLabel('Language').waitFor()

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
    const { durationSec } = service.server.status('studio').totals
    await until('5 s more', () => {
      return service.server.status('studio').totals.durationSec > durationSec + 5
    })
    await page.evaluate('document.querySelector("video").play()')
    await until('live after the pause', isLive)

    // Playback reports a position between the seek and its event, as a busy browser may.
    await page.evaluate(`{
      const video = document.querySelector('video')
      video.currentTime -= 5
      video.dispatchEvent(new Event('timeupdate'))
    }`)
    await page.getByRole('button', { name: 'Go live' }).waitFor()
    await plays(page, 2)
    t.notOk(await isLive(), 'stays where the viewer went')
    const behindSec = (await shown(page, '#latency'))!
    await page.getByRole('button', { name: 'Go live' }).click()
    await page.getByRole('button', { name: 'Live', exact: true }).waitFor()
    await until('less latency', async () => (await shown(page, '#latency'))! < behindSec)

    await plays(page, 5)
    await until('still live', isLive)
    t.equal((await playback(page)).error, null)
    t.strictSame(errors, [])
  })
}

t.test('a viewer goes back to what has left the live playlist, and to live again', async (t) => {
  if (!requireTool(t, 'chromium')) return
  const { endpoint, url: bucket, credentials } = await startS3Server(t)
  const { server, url } = await startService(t, {
    archive: { ...credentials, endpoint, url: bucket },
    hls: { segmentSec: 1, playlistSegments: 3, dvrSec: 600 },
  })
  const { srtUrl } = await server.startStream({ streamId: 'studio' })
  publishDemo(t, srtUrl)
  const context = await (await openBrowser(t)).newContext()
  await context.addInitScript({ path: AXE })
  const page = await context.newPage()
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(error.message))
  await page.goto(`${url}/watch/studio`)
  await page.getByRole('button', { name: 'Live', exact: true }).waitFor()
  const { startedAt, liveSince } = server.status('studio')
  await until('a minimum to go back', () => server.status('studio').totals.durationSec > 20)

  await page.getByRole('button', { name: 'Rewind' }).click()
  const slider = page.getByRole('slider', { name: 'Time of day' })
  await slider.waitFor()
  await plays(page, 1)
  t.strictSame(await findOverflows(page), [])
  t.strictSame(await findFaults(page), [])
  const range = async () => ({
    minMs: Number(await slider.getAttribute('min')),
    maxMs: Number(await slider.getAttribute('max')),
    valueMs: Number(await slider.inputValue()),
  })
  const { minMs } = await range()
  t.ok(minMs >= startedAt.getTime() && minMs <= liveSince!.getTime(), 'from the first segment')
  await until('15 s to go back', async () => (await range()).maxMs > minMs + 15_000)
  await slider.press('Home')
  await until('the first seconds', async () => {
    const { valueMs } = await range()
    return valueMs > minMs && valueMs < minMs + 8000
  })
  await plays(page, 1)

  await page.getByRole('button', { name: 'Go live' }).click()
  await slider.waitFor({ state: 'hidden' })
  await page.getByRole('button', { name: 'Live', exact: true }).waitFor()
  await plays(page, 1)
  t.strictSame(errors, [])
})

t.test('the page says on the picture why nothing plays, and goes on by itself', async (t) => {
  if (!requireTool(t, 'chromium')) return
  const { server, url } = await startService(t, { hls: { segmentSec: 1, playlistSegments: 20 } })
  const context = await (await openBrowser(t)).newContext()
  await context.addInitScript({ path: AXE })
  const page = await context.newPage()
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(error.message))
  const says = async (title: string) => {
    const heading = page.getByRole('heading', { name: title })
    // Where a busy browser waits for the last media, it shows the notice until that plays.
    await until(`${title}, without controls`, async () => {
      const isSaid = await heading.isVisible()
      return isSaid && !(await page.isVisible('#unmute')) && !(await hasControls(page))
    }).catch(async (error: unknown) => {
      const state = { ...(await playback(page)), notice: await page.innerText('#notice') }
      throw new Error(`${String(error)}: ${JSON.stringify(state)}`)
    })
    t.strictSame(await findOverflows(page), [], title)
    t.strictSame(await findFaults(page), [], title)
  }

  await page.goto(`${url}/watch/studio`)
  await says('No stream of this name')
  const { srtUrl } = await server.startStream({ streamId: 'studio' })
  await says('The stream has not started')

  let encoder = publishDemo(t, srtUrl)
  await page.waitForSelector('#notice', { state: 'hidden' })
  await plays(page, 1)
  t.ok(await hasControls(page))
  t.ok(await page.isVisible('main > #unmute'))
  t.strictSame(await findOverflows(page), [], 'playing')
  t.strictSame(await findFaults(page), [], 'playing')

  encoder.stop()
  await says('The stream is interrupted')
  t.match(
    await page.innerText('#time'),
    /^Since \d.* UTC\. If it stays away, it ends in (2:00|1:\d\d)\.$/,
  )
  await until('the last frame', () => hasPicture(page))
  encoder = publishDemo(t, srtUrl)
  await page.waitForSelector('#notice', { state: 'hidden' })
  await plays(page, 1)

  await context.setOffline(true)
  await pauseAsBrowser(page)
  await says('No connection to the server')
  t.match(await page.innerText('#time'), /^Since \d/)
  await until('the last frame', () => hasPicture(page))
  await context.setOffline(false)
  await page.waitForSelector('#notice', { state: 'hidden' })
  await plays(page, 1)

  // Before the stop, after which it calls again.
  encoder.stop()
  await server.stopStream('studio')
  await says('The stream has ended')
  t.match(await page.innerText('#time'), /^Ended \d.* UTC$/)
  await until('the last frame', () => hasPicture(page))
  await server.startStream({ streamId: 'studio' })
  await says('The stream has not started')
  t.notOk(await hasPicture(page), 'that of the stream before')
  t.strictSame(errors, [])

  await page.route('**/hls.min.js', (route) => route.abort())
  await page.addInitScript('HTMLMediaElement.prototype.canPlayType = () => ""')
  await page.reload()
  await says('This browser cannot play the stream')
})

t.test('each notice has an icon, its time with the zone, and words for viewers', async (t) => {
  if (!requireTool(t, 'chromium')) return
  const service = new MemoryService()
  const app = await startApp(t, service)
  const context = await (await openBrowser(t)).newContext({ timezoneId: 'Asia/Tokyo' })
  await context.addInitScript({ path: AXE })
  const page = await context.newPage()
  const says = async (title: string, time: RegExp) => {
    await page.getByRole('heading', { name: title }).waitFor()
    await until(`${title}: ${time}`, async () => time.test(await page.innerText('#time')))
    t.ok((await page.locator('#icon path').boundingBox())?.width, title)
    t.notMatch(await page.innerText('#notice'), /encoder|key frame|HLS|[a-z][A-Z]/, title)
    t.strictSame(await findOverflows(page), [], title)
    t.strictSame(await findFaults(page), [], title)
  }
  await page.goto(`${app.url}/watch/demo`)
  await says('No stream of this name', /^Looking since \d.* GMT\+9$/)

  const stateSinceMs = Date.parse('2026-03-01T12:00:00Z')
  const stream = Object.assign(new MemoryStream(), { stateSinceMs })
  service.streams.set('demo', stream)
  await says('The stream has not started', /^Announced 1 Mar 2026, 21:00:00 GMT\+9$/)
  Object.assign(stream, { status: 'STREAMING', stateSinceMs: Date.now() })
  await says('The stream is about to play', /^Since .* GMT\+9, \d:\d\d so far$/)
  stream.stateSinceMs = Date.now() - 60_000
  await page.getByText('This takes longer than usual').waitFor()
  await says('The stream is about to play', /, \d:\d\d so far$/)
  const stopsAtMs = Date.now() + 1_800_000
  Object.assign(stream, { status: 'INTERRUPTED', stateSinceMs, stopsAtMs })
  await says('The stream is interrupted', /GMT\+9\. If it stays away, it ends in \d\d:\d\d\.$/)
  stream.status = 'STOPPED'
  await says('The stream has ended', /^Ended 1 Mar 2026, 21:00:00 GMT\+9$/)

  const broken = { chunks: [Buffer.from('broken')], version: 'a', targetDurationSec: 1 }
  stream.files.set('master.m3u8', createStreamFile('multivariant-playlist', broken))
  Object.assign(stream, { status: 'STREAMING', live: true })
  await says('The picture does not play', /^Since \d.* GMT\+9$/)
  await page.route('**/state', (route) => route.fulfill({ status: 403 }))
  await says('No access to this stream', /^Since \d.* GMT\+9$/)
  await page.unroute('**/state')
  await context.setOffline(true)
  await says('No connection to the server', /^Since \d.* GMT\+9$/)
})

t.test('a small frame shows the longest notices whole', async (t) => {
  if (!requireTool(t, 'chromium')) return
  const service = new MemoryService()
  const app = await startApp(t, service)
  const stateSinceMs = Date.now() - 60_000
  service.streams.set(
    'demo',
    Object.assign(new MemoryStream(), { status: 'STREAMING', stateSinceMs }),
  )
  const { page } = await openPage(t, `${app.url}/watch/demo?embed`)
  await page.setViewportSize({ width: 320, height: 180 })
  const isWhole = () =>
    page.evaluate<boolean>(`(() => {
      const { height, top } = document.querySelector('main').getBoundingClientRect()
      return top === 0 && height === innerHeight && document.querySelector('#notice').scrollHeight <= height
    })()`)
  await page.getByText('This takes longer than usual').waitFor()
  t.ok(await isWhole(), await page.innerText('#notice'))
  await page.route('**/state', (route) => route.fulfill({ status: 403 }))
  await page.getByText('No access to this stream').waitFor()
  t.ok(await isWhole(), await page.innerText('#notice'))
})

t.test('a viewer who comes before the encoder sees the slate, then the program', async (t) => {
  if (!requireTool(t, 'chromium')) return
  const clip = readFileSync(new URL('../../../fixtures/demo.mpegts', import.meta.url))
  const { server, url } = await startService(t, {
    slateDir: t.testdir({ 'slate.ts': clip }),
    hls: { segmentSec: 1 },
  })
  const always = { streamId: 'studio', slate: 'slate.ts', alwaysOn: true }
  const { srtUrl } = await server.startStream(always)
  const { page, errors } = await openPage(t, `${url}/watch/studio`)
  await plays(page, 3)
  t.equal(server.status('studio').status, 'READY')
  await page.waitForSelector('#notice', { state: 'hidden' })

  const encoder = publishDemo(t, srtUrl)
  await until('the program', () => server.status('studio').onAir === 'main')
  await plays(page, 3)
  encoder.stop()
  await until('the slate', () => server.status('studio').onAir === 'slate')
  const { page: late } = await openPage(t, `${url}/watch/studio`)
  await plays(late, 1)
  t.equal(server.status('studio').status, 'INTERRUPTED')

  await server.stopStream('studio')
  await page.getByRole('heading', { name: 'The stream has ended' }).waitFor()
  await server.startStream(always)
  await page.waitForSelector('#notice', { state: 'hidden' })
  await plays(page, 1)
  t.strictSame(errors, [])
})

t.test('a stream without audio says so, and has no button for it', async (t) => {
  if (!requireTool(t, 'chromium', 'ffmpeg')) return
  const { server, url } = await startService(t, { hls: { segmentSec: 1 } })
  const { srtUrl } = await server.startStream({ streamId: 'studio' })
  const source = ['-re', '-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=30']
  const codec = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '30']
  start(t, 'ffmpeg', ['-v', 'error', ...source, ...codec, '-f', 'mpegts', srtUrl])
  const { page, errors } = await openPage(t, `${url}/watch/studio`)
  await plays(page, 1)
  await page.locator('main').getByText('This stream has no sound').waitFor()
  t.notOk(await page.isVisible('#unmute'))
  t.strictSame(errors, [])
})

t.test(
  'the video alone plays in a frame of a site that may show it, and in no other',
  async (t) => {
    if (!requireTool(t, 'chromium')) return
    const docs = readFileSync(new URL('../../../docs/players.md', import.meta.url), 'utf8')
    const snippet = /<iframe[^]*?<\/iframe>/.exec(docs)![0]
    let serviceUrl = ''
    const site = createHttpServer((_request, response) => {
      const body = snippet.replace('https://live.example.org', serviceUrl)
      response.setHeader('content-type', 'text/html').end(`<!doctype html><body>${body}`)
    })
    await once(site.listen(0, '127.0.0.1'), 'listening')
    t.teardown(() => site.close())
    const { port } = site.address() as AddressInfo
    const { server, url } = await startService(t, {
      hls: { segmentSec: 1 },
      watchFrameAncestors: `'self' http://localhost:${port}`,
    })
    serviceUrl = url
    const { srtUrl } = await server.startStream({ streamId: 'studio' })
    publishDemo(t, srtUrl)
    const { page, errors } = await openPage(t, `http://localhost:${port}`)
    const frame = page.frame({ url: `${url}/watch/studio?embed` })!
    await plays(frame, 1)
    await frame.waitForSelector('#unmute')
    for (const part of ['header', 'footer']) t.notOk(await frame.isVisible(part), part)
    const margins = `(() => {
    const { x, y, width, height } = document.querySelector('main').getBoundingClientRect()
    return [x, y, innerWidth - width, innerHeight - height].map(Math.round)
  })()`
    t.strictSame(await frame.evaluate(margins), [0, 0, 0, 0])
    t.strictSame(errors, [])

    const refusal = page.waitForEvent('console', {
      predicate: (message) => message.text().includes('frame-ancestors'),
    })
    await page.goto(`http://127.0.0.1:${port}`)
    await refusal
  },
)

t.test('frames that the decoder keeps do not hide that the stream is interrupted', async (t) => {
  if (!requireTool(t, 'chromium', 'ffmpeg')) return
  const { server, url } = await startService(t, { hls: { segmentSec: 1 } })
  const { srtUrl } = await server.startStream({ streamId: 'studio' })
  const source = ['-re', '-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=5']
  const codec = ['-c:v', 'libx264', '-pix_fmt', 'yuv420p', '-g', '5', '-bf', '2', '-f', 'mpegts']
  const encoder = start(t, 'ffmpeg', ['-v', 'error', ...source, ...codec, srtUrl])
  const { page } = await openPage(t, `${url}/watch/studio`)
  await plays(page, 2)
  encoder.kill('SIGKILL')
  await page.getByRole('heading', { name: 'The stream is interrupted' }).waitFor()
})

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

/** Pauses as a browser does at media that it cannot decode. */
async function pauseAsBrowser(page: Page): Promise<void> {
  await page.evaluate(`new Promise((resolve) => {
    const video = document.querySelector('video')
    // A video that the browser has paused already tells nothing more.
    if (video.paused) return resolve()
    Object.defineProperty(video, 'error', { value: {}, configurable: true })
    video.addEventListener('pause', () => { delete video.error; resolve() }, { once: true })
    video.pause()
  })`)
}

/** Publishes two sizes and two languages, and opens the page once they are listed. */
async function watchSource(t: Test, { server, url }: TestService) {
  const { srtUrl } = await server.startStream({ streamId: 'studio' })
  start(t, 'ffmpeg', ['-v', 'error', ...SOURCE, ...OUTPUT, srtUrl])
  await until('a playlist to start with', () => server.status('studio').live)
  const opened = await openPage(t, `${url}/watch/studio`)
  await plays(opened.page, 1)
  return opened
}

/** Windows in which the page scrolls sideways, or the notice is not all on the picture. */
async function findOverflows(page: Page): Promise<string[]> {
  const overflows: string[] = []
  for (const [width, height] of [
    [320, 568],
    [390, 844],
    [844, 390],
    [1280, 800],
    [2560, 1440],
  ] as const) {
    await page.setViewportSize({ width, height })
    const overflow = await page.evaluate<number[]>(`(() => {
      const { scrollWidth } = document.documentElement
      const stage = document.querySelector('main').getBoundingClientRect()
      const { scrollHeight, scrollWidth: noticeWidth } = document.querySelector('#notice')
      return [scrollWidth - innerWidth, scrollHeight - stage.height, noticeWidth - stage.width]
    })()`)
    if (overflow.some((pixels) => pixels >= 1))
      overflows.push(`${width} x ${height}: ${overflow.join()}`)
  }
  return overflows
}

function hasControls(page: Page): Promise<boolean> {
  return page.evaluate<boolean>('document.querySelector("video").controls')
}

/** Whether the player shows a picture that is not black. */
function hasPicture(page: Page): Promise<boolean> {
  return page.evaluate<boolean>(`(async () => {
    const video = document.querySelector('video')
    const poster = Object.assign(new Image(), { src: video.poster })
    if (video.videoWidth === 0 && !video.poster) return false
    if (video.videoWidth === 0) await poster.decode()
    const context = document.createElement('canvas').getContext('2d')
    context.drawImage(video.videoWidth === 0 ? poster : video, 0, 0, 1, 1)
    const [red, green, blue] = context.getImageData(0, 0, 1, 1).data
    return red + green + blue > 50
  })()`)
}

/** Waits until so much more was played. */
async function plays(page: Page | Frame, seconds: number): Promise<void> {
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
