/**
 * Video.js on a minimal page, with its own HLS engine (http-streaming), whose errors can be read at any time.
 *
 * @module
 */
import { createRequire } from 'node:module'
import type { BrowserContext, Page } from 'playwright-core'

const SCRIPT = createRequire(import.meta.url).resolve('video.js/dist/video.min.js')

const PAGE = `<!doctype html><video class="video-js" muted playsinline></video>
<script src="/video.js"></script>
<script>
const errors = []
const player = videojs(document.querySelector('video'))
player.on('error', () => errors.push(player.error()?.message))
player.src({ src: new URLSearchParams(location.search).get('src'), type: 'application/vnd.apple.mpegurl' })
player.ready(() => player.play())
</script>
`

/** Opens a page that plays a playlist. */
export async function openVideoJs(context: BrowserContext, playlistUrl: string): Promise<Page> {
  const page = await context.newPage()
  await page.route('**/video.js', (route) => route.fulfill({ path: SCRIPT }))
  await page.route('**/video-js?*', (route) =>
    route.fulfill({ contentType: 'text/html', body: PAGE }),
  )
  const query = new URLSearchParams({ src: playlistUrl })
  await page.goto(new URL(`/video-js?${query.toString()}`, playlistUrl).href)
  return page
}

/** @returns messages of the errors of the player so far */
export function videoJsErrors(page: Page): Promise<readonly string[]> {
  return page.evaluate('errors')
}

/**
 * Whether Video.js needs to be loaded anew, as by a page of its users: where it has played a part with a key frame to its end
 * and waits for the next one, it fetches the same part ten times, and where a segment ends between its requests for two
 * playlists, it mistakes one for the next.
 */
export function hasGivenUp(errors: readonly string[]): boolean {
  return errors.some((it) => it.startsWith('Playback cannot continue'))
}
