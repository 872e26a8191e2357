/**
 * What a video element shows, as a script in its page notes it.
 *
 * @module
 */

/** Time without a new frame on the screen. */
export interface Standstill {
  /** Since the first frame. */
  readonly atSec: number
  readonly sec: number
}

export interface Watched {
  /** From the opening of the page to the first frame; `null` without one. */
  readonly startSec: number | null
  /** Those longer than MIN_STANDSTILL_SEC, with one that still lasts. */
  readonly standstills: readonly Standstill[]
  /** Media that was jumped over. */
  readonly skippedSec: number
  readonly height: number
  /** Errors of the page and of the media element; not those that a player tells by events of its own. */
  readonly errors: readonly string[]
}

/** More than four frames at 25 a second. */
const MIN_STANDSTILL_SEC = 0.2

/** Runs in a page before its own scripts; then `watched()` returns a `Watched`. */
export const WATCH = `
window.pageErrors = []
addEventListener('error', ({ message }) => pageErrors.push(message))
addEventListener('unhandledrejection', ({ reason }) => pageErrors.push(String(reason)))
addEventListener('DOMContentLoaded', () => {
  const video = document.querySelector('video')
  const standstills = []
  let firstMs
  let latest
  let skippedSec = 0
  const standstill = (nowMs) =>
    ({ atSec: (latest.nowMs - firstMs) / 1000, sec: (nowMs - latest.nowMs) / 1000 })
  const see = (nowMs, { mediaTime }) => {
    firstMs ??= nowMs
    if (latest !== undefined) {
      const still = standstill(nowMs)
      if (still.sec > ${MIN_STANDSTILL_SEC}) standstills.push(still)
      const ahead = mediaTime - latest.mediaTime
      if (ahead > ${MIN_STANDSTILL_SEC}) skippedSec += ahead
    }
    latest = { nowMs, mediaTime }
    video.requestVideoFrameCallback(see)
  }
  video.requestVideoFrameCallback(see)
  window.watched = () => {
    const lasting = latest === undefined ? [] : [standstill(performance.now())]
    return {
      startSec: firstMs === undefined ? null : firstMs / 1000,
      standstills: [...standstills, ...lasting.filter(({ sec }) => sec > ${MIN_STANDSTILL_SEC})],
      skippedSec,
      height: video.videoHeight,
      errors: video.error ? [...pageErrors, video.error.message] : pageErrors,
    }
  }
})
`
