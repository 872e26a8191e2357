/**
 * hls.js, Shaka and Video.js as published stay on one page while a slate, an encoder and its backup take turns on air, and
 * `check` finds nothing broken meanwhile.
 */
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t from 'tap'
import { checkStream } from '../../../src/check/index.ts'
import type { EndpointName } from '../../../src/client/index.ts'
import { callApi } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { openBrowser, playback, type Playback } from '../support/browser.ts'
import { startEncoder } from '../support/live-encoder.ts'
import { playerState } from '../support/hls-player.ts'
import { createSecrets, startNodes, type NodeProcess } from '../support/node-processes.ts'
import { STOCK_PLAYERS } from '../support/stock-players.ts'
import { requireTool } from '../support/tools.ts'
import { hasGivenUp } from '../support/video-js-player.ts'

const SIZE = '320x180'

/** Color of the left half of the video of each source. */
const COLORS = { slate: 'green', main: 'red', backup: 'blue' } as const
type Source = keyof typeof COLORS

/** Switches of the test, each with a discontinuity. */
const SWITCHES = 4

/** Playback of a source that shows that the player has gone on. */
const PLAYED_SEC = 1

/** A look at the video takes time that the browser needs. */
const SELDOM = { everyMs: 250 }

/** Number of the latest requests of a page that are told if it does not play. */
const TOLD_REQUESTS = 20

/** Rules about time, which a busy machine breaks, and about BANDWIDTH, which is that of the slate. */
const EXCEPT = new Set([
  ...['PLAYLIST_STALE', 'PARTS_STALE', 'BLOCKING_LATE', 'MEDIA_TRICKLED', 'DATE_OFF_CLOCK'],
  'BANDWIDTH_TIGHT',
])

t.test('stock players show slate, main and backup encoder in turn', async (t) => {
  if (!requireTool(t, 'ffmpeg', 'chromium')) return
  const slateDir = t.testdir()
  const slate = join(slateDir, 'slate.ts')
  await startEncoder(t, slate, SIZE, { color: COLORS.slate, seconds: 2, isFine: true }).exit
  // A process of its own: the browser's driver would take turns with the packets of the encoders.
  const env = {
    ...createSecrets(),
    ...{ SLATE_DIR: slateDir, SLATE_AFTER_SEC: '0', FAILBACK_SEC: '1' },
    // A window in which a player that is late finds all of its segments.
    HLS_PLAYLIST_SEGMENTS: '60',
  }
  const [node] = (await startNodes(t, 'serve', env, 1)) as [NodeProcess]
  const call = async (name: EndpointName, body: object = {}) =>
    (await callApi(node.url, name, { stream_id: 'studio', ...body }, env.HMAC_SECRET)).body.data
  const {
    srt_url: srtUrl,
    backup_srt_url: backupSrtUrl,
    master_url: masterUrl,
  } = await call('start-stream', { backup: true, slate: 'slate.ts', always_on: true })
  const playlistUrl = masterUrl.replace('master', 'cmaf-video-1')
  await until('three segments of the slate', async () => {
    const text = await (await fetch(playlistUrl)).text()
    return text.split('#EXTINF').length > 3
  })
  const checking = new AbortController()
  t.teardown(() => checking.abort())
  const check = checkStream({ url: masterUrl, seconds: 600, signal: checking.signal })
  const browser = await openBrowser(t)
  const pageErrors: string[] = []
  const screens = await Promise.all(
    STOCK_PLAYERS.map(async ({ open, ...rest }) => {
      // A context of its own: players would wait for each other's held requests for one of the 6 connections.
      const context = await browser.newContext()
      context.on('weberror', (error) => pageErrors.push(error.error().message))
      const page = await open(context, masterUrl)
      return { ...rest, page, requests: noteRequests(page) }
    }),
  )
  /** Waits until every player plays the source. */
  const play = (source: Source) =>
    Promise.all(
      screens.map(async ({ name, page, errorsOf, requests }) => {
        let from: Playback | undefined
        const isPlaying = async () => {
          if (hasGivenUp(await errorsOf(page))) {
            await page.reload()
            from = undefined
          }
          if ((await colorOf(page)) !== COLORS[source]) return false
          const now = await playback(page)
          from ??= now
          return (
            now.currentTimeSec > from.currentTimeSec + PLAYED_SEC &&
            now.framesDecoded > from.framesDecoded
          )
        }
        await until(`${name} plays ${source}`, isPlaying, SELDOM).catch(async (error: unknown) => {
          t.comment(`${name}:`, await mediaState(page), await errorsOf(page), requests)
          t.comment(await call('status'), await (await fetch(playlistUrl)).text())
          throw error
        })
      }),
    )
  const connect = (source: 'main' | 'backup') =>
    startEncoder(t, source === 'main' ? srtUrl : backupSrtUrl, SIZE, {
      ...{ color: COLORS[source], isFine: true, retries: true },
    })

  await play('slate')
  const main = connect('main')
  await play('main')
  const backup = connect('backup')
  await until('the backup is ready', async () => {
    const { sources } = (await call('status')) as { sources: { source: string; ready: boolean }[] }
    return sources.some(({ source, ready }) => source === 'backup' && ready)
  })
  main.kill('SIGKILL')
  await play('backup')
  backup.kill('SIGKILL')
  await play('slate')
  connect('main')
  await play('main')

  for (const { name, page, errorsOf } of screens) {
    t.strictSame(await errorsOf(page), [], `${name} has no error`)
    if (name === 'hls.js')
      t.ok((await playerState(page)).shown!.discontinuities >= SWITCHES, 'discontinuities')
  }
  t.strictSame(pageErrors, [])
  checking.abort()
  const { findings } = await check
  const broken = findings.filter(({ rule }) => !EXCEPT.has(rule.id))
  t.strictSame(
    broken.map(({ rule, count, evidence }) => [rule.id, count, evidence]),
    [],
  )
})

/** The latest requests of a page, with the time of each answer. */
function noteRequests(page: Page): string[] {
  const notes: string[] = []
  const note = (text: string) => {
    notes.push(`${new Date().toISOString()} ${text}`)
    if (notes.length > TOLD_REQUESTS) notes.shift()
  }
  page.on('request', (request) => note(`asks ${request.url()}`))
  page.on('response', (response) => note(`${response.status()} ${response.url()}`))
  page.on('requestfailed', (request) => note(`${request.failure()?.errorText} ${request.url()}`))
  return notes
}

function mediaState(page: Page): Promise<object> {
  return page.evaluate(`(() => {
    const video = document.querySelector('video')
    const { currentTime, readyState, networkState, paused, seeking, playbackRate, error } = video
    const buffered = Array.from(video.buffered, (_, at) => [video.buffered.start(at), video.buffered.end(at)])
    const { totalVideoFrames, droppedVideoFrames } = video.getVideoPlaybackQuality()
    return { currentTime, buffered, readyState, networkState, paused, seeking, playbackRate,
      totalVideoFrames, droppedVideoFrames, error: error && error.message }
  })()`)
}

/** Color in the left half of the video; undefined while there is no frame or none of a source. */
async function colorOf(page: Page): Promise<string | undefined> {
  const [red = 0, green = 0, blue = 0] = await page.evaluate<number[]>(`(() => {
    const video = document.querySelector('video')
    if (video.videoWidth === 0) return []
    const context = new OffscreenCanvas(1, 1).getContext('2d')
    context.drawImage(video, video.videoWidth / 4, video.videoHeight / 2, 1, 1, 0, 0, 1, 1)
    return [...context.getImageData(0, 0, 1, 1).data]
  })()`)
  const max = Math.max(red, green, blue)
  if (max < 64) return undefined
  return max === red ? 'red' : max === green ? 'green' : 'blue'
}
