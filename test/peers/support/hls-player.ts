/**
 * hls.js on a minimal page, whose state can be read at any time.
 *
 * @module
 */
import type { BrowserContext, Page } from 'playwright-core'
import { until } from '../../support/until.ts'

export interface PlayerState {
  readonly currentTimeSec: number
  readonly width: number
  readonly height: number
  /** Discontinuity sequence number of the segment being played, relative to the first one seen. */
  readonly shown: { readonly discontinuities: number } | null
  /** Heights of all levels, lowest bandwidth first. */
  readonly levels: readonly number[]
  /** Names of all audio tracks. */
  readonly audioTracks: readonly string[]
  /** Playlist of the latest buffered audio: an audio rendition or the variant. */
  readonly audioFrom: string | null
  /** Bytes of decoded audio so far. */
  readonly audioDecodedBytes: number
  /** Decoded video frames so far. */
  readonly framesDecoded: number
  /** Start and end of each range of buffered media, in seconds. */
  readonly buffered: readonly (readonly [number, number])[]
  /** Latest errors of hls.js, oldest first. */
  readonly errors: readonly string[]
  /** Fatal errors of hls.js, after which it stops. */
  readonly fatalErrors: readonly string[]
  readonly mediaError: string | null
}

const PAGE = `<!doctype html><video muted playsinline></video>
<script src="/watch/assets/hls.min.js"></script>
<script>
const video = document.querySelector('video')
const hls = new Hls()
for (const [name, policy] of Object.entries(hls.config)) {
  if (name.endsWith('LoadPolicy')) {
    Object.assign(policy.default, { maxTimeToFirstByteMs: 120_000, maxLoadTimeMs: 120_000 })
    // Low latency has a limit of its own for playlists, in part targets.
    policy.default.timeoutRetry = { maxNumRetry: 1000, retryDelayMs: 0, maxRetryDelayMs: 0 }
  }
}
const errors = []
const fatalErrors = []
let shown = null
let audioFrom = null
hls.on(Hls.Events.ERROR, (_, { type, details, fatal, error }) => {
  errors.push([video.currentTime, details, error?.message].join(': '))
  if (fatal) fatalErrors.push([type, details, error?.message].join(': '))
})
let firstCc
hls.on(Hls.Events.LEVEL_LOADED, (_, { details }) => {
  firstCc ??= details.startCC
})
hls.on(Hls.Events.FRAG_CHANGED, (_, { frag }) => {
  shown = { discontinuities: frag.cc - firstCc }
})
hls.on(Hls.Events.FRAG_BUFFERED, (_, { frag, part }) => {
  if ((part ?? frag).elementaryStreams.audio) audioFrom = frag.baseurl.replace(/[?].*|.*\\//g, '')
})
hls.on(Hls.Events.MANIFEST_PARSED, () => void video.play())
hls.attachMedia(video)
const state = () => ({
  currentTimeSec: video.currentTime,
  width: video.videoWidth,
  height: video.videoHeight,
  shown,
  levels: hls.levels.map(({ height }) => height),
  audioTracks: hls.audioTracks.map(({ name }) => name),
  audioFrom,
  audioDecodedBytes: video.webkitAudioDecodedByteCount,
  framesDecoded: video.getVideoPlaybackQuality().totalVideoFrames,
  buffered: Array.from(video.buffered, (_, at) => [video.buffered.start(at), video.buffered.end(at)]),
  errors: errors.slice(-10),
  fatalErrors,
  mediaError: video.error && video.error.message,
})
</script>
`

/**
 * Opens a page that plays a playlist of a running service, without recovery from fatal errors. Time limits of hls.js are
 * those of a busy machine.
 *
 * @param ready  called when the page is there, before it loads the playlist
 */
export async function openPlayer(
  context: BrowserContext,
  playlistUrl: string,
  ready?: () => Promise<unknown>,
): Promise<Page> {
  const page = await context.newPage()
  await page.route('**/player?*', (route) =>
    route.fulfill({ contentType: 'text/html', body: PAGE }),
  )
  await page.goto(new URL('/player?', playlistUrl).href)
  await ready?.()
  await page.evaluate(`hls.loadSource(${JSON.stringify(playlistUrl)})`)
  return page
}

/**
 * Switches the level at the next segment. By default hls.js chooses again by itself after any error, such as the 404 of a
 * part that a late player requests.
 *
 * @param index  index in `levels`
 */
export async function switchLevel(page: Page, index: number): Promise<void> {
  await page.evaluate(`hls.config.preserveManualLevelOnError = true; hls.nextLevel = ${index}`)
}

/** Switches the audio track. @param index  index in `audioTracks` */
export async function switchAudioTrack(page: Page, index: number): Promise<void> {
  await page.evaluate(`hls.audioTrack = ${index}`)
}

export function playerState(page: Page): Promise<PlayerState> {
  return page.evaluate('state()')
}

/**
 * Waits for a state of the player.
 *
 * @throws {Error} with the latest state after the timeout
 */
export async function untilState(
  page: Page,
  what: string,
  is: (state: PlayerState) => boolean,
): Promise<PlayerState> {
  const look = async () => {
    const state = await playerState(page)
    return is(state) && state
  }
  return until(what, look, { everyMs: 100 }).catch(async (error: unknown) => {
    throw new Error(`${String(error)}: ${JSON.stringify(await playerState(page))}`)
  })
}
