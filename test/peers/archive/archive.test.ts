/**
 * A finished archive in a store that somebody else wrote, with a lost encoder in the middle: read by rclone, counted by
 * ffprobe, played by stock players over plain HTTP.
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import t from 'tap'
import { publish } from '../../../src/cli/publisher/publisher.ts'
import type { RenditionName } from '../../../src/hls/file-names.ts'
import { publishDemo } from '../../support/demo-encoder.ts'
import { archiveOptionsOf, startS3Server } from '../../support/s3-server.ts'
import { startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { openBrowser, playback } from '../support/browser.ts'
import { readDecoded } from '../support/media.ts'
import { STOCK_PLAYERS } from '../support/stock-players.ts'
import { requireTool } from '../support/tools.ts'

const run = promisify(execFile)
const CLIP = fileURLToPath(new URL('../../../fixtures/demo.mpegts', import.meta.url))
const FRAMES_PER_SEC = 30
const HLS_JS = createRequire(import.meta.url).resolve('hls.js/dist/hls.min.js')
/** Segments before the encoder is lost, and behind it. */
const SEGMENTS = 6

t.test('rclone, ffprobe, hls.js, Shaka and Video.js read a finished archive', async (t) => {
  if (!requireTool(t, 'rclone', 'ffprobe', 'chromium')) return
  const store = await startS3Server(t)
  const { server } = await startService(t, {
    archive: archiveOptionsOf(store),
    hls: { segmentSec: 1 },
  })
  const { srtUrl } = await server.startStream({ streamId: 'studio' })
  const live = new Map<string, Buffer>()
  const frames = new Map<RenditionName, number>()
  server.findStream('studio')!.on('segment', ({ uri, bytes, rendition, videoFrames }) => {
    if (!rendition.startsWith('cmaf')) return
    live.set(uri, Buffer.from(bytes))
    frames.set(rendition, (frames.get(rendition) ?? 0) + videoFrames)
  })
  const encoder = publishDemo(t, srtUrl)
  await until('segments', () => live.size >= 2 * SEGMENTS)
  encoder.stop()
  await until('interrupted', () => server.status('studio').status === 'INTERRUPTED')
  const before = live.size
  publishDemo(t, srtUrl)
  await until('more segments', () => live.size >= before + 2 * SEGMENTS)
  await server.stopStream('studio')
  const archive = await until('the archive is complete', () => {
    const report = server.status('studio').archive
    return report?.state === 'COMPLETE' && report
  })
  t.match(archive, { gaps: 0, segments: live.size })
  const url = archive.url!

  const folder = t.testdir()
  const { accessKeyId, secretAccessKey } = store.credentials
  const copy = [
    ...['copy', `:s3:archive/live/studio/${archive.run}`, folder, '--config', '/dev/null'],
    ...['--s3-provider', 'Other', '--s3-endpoint', store.endpoint],
    ...['--s3-access-key-id', accessKeyId, '--s3-secret-access-key', secretAccessKey],
  ]
  // Nothing of the environment but what it needs: it reads AWS_* as well.
  await run('rclone', copy, { env: { PATH: process.env['PATH'] } })
  for (const [uri, bytes] of live) t.ok(readFileSync(join(folder, uri)).equals(bytes), uri)

  const probed = await run('ffprobe', [
    ...['-v', 'error', '-count_packets', '-select_streams', 'v', '-of', 'csv=p=0'],
    ...['-show_entries', 'stream=nb_read_packets', url],
  ])
  t.equal(Number(probed.stdout.split('\n')[0]), frames.get('cmaf-video-1'), 'all frames')

  const context = await (await openBrowser(t)).newContext()
  await context.route('**/hls.min.js', (route) => route.fulfill({ path: HLS_JS }))
  for (const { name, open, errorsOf } of STOCK_PLAYERS) {
    const page = await open(context, url)
    await until(`${name} plays`, async () => (await playback(page)).currentTimeSec > 1)
    for (const share of [0.8, 0.1]) {
      const toSec = archive.durationSec * share
      await seek(page, toSec)
      await until(`${name} plays from ${toSec} s`, async () => {
        const { currentTimeSec } = await playback(page)
        return currentTimeSec > toSec + 0.5 && currentTimeSec < toSec + 5
      })
    }
    await seek(page, archive.durationSec - 1)
    await until(`${name} plays to the end`, async () => (await playback(page)).ended)
    t.strictSame(await errorsOf(page), [], name)
    await page.close()
  }
})

for (const formats of ['cmaf', 'ts'] as const)
  t.test(`ffmpeg decodes all frames of the file that was sent, ${formats}`, async (t) => {
    if (!requireTool(t, 'ffmpeg', 'ffprobe')) return
    const store = await startS3Server(t)
    const { server } = await startService(t, {
      archive: archiveOptionsOf(store),
      hls: { segmentSec: 1, formats },
    })
    const { srtUrl } = await server.startStream({ streamId: 'studio' })
    await publish({ file: CLIP, url: srtUrl })
    await until('interrupted', () => server.status('studio').status === 'INTERRUPTED')
    await server.stopStream('studio')
    const { url = '' } = await until('the archive is complete', () => {
      const report = server.status('studio').archive
      return report?.state === 'COMPLETE' && report
    })
    const { stdout } = await run('ffprobe', [
      ...['-v', 'error', '-count_frames', '-select_streams', 'v', '-of', 'csv=p=0'],
      ...['-show_entries', 'stream=nb_read_frames', url],
    ])
    const sent = (await readDecoded(CLIP)).video
    t.equal(Number(stdout.split('\n')[0]), sent.length, 'number of frames')
    t.strictSame((await readDecoded(url)).video, sent, 'each frame')
    // ffmpeg 5.1 seeks in no playlist of fMP4, its own included: there it decodes up to the time.
    const where = formats === 'cmaf' ? 'output' : 'input'
    for (const sec of [3.5, 4, 6.2]) {
      const from = await readDecoded(url, { [where]: ['-ss', String(sec)] })
      t.strictSame(from.video, sent.slice(Math.ceil(sec * FRAMES_PER_SEC)), `from ${sec} s`)
    }
  })

async function seek(page: Page, toSec: number): Promise<void> {
  await page.evaluate(`document.querySelector('video').currentTime = ${toSec}`)
}
