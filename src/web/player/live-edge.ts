/**
 * Keeps playback near the newest media after a pause, after stalls, and in a tab that returns from the background. A viewer
 * who seeks back stays there until the badge is clicked.
 *
 * @module
 */
import type Hls from 'hls.js'

/** Speed that is hardly heard. */
const CATCH_UP_RATE = 1.1
/** A native player does not tell in which unit media is published. */
const NATIVE_STEP_SEC = 2
/** Smallest seek of a viewer; players correct their position by less. */
const SEEK_BACK_SEC = 0.5

/** Duration of the media after the playback position, without a gap. */
export function aheadSec({ buffered, currentTime }: HTMLVideoElement): number {
  for (let index = 0; index < buffered.length; index++) {
    if (buffered.start(index) <= currentTime && currentTime <= buffered.end(index)) {
      return buffered.end(index) - currentTime
    }
  }
  return 0
}

/**
 * @param hls  undefined if the browser plays HLS natively
 * @returns function that ends it
 */
export function followLiveEdge(
  video: HTMLVideoElement,
  badge: HTMLElement,
  hls: Hls | undefined,
): () => void {
  const listening = new AbortController()
  let follows = true
  let wasPaused = false
  /** At the start and after a stall, when a jump is no surprise. */
  let isArriving = true
  let positionSec = 0

  /** Position of a viewer who has just arrived; undefined when the stream is over. */
  function livePosition(): number | undefined {
    if (hls) return hls.latestLevelDetails?.live ? (hls.liveSyncPosition ?? undefined) : undefined
    const { seekable, duration } = video
    return duration === Infinity && seekable.length > 0
      ? seekable.end(seekable.length - 1)
      : undefined
  }

  const behindSec = () => (livePosition() ?? video.currentTime) - video.currentTime

  /** Duration of a part, or else of a segment: a smaller distance from the live position is chance. */
  function stepSec(): number {
    const { partTarget, targetduration } = hls?.latestLevelDetails ?? {}
    return partTarget || targetduration || NATIVE_STEP_SEC
  }

  /** Distance at which a viewer sees that this is not live. */
  const maxBehindSec = () => 2 * (hls?.latestLevelDetails?.targetduration ?? NATIVE_STEP_SEC)

  function goLive(): void {
    follows = true
    const position = livePosition()
    if (position !== undefined && behindSec() > stepSec()) video.currentTime = position
  }

  /** Whether playback can go on after the next seconds. */
  const isBuffered = (seconds: number) =>
    aheadSec(video) - seconds > (hls?.targetLatency ?? Infinity) / 2

  /** Speeds up or seeks. hls.js itself speeds up only with over 1 s of media ahead, more than low latency has. */
  function catchUp(): void {
    const behind = behindSec()
    const isFast = video.playbackRate === CATCH_UP_RATE
    const isBehind = behind > stepSec() / (isFast ? 4 : 1)
    // Any other rate is the viewer's choice.
    if (isFast || video.playbackRate === 1) {
      video.playbackRate = follows && isBehind && isBuffered(0) ? CATCH_UP_RATE : 1
    }
    const jumps = behind > maxBehindSec() || (isArriving && isBuffered(behind))
    if (hls && follows && jumps) goLive()
    isArriving &&= behind > stepSec() && !jumps
  }

  function showDistance(): void {
    const isLive = !video.paused && behindSec() <= maxBehindSec()
    badge.textContent = isLive ? 'Live' : 'Go live'
    badge.classList.toggle('behind', !isLive)
  }

  const on = (target: EventTarget, types: readonly string[], act: () => void) => {
    for (const type of types) target.addEventListener(type, act, { signal: listening.signal })
  }
  on(video, ['timeupdate'], () => {
    // A seek sets the position before its own event, which compares both.
    if (video.seeking) return
    if (!video.paused) catchUp()
    positionSec = video.currentTime
  })
  on(video, ['seeking'], () => {
    if (behindSec() <= stepSec()) follows = true
    else if (video.currentTime < positionSec - SEEK_BACK_SEC) follows = false
    positionSec = video.currentTime
  })
  on(video, ['pause'], () => {
    wasPaused = true
  })
  on(video, ['play'], () => {
    if (wasPaused && follows) goLive()
  })
  on(video, ['waiting'], () => {
    if (!video.seeking) isArriving = true
  })
  on(video, ['timeupdate', 'pause', 'playing', 'seeked'], showDistance)
  on(document, ['visibilitychange'], () => {
    if (!document.hidden && !video.paused && follows) goLive()
  })
  on(badge, ['click'], () => {
    goLive()
    void video.play()
  })
  return () => listening.abort()
}
