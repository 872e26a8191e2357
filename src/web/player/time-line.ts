/**
 * Time line over the playlist of the last hours: by the clock, since that is what its dates are of.
 *
 * @module
 */
import type HlsModule from 'hls.js'
import { formatTime } from './notices.ts'

/** Global of a script that index.html loads. */
declare const Hls: typeof HlsModule

const line = document.querySelector<HTMLElement>('#time-line')!
const slider = document.querySelector<HTMLInputElement>('#position')!
const date = document.querySelector<HTMLElement>('#date')!

/**
 * Goes to a date as soon as something plays, and wherever the viewer then goes.
 *
 * @param startMs  milliseconds since 1970
 * @returns function that hides the time line
 */
export function showTimeLine(video: HTMLVideoElement, hls: HlsModule, startMs: number): () => void {
  const shown = new AbortController()
  let isDragged = false
  const show = (ms: number) => {
    const text = formatTime(ms)
    slider.value = String(ms)
    slider.setAttribute('aria-valuetext', text)
    date.textContent = text
  }
  const go = (ms: number) => {
    const position = positionOf(hls, ms)
    if (position !== undefined) video.currentTime = position
  }
  hls.on(Hls.Events.LEVEL_LOADED, (_event, { details: { fragments } }) => {
    const [first, last] = [fragments[0], fragments.at(-1)]
    if (!first?.programDateTime || !last?.programDateTime) return
    slider.min = String(first.programDateTime)
    slider.max = String(last.programDateTime + last.duration * 1000)
    line.hidden = false
  })
  const { signal } = shown
  slider.addEventListener(
    'input',
    () => {
      isDragged = true
      show(Number(slider.value))
    },
    { signal },
  )
  slider.addEventListener(
    'change',
    () => {
      isDragged = false
      go(Number(slider.value))
    },
    { signal },
  )
  // hls.js begins at the live edge.
  video.addEventListener('playing', () => go(startMs), { signal, once: true })
  video.addEventListener(
    'timeupdate',
    () => {
      if (hls.playingDate && !isDragged && !video.seeking) show(hls.playingDate.getTime())
    },
    { signal },
  )
  return () => {
    shown.abort()
    line.hidden = true
  }
}

/** Position of a date or, where nothing is of that date, of what comes next. */
function positionOf(hls: HlsModule, ms: number): number | undefined {
  const fragments = hls.latestLevelDetails?.fragments ?? []
  const found = fragments.find(
    ({ programDateTime, duration }) => (programDateTime ?? 0) + duration * 1000 > ms,
  )
  if (found?.programDateTime == null) return fragments.at(-1)?.start
  return found.start + Math.max(0, ms - found.programDateTime) / 1000
}
