/**
 * hls.js, Shaka and Video.js as published, on minimal pages, with no option but the URL.
 *
 * @module
 */
import type { Page } from 'playwright-core'
import { openPlayer, playerState } from './hls-player.ts'
import { openShaka, shakaState } from './shaka-player.ts'
import { openVideoJs, videoJsErrors } from './video-js-player.ts'

/** `open` opens a page that plays a playlist, `errorsOf` reads the errors so far after which the player stops. */
export const STOCK_PLAYERS = [
  {
    name: 'hls.js',
    open: openPlayer,
    errorsOf: async (page: Page) => (await playerState(page)).fatalErrors,
  },
  {
    name: 'Shaka',
    open: openShaka,
    errorsOf: async (page: Page) => (await shakaState(page)).errors,
  },
  { name: 'Video.js', open: openVideoJs, errorsOf: videoJsErrors },
]
