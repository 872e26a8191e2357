/**
 * Shaka Player on a minimal page, whose state can be read at any time.
 *
 * @module
 */
import { createRequire } from 'node:module'
import type { BrowserContext, Page } from 'playwright-core'

export interface ShakaState {
  readonly currentTimeSec: number
  /** End of the buffered media. */
  readonly bufferedSec: number
  readonly width: number
  readonly height: number
  /** Decoded video frames so far. */
  readonly framesDecoded: number
  /** File names of the segments fetched so far. */
  readonly segments: readonly string[]
  /** Time that the player stood still since the first frame. */
  readonly stoodStillSec: number
  /** Errors after which Shaka stops, and those of the page and of the media element. */
  readonly errors: readonly string[]
}

const SCRIPT = createRequire(import.meta.url).resolve('shaka-player/dist/shaka-player.compiled.js')

/** Interval at which the page looks whether the player moves. */
const LOOK_MS = 100

const PAGE = `<!doctype html><video muted playsinline></video>
<script src="/shaka-player.js"></script>
<script>
const video = document.querySelector('video')
const errors = []
const segments = []
addEventListener('error', ({ message }) => errors.push(message))
addEventListener('unhandledrejection', ({ reason }) => errors.push(String(reason)))
const player = new shaka.Player()
// A part that was hinted and never came is no reason to stop (rfc8216bis 4.4.5.3).
const isHint = ({ code, data }) =>
  code === shaka.util.Error.Code.BAD_HTTP_STATUS && data[1] === 404 && /-p\\d+\\.m4s$/.test(data[0])
player.addEventListener('error', ({ detail }) => {
  if (detail.severity !== shaka.util.Error.Severity.RECOVERABLE && !isHint(detail))
    errors.push([detail.code ?? detail, ...(detail.data ?? [])].join(' ').slice(0, 300))
})
let stoodStillMs = 0
let latest = { time: 0, at: performance.now() }
setInterval(() => {
  const [time, at] = [video.currentTime, performance.now()]
  if (latest.time > 0 && time === latest.time) stoodStillMs += at - latest.at
  latest = { time, at }
}, ${LOOK_MS})
const play = async () => {
  const query = new URLSearchParams(location.search)
  player.configure(JSON.parse(query.get('config')))
  await player.attach(video)
  player.getNetworkingEngine().registerResponseFilter((type, { uri }) => {
    if (type === shaka.net.NetworkingEngine.RequestType.SEGMENT) segments.push(uri.replace(/.*\\//, ''))
  })
  await player.load(query.get('src'))
  await video.play()
}
void play()
const state = () => ({
  currentTimeSec: video.currentTime,
  bufferedSec: video.buffered.length && video.buffered.end(video.buffered.length - 1),
  width: video.videoWidth,
  height: video.videoHeight,
  framesDecoded: video.getVideoPlaybackQuality().totalVideoFrames,
  segments,
  stoodStillSec: stoodStillMs / 1000,
  errors: video.error ? [...errors, video.error.message] : errors,
})
</script>
`

/**
 * Opens a page that plays a playlist.
 *
 * @param config  settings of Shaka that differ from its defaults
 */
export async function openShaka(
  context: BrowserContext,
  playlistUrl: string,
  config: object = {},
): Promise<Page> {
  const page = await context.newPage()
  await page.route('**/shaka-player.js', (route) => route.fulfill({ path: SCRIPT }))
  await page.route('**/shaka?*', (route) => route.fulfill({ contentType: 'text/html', body: PAGE }))
  const query = new URLSearchParams({ src: playlistUrl, config: JSON.stringify(config) })
  await page.goto(new URL(`/shaka?${query.toString()}`, playlistUrl).href)
  return page
}

export function shakaState(page: Page): Promise<ShakaState> {
  return page.evaluate('state()')
}
