/**
 * Browser module of the player page: choices of quality and language, and figures about the playback. Needs hls.js;
 * native players have menus of their own.
 *
 * @module
 */

export const panelScript = `
import { aheadSec } from './live-edge.js'

const REFRESH_MS = 500
/** Time over which the bitrate is the mean: with low latency each download is only a part of a segment. */
const BITRATE_SEC = 4

const panel = document.querySelector('footer')
const [quality, language, figures, latency, buffer, bitrate, dropped] = [
  ...['quality', 'language', 'figures', 'latency', 'buffer', 'bitrate', 'dropped'],
].map((id) => document.getElementById(id))

/**
 * @param serverNowMs  clock of the server
 * @returns function that hides the panel
 */
export function showPanel(video, hls, serverNowMs) {
  offerQuality(hls)
  offerLanguage(hls)
  const meanBitrate = measureBitrate(hls)
  const refresh = () => {
    if (!figures.open) return
    const { playingDate } = hls
    latency.textContent = playingDate ? formatSec((serverNowMs() - playingDate) / 1000) : '–'
    buffer.textContent = formatSec(aheadSec(video))
    bitrate.textContent = formatMbit(meanBitrate())
    const { droppedVideoFrames, totalVideoFrames } = video.getVideoPlaybackQuality()
    dropped.textContent = droppedVideoFrames + ' of ' + totalVideoFrames
  }
  figures.addEventListener('toggle', refresh)
  const timer = setInterval(refresh, REFRESH_MS)
  panel.hidden = false
  return () => {
    clearInterval(timer)
    figures.removeEventListener('toggle', refresh)
    panel.hidden = true
  }
}

function offerQuality(hls) {
  const { MANIFEST_PARSED, LEVELS_UPDATED } = Hls.Events
  const show = () => {
    const levels = hls.levels.map(({ height, bitrate }, index) => ({
      value: index,
      text: (height ? height + 'p, ' : '') + formatMbit(bitrate),
    }))
    offer(quality, [{ value: -1, text: 'Auto' }, ...levels.reverse()], levels.length)
    quality.value = hls.autoLevelEnabled ? -1 : hls.loadLevel
  }
  hls.on(MANIFEST_PARSED, show)
  hls.on(LEVELS_UPDATED, show)
  quality.onchange = () => {
    hls.nextLevel = Number(quality.value)
  }
}

function offerLanguage(hls) {
  const { AUDIO_TRACKS_UPDATED, AUDIO_TRACK_SWITCHING } = Hls.Events
  const show = () => {
    const tracks = hls.audioTracks.map(({ name }, index) => ({ value: index, text: name }))
    offer(language, tracks, tracks.length)
    language.value = hls.audioTrack
  }
  hls.on(AUDIO_TRACKS_UPDATED, show)
  hls.on(AUDIO_TRACK_SWITCHING, show)
  language.onchange = () => {
    hls.audioTrack = Number(language.value)
  }
}

function offer(select, options, count) {
  select.replaceChildren(...options.map(({ value, text }) => new Option(text, value)))
  select.parentElement.hidden = count < 2
}

/** @returns function that tells the mean of the newest downloads, audio renditions included */
function measureBitrate(hls) {
  let newest = []
  hls.on(Hls.Events.FRAG_BUFFERED, (_event, { frag, part, stats }) => {
    const durationSec = frag.type === 'main' ? (part ?? frag).duration : 0
    newest.push({ bits: stats.loaded * 8, durationSec })
    while (newest.length > 1 && sum(newest.slice(1), 'durationSec') >= BITRATE_SEC) newest.shift()
  })
  return () => sum(newest, 'bits') / sum(newest, 'durationSec')
}

function sum(items, key) {
  return items.reduce((total, item) => total + item[key], 0)
}

function formatSec(seconds) {
  return seconds.toFixed(2) + ' s'
}

function formatMbit(bitsPerSec) {
  return Number.isFinite(bitsPerSec) ? (bitsPerSec / 1e6).toFixed(1) + ' Mbit/s' : '–'
}
`
