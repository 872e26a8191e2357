/**
 * Choices of quality and language, and figures about the playback. Needs hls.js; native players have menus of their own.
 *
 * @module
 */
import type HlsModule from 'hls.js'
import { aheadSec } from './live-edge.ts'

/** Global of a script that index.html loads. */
declare const Hls: typeof HlsModule

const REFRESH_MS = 500
/** Time over which the bitrate is the mean: with low latency each download is only a part of a segment. */
const BITRATE_SEC = 4

const panel = document.querySelector('footer')!
const quality = document.querySelector<HTMLSelectElement>('#quality')!
const language = document.querySelector<HTMLSelectElement>('#language')!
const figure = (id: string) => document.querySelector<HTMLElement>(`#${id}`)!
const latency = figure('latency')
const buffer = figure('buffer')
const bitrate = figure('bitrate')
const dropped = figure('dropped')

/** Option of a menu. */
interface Choice {
  readonly value: number
  readonly text: string
}

interface Download {
  readonly bits: number
  /** Media time; 0 for an audio rendition beside the video. */
  readonly durationSec: number
}

/**
 * @param serverNowMs  clock of the server
 * @returns function that hides the panel
 */
export function showPanel(
  video: HTMLVideoElement,
  hls: HlsModule,
  serverNowMs: () => number,
): () => void {
  const shown = new AbortController()
  offerQuality(hls, shown.signal)
  offerLanguage(hls, shown.signal)
  const meanBitrate = measureBitrate(hls)
  const refresh = () => {
    const { playingDate } = hls
    latency.textContent = playingDate
      ? formatSec((serverNowMs() - playingDate.getTime()) / 1000)
      : '–'
    buffer.textContent = formatSec(aheadSec(video))
    bitrate.textContent = formatMbit(meanBitrate())
    const { droppedVideoFrames, totalVideoFrames } = video.getVideoPlaybackQuality()
    dropped.textContent = `${droppedVideoFrames} of ${totalVideoFrames}`
  }
  const timer = setInterval(refresh, REFRESH_MS)
  panel.hidden = false
  return () => {
    clearInterval(timer)
    shown.abort()
    panel.hidden = true
  }
}

function offerQuality(hls: HlsModule, signal: AbortSignal): void {
  const { MANIFEST_PARSED, LEVELS_UPDATED } = Hls.Events
  const show = () => {
    const levels: Choice[] = []
    for (const [value, { height, bitrate }] of hls.levels.entries()) {
      const text = (height ? `${height}p, ` : '') + formatMbit(bitrate)
      levels.unshift({ value, text })
    }
    offer(quality, [{ value: -1, text: 'Auto' }, ...levels], levels.length)
    quality.value = String(hls.autoLevelEnabled ? -1 : hls.loadLevel)
  }
  hls.on(MANIFEST_PARSED, show)
  hls.on(LEVELS_UPDATED, show)
  const choose = () => {
    hls.nextLevel = Number(quality.value)
  }
  quality.addEventListener('change', choose, { signal })
}

function offerLanguage(hls: HlsModule, signal: AbortSignal): void {
  const { AUDIO_TRACKS_UPDATED, AUDIO_TRACK_SWITCHING } = Hls.Events
  const show = () => {
    const tracks = hls.audioTracks.map(({ name }, index) => ({ value: index, text: name }))
    offer(language, tracks, tracks.length)
    language.value = String(hls.audioTrack)
  }
  hls.on(AUDIO_TRACKS_UPDATED, show)
  hls.on(AUDIO_TRACK_SWITCHING, show)
  const choose = () => {
    hls.audioTrack = Number(language.value)
  }
  language.addEventListener('change', choose, { signal })
}

function offer(select: HTMLSelectElement, options: readonly Choice[], count: number): void {
  select.replaceChildren(...options.map(({ value, text }) => new Option(text, String(value))))
  select.parentElement!.hidden = count < 2
}

/** @returns function that tells the mean of the newest downloads, audio renditions included */
function measureBitrate(hls: HlsModule): () => number {
  const newest: Download[] = []
  hls.on(Hls.Events.FRAG_BUFFERED, (_event, { frag, part, stats }) => {
    const durationSec = (frag.type as string) === 'main' ? (part ?? frag).duration : 0
    newest.push({ bits: stats.loaded * 8, durationSec })
    while (newest.length > 1 && sum(newest.slice(1), 'durationSec') >= BITRATE_SEC) newest.shift()
  })
  return () => sum(newest, 'bits') / sum(newest, 'durationSec')
}

function sum(items: readonly Download[], key: keyof Download): number {
  return items.reduce((total, item) => total + item[key], 0)
}

function formatSec(seconds: number): string {
  return `${seconds.toFixed(2)} s`
}

function formatMbit(bitsPerSec: number): string {
  return Number.isFinite(bitsPerSec) ? `${(bitsPerSec / 1e6).toFixed(1)} Mbit/s` : '–'
}
