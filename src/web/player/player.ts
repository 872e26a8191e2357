/**
 * Main module of the player page: polls the state of the stream, plays it while it is live, and otherwise says on
 * its last picture why nothing plays, since when, and what happens next.
 *
 * @module
 */
import type HlsModule from 'hls.js'
import { aheadSec, followLiveEdge } from './live-edge.ts'
import { NOTICES, SPINNER, timesOf, type Notice } from './notices.ts'
import { showPanel } from './panel.ts'
import { showTimeLine } from './time-line.ts'

/** Global of a script that index.html loads; missing if that failed. */
declare const Hls: typeof HlsModule

const WAITING_POLL_MS = 1000
const PLAYING_POLL_MS = 2000
/** Wait for a response, after which there is no connection. */
const MAX_RESPONSE_MS = 5000
const CLOCK_MS = 1000
/** Longest time that a stream with key frames each 2 s takes until it plays. */
const START_MS = 10_000
/** First step back; the time line has all others. */
const REWIND_MS = 10_000
/** Media left at which playback may end: tracks differ in duration. */
const END_SEC = 0.25
// With fewer segments the player would stall before the next one is listed (RFC 8216 section 6.3.3).
const START_SEGMENTS = 3
/** Memory for media that was played. */
const BACK_BUFFER_SEC = 30
/** Latency added after a stall, for as long as the page is open. */
const STALL_INCREASE_SEC = 0.25
/** With low latency, hls.js takes a playlist for late after three parts, and by default gives up after three of them. */
const LATE_RETRY = { maxNumRetry: 20, retryDelayMs: 0, maxRetryDelayMs: 0 }
const { playlist = '', rewind: olderPlaylist = '', state: stateUrl = '' } = document.body.dataset
/** Session of this page in Common Media Client Data (CTA-5004), by which the service counts viewers. */
const sessionId = Array.from(crypto.getRandomValues(new Uint32Array(4)), (word) =>
  word.toString(16),
).join('-')
const query = new URLSearchParams(location.search)
/** Distance from the newest media that the address asks for: `?latency=0.4`. By default the playlist decides. */
const wantedLatencySec = Number(query.get('latency'))
const video = document.querySelector('video')!
const badge = document.querySelector<HTMLElement>('#badge')!
const rewind = document.querySelector<HTMLElement>('#rewind')!
const unmute = document.querySelector<HTMLElement>('#unmute')!
const silent = document.querySelector<HTMLElement>('#silent')!
const icon = document.querySelector('#icon')!
const hasHlsJs = 'Hls' in window && Hls.isSupported()
const canPlay = hasHlsJs || video.canPlayType('application/vnd.apple.mpegurl') !== ''

/** Data of `/watch/{stream_id}/state`. */
interface State {
  readonly status: keyof typeof NOTICES
  readonly live: boolean
  /** Since when the stream has this status. */
  readonly since?: string
  /** When an interrupted stream ends, if no encoder comes. */
  readonly stops_at?: string
  /** Whether a slate plays, which is never live. */
  readonly slate?: true
  /** Whether the first parts can be played, before the stream is live. */
  readonly playable?: true
  /** Whether there is a playlist of the last hours. */
  readonly rewind?: true
}

/** Undefined before the first response. */
let current: State | undefined
/** Undefined without a player. */
let stopPlayer: (() => void) | undefined
/** Date of what is playing; undefined without hls.js. */
let playingDate: (() => Date | null) | undefined
/** Date from which to play what was live, in milliseconds since 1970; undefined: live. */
let rewindToMs: number | undefined
/** Whether the player has begun. */
let begun = false
/** Date of the first error since something played; undefined: none. */
let failedSince: string | undefined
/** Whether what plays has audio; a native player does not tell. */
let hasAudio = true
/** Browsers pause as well: at the end of the media so far, and at media that they cannot decode. */
let isPausedByViewer = false
/** Clock of the server minus ours. */
let clockOffsetMs = 0
let nextLook: number | undefined

async function look(): Promise<void> {
  const state = await fetchState()
  const isNew = state.status === 'READY' && current?.status !== 'READY'
  // After a while the service forgets a stream that has ended.
  if (state.status !== 'UNKNOWN' || current?.status !== 'STOPPED') current = state
  // A new stream has a new playlist.
  if (isNew || ['UNKNOWN', 'FORBIDDEN'].includes(state.status)) {
    endPlayer()
    rewindToMs = undefined
  }
  if (state.status === 'READY') video.removeAttribute('poster')
  if (!isOnAir(state)) failedSince = undefined
  else if (canPlay && stopPlayer === undefined) startPlayer()
  if (begun && video.paused && !isPausedByViewer && hasLaterMedia()) play()
  show()
  clearTimeout(nextLook)
  nextLook = setTimeout(() => void look(), plays() ? PLAYING_POLL_MS : WAITING_POLL_MS)
}

async function fetchState(): Promise<State> {
  try {
    const sentMs = Date.now()
    const response = await fetch(stateUrl, { signal: AbortSignal.timeout(MAX_RESPONSE_MS) })
    if (response.status === 404) return untold('UNKNOWN')
    if (response.status === 403) return untold('FORBIDDEN')
    const { data } = (await response.json()) as { data: State & { time: string } }
    clockOffsetMs = Date.parse(data.time) - (sentMs + Date.now()) / 2
    return data
  } catch {
    return untold('UNREACHABLE')
  }
}

/** State that the service does not tell: it began when the page first saw it. */
function untold(status: State['status']): State {
  if (current?.status === status) return current
  return { status, live: false, since: serverDate() }
}

function serverNowMs(): number {
  return Date.now() + clockOffsetMs
}

function serverDate(): string {
  return new Date(serverNowMs()).toISOString()
}

function isOnAir({ live, slate, playable }: State): boolean {
  return live || slate === true || playable === true
}

/** Whether there is media to play: that of an interrupted stream still plays to its end, where frames may be missing. */
function plays(): boolean {
  const hasNext = video.readyState > HTMLMediaElement.HAVE_CURRENT_DATA
  return begun && ((current && isOnAir(current)) || (hasNext && aheadSec(video) > END_SEC))
}

/** Whether there is media to go on with, maybe behind a gap, which hls.js skips. */
function hasLaterMedia(): boolean {
  const { buffered, currentTime } = video
  return buffered.length > 0 && buffered.end(buffered.length - 1) - currentTime > END_SEC
}

/** Shows the controls or, in their place, a notice. */
function show(): void {
  if (current === undefined) return
  const kind = noticeOf(current)
  const notice: Notice = NOTICES[kind]
  icon.querySelector('path')!.setAttribute('d', notice.icon)
  icon.classList.toggle('turns', notice.icon === SPINNER)
  write('#title', notice.title)
  write('#text', notice.text)
  const times = kind === 'FAILED' ? { since: failedSince } : current
  write('#time', timesOf(notice, times, serverNowMs()))
  document.body.dataset['notice'] = plays() ? '' : kind
  video.controls = plays()
  unmute.hidden = !(video.muted && hasAudio)
  silent.hidden = hasAudio
  badge.hidden = !(current.live && canPlay)
  rewind.hidden = !(plays() && current.rewind && hasHlsJs && rewindToMs === undefined)
}

function noticeOf({ status, live, since }: State): keyof typeof NOTICES {
  if (!canPlay) return 'UNSUPPORTED'
  if (live) return failedSince === undefined ? 'LIVE' : 'FAILED'
  const isLate = since !== undefined && serverNowMs() - Date.parse(since) > START_MS
  return status === 'STREAMING' && isLate ? 'LATE' : status
}

/** Screen readers announce what is written, so an equal text is not written again. */
function write(selector: string, text: string): void {
  const element = document.querySelector(selector)!
  if (element.textContent !== text) element.textContent = text
}

function startPlayer(): void {
  if (hasHlsJs) {
    const hls = new Hls({
      backBufferLength: BACK_BUFFER_SEC,
      liveSyncOnStallIncrease: STALL_INCREASE_SEC,
      playlistLoadPolicy: {
        default: { ...Hls.DefaultConfig.playlistLoadPolicy.default, timeoutRetry: LATE_RETRY },
      },
      // In headers, so that URLs stay the same for caches.
      cmcd: { sessionId, useHeaders: true, includeKeys: ['sid'] },
      ...(wantedLatencySec > 0 && { liveSyncDuration: wantedLatencySec }),
    })
    hls.on(Hls.Events.ERROR, (_event, { fatal, details }) => {
      if (fatal) giveUp(details)
    })
    hls.on(Hls.Events.BUFFER_CREATED, (_event, { tracks }) => {
      hasAudio = 'audio' in tracks || 'audiovideo' in tracks
    })
    hls.on(Hls.Events.LEVEL_LOADED, (_event, { details }) => {
      const isEnough = details.partTarget || details.fragments.length >= START_SEGMENTS
      if (!begun && (isEnough || !details.live)) play()
    })
    const hidePanel = showPanel(video, hls, serverNowMs)
    playingDate = () => hls.playingDate
    hls.loadSource(rewindToMs === undefined ? playlist : olderPlaylist)
    hls.attachMedia(video)
    const stopFollowing =
      rewindToMs === undefined
        ? followLiveEdge(video, badge, hls)
        : showTimeLine(video, hls, rewindToMs)
    stopPlayer = () => {
      stopFollowing()
      hidePanel()
      hls.destroy()
    }
  } else {
    const stopFollowing = followLiveEdge(video, badge, undefined)
    video.src = playlist
    stopPlayer = () => {
      stopFollowing()
      video.removeAttribute('src')
      video.load()
    }
    play()
  }
}

function play(): void {
  video.play().catch(({ name }: Error) => {
    // The controls have a button.
    if (name === 'NotAllowedError') begin()
  })
}

function begin(): void {
  begun = true
  isPausedByViewer = false
  failedSince = undefined
  show()
}

function endPlayer(): void {
  keepPicture()
  stopPlayer?.()
  stopPlayer = undefined
  begun = false
}

/** @param fromMs  date, in milliseconds since 1970; undefined: live */
function playFrom(fromMs: number | undefined): void {
  endPlayer()
  rewindToMs = fromMs
  badge.textContent = fromMs === undefined ? 'Live' : 'Go live'
  badge.classList.toggle('behind', fromMs !== undefined)
  startPlayer()
  show()
}

/** The last picture stays without a player, too. */
function keepPicture(): void {
  const { videoWidth: width, videoHeight: height, readyState } = video
  // While it seeks, a canvas gets nothing.
  if (width === 0 || readyState < HTMLMediaElement.HAVE_CURRENT_DATA) return
  const canvas = Object.assign(document.createElement('canvas'), { width, height })
  canvas.getContext('2d')?.drawImage(video, 0, 0)
  video.poster = canvas.toDataURL('image/jpeg')
}

/** The next poll starts a new player while the stream is live. */
function giveUp(details: string): void {
  console.warn(`The player has ended: ${details}`)
  endPlayer()
  failedSince ??= serverDate()
  show()
}

video.addEventListener('playing', begin)
video.addEventListener('pause', () => {
  isPausedByViewer = video.error === null && aheadSec(video) > END_SEC
})
video.addEventListener('volumechange', show)
video.addEventListener('waiting', () => {
  keepPicture()
  void look()
})
video.addEventListener('ended', () => {
  endPlayer()
  void look()
})
video.addEventListener('resize', () => {
  const { videoWidth, videoHeight } = video
  if (videoWidth > 0) document.body.style.setProperty('--ratio', `${videoWidth / videoHeight}`)
})
video.addEventListener('error', () => {
  // hls.js goes on with another source.
  keepPicture()
  // Without a player the error only means that the source was removed.
  if (stopPlayer !== undefined && !hasHlsJs) giveUp(String(video.error?.message))
})
rewind.addEventListener('click', () => {
  playFrom((playingDate?.()?.getTime() ?? serverNowMs()) - REWIND_MS)
})
badge.addEventListener('click', () => {
  if (rewindToMs !== undefined) playFrom(undefined)
})
unmute.addEventListener('click', () => {
  video.muted = false
  play()
})

setInterval(show, CLOCK_MS)
void look()
