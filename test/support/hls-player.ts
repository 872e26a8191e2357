/**
 * hls.js on a bare page: what it shows, decodes and complains of can be asked at any time.
 *
 * @module
 */
import type { BrowserContext, Page } from 'playwright-core'

export interface PlayerState {
  readonly currentTimeSec: number
  readonly width: number
  readonly height: number
  /** The segment on the screen: how far its discontinuity sequence is past the first one seen. */
  readonly shown: { readonly discontinuities: number } | null
  /** Heights of the levels there are, lowest bandwidth first. */
  readonly levels: readonly number[]
  /** Names of the audio tracks there are. */
  readonly audioTracks: readonly string[]
  /** Where the sound that was buffered last came from: its playlist, or that of the pictures. */
  readonly soundFrom: string | null
  /** Bytes of sound that were decoded so far. */
  readonly audioDecodedBytes: number
  /** Pictures that were decoded so far. */
  readonly framesDecoded: number
  /** What hls.js gave up for; it plays no more after that. */
  readonly fatalErrors: readonly string[]
  readonly mediaError: string | null
}

const PAGE = `<!doctype html><video muted playsinline></video>
<script src="/watch/assets/hls.min.js"></script>
<script>
const video = document.querySelector('video')
const hls = new Hls()
const fatalErrors = []
let shown = null
let soundFrom = null
hls.on(Hls.Events.ERROR, (_, { type, details, fatal, error }) => {
  if (fatal) fatalErrors.push([type, details, error?.message].join(': '))
})
let firstCc
hls.on(Hls.Events.LEVEL_LOADED, (_, { details }) => {
  firstCc ??= details.startCC
})
hls.on(Hls.Events.FRAG_CHANGED, (_, { frag }) => {
  shown = { discontinuities: frag.cc - firstCc }
})
hls.on(Hls.Events.FRAG_BUFFERED, (_, { frag }) => {
  if (frag.elementaryStreams.audio) soundFrom = frag.baseurl.replace(/.*\\//, '')
})
hls.on(Hls.Events.MANIFEST_PARSED, () => void video.play())
hls.attachMedia(video)
hls.loadSource(new URLSearchParams(location.search).get('src'))
const state = () => ({
  currentTimeSec: video.currentTime,
  width: video.videoWidth,
  height: video.videoHeight,
  shown,
  levels: hls.levels.map(({ height }) => height),
  audioTracks: hls.audioTracks.map(({ name }) => name),
  soundFrom,
  audioDecodedBytes: video.webkitAudioDecodedByteCount,
  framesDecoded: video.getVideoPlaybackQuality().totalVideoFrames,
  fatalErrors,
  mediaError: video.error && video.error.message,
})
</script>
`

/** Opens a page that plays a playlist of a running service. It never starts over: an error that is fatal stays. */
export async function openPlayer(context: BrowserContext, playlistUrl: string): Promise<Page> {
  const page = await context.newPage()
  await page.route('**/player?*', (route) =>
    route.fulfill({ contentType: 'text/html', body: PAGE }),
  )
  await page.goto(new URL(`/player?src=${encodeURIComponent(playlistUrl)}`, playlistUrl).href)
  return page
}

/** Switches at the next segment; `index` in `levels`. */
export async function switchLevel(page: Page, index: number): Promise<void> {
  await page.evaluate(`hls.nextLevel = ${index}`)
}

/** @param index  in `audioTracks` */
export async function switchAudioTrack(page: Page, index: number): Promise<void> {
  await page.evaluate(`hls.audioTrack = ${index}`)
}

export function playerState(page: Page): Promise<PlayerState> {
  return page.evaluate('state()')
}
