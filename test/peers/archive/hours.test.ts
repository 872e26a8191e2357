/**
 * A rewind window of 4 h in stock players: three hours back, and to the live edge again; and what reloads of its playlists
 * cost. The hours pass in simulated time, then the stream goes on in real time.
 */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import type { BrowserContext } from 'playwright-core'
import t, { type Test } from 'tap'
import { setUp } from '../../archive/simulated-archive.ts'
import { MemoryService, startApp } from '../../http/memory-service.ts'
import { until } from '../../support/until.ts'
import { openBrowser, playback } from '../support/browser.ts'
import { playFrom } from '../support/play-from.ts'
import { STOCK_PLAYERS } from '../support/stock-players.ts'
import { requireTool } from '../support/tools.ts'

const HLS_JS = createRequire(import.meta.url).resolve('hls.js/dist/hls.min.js')
const HOUR_SEC = 3600
const WINDOW_SEC = 4 * HOUR_SEC
const VIDEO = 'dvr-cmaf-video-1.m3u8'

t.test('hls.js and Shaka go back three of four hours, and to the live edge again', async (t) => {
  if (!requireTool(t, 'ffmpeg', 'chromium')) return
  const { begin, connect, run } = setUp({
    ...{ dvrSec: WINDOW_SEC, fullBytes: 48 * 1024 * 1024 },
    ...{ formats: ['cmaf'], segmentSec: 2, stepUs: 250_000 },
  })
  const { stream } = begin()
  connect(stream, await makeClip(t.testdir()))
  await run(WINDOW_SEC + 60)
  goOn(t, run)
  const service = new MemoryService()
  service.stored.set('studio', stream)
  const app = await startApp(t, service)
  const folder = `${app.url}/video/studio/`

  const sizes = await Promise.all(
    ['', '?_HLS_skip=YES'].flatMap((query) =>
      ['identity', 'gzip'].map(async (encoding) => {
        const bytes = await read(folder + VIDEO + query, encoding)
        const text = String(encoding === 'gzip' ? gunzipSync(bytes) : bytes)
        t.equal(text.includes('#EXT-X-SKIP'), query !== '')
        return bytes.length
      }),
    ),
  )
  const [whole, zipped, delta, zippedDelta] = sizes as [number, number, number, number]
  t.comment(
    `playlist ${whole}, in gzip ${zipped}; delta update ${delta}, in gzip ${zippedDelta} bytes`,
  )
  t.ok(whole > 7000 * 60, 'four hours')
  t.ok(zipped * 10 < whole)
  t.ok(delta * 100 < whole)
  t.ok(zippedDelta * 2 < delta)

  const context = await (await openBrowser(t)).newContext()
  await context.route('**/hls.min.js', (route) => route.fulfill({ path: HLS_JS }))
  for (const { name, open, errorsOf } of STOCK_PLAYERS.filter((it) => it.name !== 'Video.js')) {
    const reloads = noteReloads(context)
    const page = await open(context, `${folder}dvr.m3u8`)
    const live = await until(`${name} is at the live edge`, async () => {
      const { currentTimeSec, framesDecoded } = await playback(page)
      return framesDecoded > 10 && currentTimeSec > WINDOW_SEC - 60 && currentTimeSec
    })
    const liveMs = performance.now()
    await playFrom(page, live - 3 * HOUR_SEC, `${name} plays three hours ago`)
    const sinceSec = (performance.now() - liveMs) / 1000
    await playFrom(page, live + sinceSec, `${name} plays live again`)
    t.strictSame(await errorsOf(page), [], name)
    await page.close()
    const deltas = reloads.filter(({ isDelta }) => isDelta)
    t.ok(deltas.length > 0, `${name} asks for delta updates`)
    t.comment(`${name}: ${reloads.length} requests, ${deltas.length} for delta updates`)
    for (const { bytes } of deltas) t.ok(bytes < 2 * delta)
  }
})

/** 20 s of little to decode, with key frames every 2 s. */
async function makeClip(folder: string): Promise<Buffer> {
  const file = join(folder, 'clip.mpegts')
  await promisify(execFile)('ffmpeg', [
    ...['-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=size=160x90:rate=5'],
    ...['-f', 'lavfi', '-i', 'sine=sample_rate=16000', '-t', '20', '-pix_fmt', 'yuv420p'],
    ...['-c:v', 'libx264', '-preset', 'ultrafast', '-crf', '40', '-g', '10', '-sc_threshold', '0'],
    ...['-c:a', 'aac', '-b:a', '16k', '-ac', '1', '-f', 'mpegts', file],
  ])
  return readFileSync(file)
}

/** From now on simulated time is real. */
function goOn(t: Test, run: (sec: number) => Promise<void>): void {
  const stepSec = 0.25
  const over = new AbortController()
  const running = (async () => {
    const startMs = performance.now()
    for (let sec = 0; !over.signal.aborted; sec += stepSec) {
      await run(stepSec)
      const waitMs = startMs + sec * 1000 - performance.now()
      await sleep(Math.max(0, waitMs), undefined, { signal: over.signal }).catch(() => undefined)
    }
  })()
  t.teardown(() => {
    over.abort()
    return running
  })
}

/** @returns the body as it was sent */
async function read(url: string, encoding: string): Promise<Buffer> {
  const request = get(url, { headers: { 'accept-encoding': encoding } })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return buffer(response)
}

/** Collects the loads of the video playlist, with the size of the text. */
function noteReloads(context: BrowserContext) {
  const reloads: { isDelta: boolean; bytes: number }[] = []
  context.on('response', (response) => {
    const { pathname, search } = new URL(response.url())
    if (!pathname.endsWith(VIDEO) || response.status() !== 200) return
    const isDelta = search.includes('_HLS_skip=')
    const note = (body: Buffer) => reloads.push({ isDelta, bytes: body.length })
    response.body().then(note, () => undefined)
  })
  return reloads
}
