/**
 * Main browser module of the player page: polls the state of the stream, plays the stream while it is live, and otherwise
 * shows why there is nothing to play. Modules of the page are strings, so that `tsc` alone builds them into `dist`.
 *
 * @module
 */

export const playerScript = `
import { followLiveEdge } from './live-edge.js'
import { showPanel } from './panel.js'

const WAITING_POLL_MS = 1000
const PLAYING_POLL_MS = 2000
// With fewer segments the player would stall before the next one is listed (RFC 8216 section 6.3.3).
const START_SEGMENTS = 3
/** Memory for media that was played. */
const BACK_BUFFER_SEC = 30
/** Latency added after a stall, for as long as the page is open. */
const STALL_INCREASE_SEC = 0.25
const { playlist, state } = document.body.dataset
/** Session of this page in Common Media Client Data (CTA-5004), by which the service counts viewers. */
const sessionId = Array.from(crypto.getRandomValues(new Uint32Array(4)), (word) => word.toString(16))
  .join('-')
/** Distance from the newest media that the address asks for: \`?latency=0.4\`. By default the playlist decides. */
const wantedLatencySec = Number(new URLSearchParams(location.search).get('latency'))
const [video, notice, badge, unmute] = ['video', '#notice', '#badge', '#unmute'].map((selector) =>
  document.querySelector(selector),
)

const NOTICES = {
  READY: 'Waiting for the encoder to connect.',
  STREAMING: 'The encoder is connected. Waiting for video.',
  INTERRUPTED: 'The encoder is gone. Waiting for it to come back.',
  STOPPED: 'The stream is over.',
  UNKNOWN: 'There is no stream of this name. It plays here as soon as it starts.',
  FORBIDDEN: 'This address does not give access to the stream, or no longer. Ask for a new one.',
  UNREACHABLE: 'The server does not answer. Trying again.',
}

/** Undefined while nothing plays. */
let stopPlayer
/** Whether playback has begun. */
let shown = false
/** Error of the last player, until one plays. */
let failure = ''
/** Clock of the server minus ours. */
let clockOffsetMs = 0

async function look() {
  const { status, live } = await fetchState()
  // A new stream has a new playlist.
  if (['READY', 'UNKNOWN', 'FORBIDDEN'].includes(status)) endPlayer()
  if (live && stopPlayer === undefined) startPlayer()
  badge.hidden = !live
  notice.textContent = live ? failure || NOTICES.STREAMING : NOTICES[status]
  notice.hidden = live && shown
  video.controls = stopPlayer !== undefined
  document.body.classList.toggle('playing', video.controls)
  setTimeout(look, stopPlayer === undefined ? WAITING_POLL_MS : PLAYING_POLL_MS)
}

async function fetchState() {
  try {
    const sentMs = Date.now()
    const reply = await fetch(state)
    if (reply.status === 404) return { status: 'UNKNOWN', live: false }
    if (reply.status === 403) return { status: 'FORBIDDEN', live: false }
    const { data } = await reply.json()
    clockOffsetMs = Date.parse(data.time) - (sentMs + Date.now()) / 2
    return data
  } catch {
    return { status: 'UNREACHABLE', live: false }
  }
}

function startPlayer() {
  if (window.Hls?.isSupported()) {
    const hls = new Hls({
      backBufferLength: BACK_BUFFER_SEC,
      liveSyncOnStallIncrease: STALL_INCREASE_SEC,
      // In headers, so that URLs stay the same for caches.
      cmcd: { sessionId, useHeaders: true, includeKeys: ['sid'] },
      ...(wantedLatencySec > 0 && { liveSyncDuration: wantedLatencySec }),
    })
    hls.on(Hls.Events.ERROR, (_event, { fatal, details }) => {
      if (fatal) giveUp(details)
    })
    hls.on(Hls.Events.LEVEL_LOADED, (_event, { details }) => {
      const isEnough = details.partTarget || details.fragments.length >= START_SEGMENTS
      if (!shown && (isEnough || !details.live)) play()
    })
    const hidePanel = showPanel(video, hls, () => Date.now() + clockOffsetMs)
    const stopFollowing = followLiveEdge(video, badge, hls)
    hls.loadSource(playlist)
    hls.attachMedia(video)
    stopPlayer = () => {
      stopFollowing()
      hidePanel()
      hls.destroy()
    }
  } else if (video.canPlayType('application/vnd.apple.mpegurl')) {
    const stopFollowing = followLiveEdge(video, badge)
    video.src = playlist
    stopPlayer = () => {
      stopFollowing()
      video.removeAttribute('src')
      video.load()
    }
    play()
  } else {
    failure = 'This browser cannot play HLS.'
  }
}

function play() {
  video.play().catch(({ name }) => {
    if (name === 'NotAllowedError') failure = 'Press play to watch.'
  })
}

function endPlayer() {
  stopPlayer?.()
  stopPlayer = undefined
  shown = false
  unmute.hidden = true
}

/** The next poll starts a new player while the stream is live. */
function giveUp(details) {
  endPlayer()
  failure = 'Playback failed (' + details + '). Trying again.'
}

function offerUnmute() {
  unmute.hidden = !video.muted
}

video.addEventListener('playing', () => {
  shown = true
  notice.hidden = true
  failure = ''
  offerUnmute()
})
video.addEventListener('volumechange', offerUnmute)
video.addEventListener('ended', endPlayer)
video.addEventListener('error', () => {
  // Without a player the error only means that the source was removed.
  if (stopPlayer !== undefined && window.Hls?.isSupported() !== true) giveUp(video.error?.message)
})
unmute.addEventListener('click', () => {
  video.muted = false
})

look()
`
