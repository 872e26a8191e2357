/**
 * Media playlists parsed by hls.js.
 *
 * @module
 */
// The module looks for the global object of a browser.
Object.assign(globalThis, { self: globalThis })
const { M3U8Parser } = await import('hls.js/dist/hls.mjs')

export function parseWithHlsJs(text: string) {
  return M3U8Parser.parseLevelPlaylist(text, 'http://localhost/playlist.m3u8', 0, 'main', 0, null)
}
