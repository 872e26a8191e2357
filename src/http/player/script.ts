/**
 * Browser script of the player page: polls the state of the stream, plays the stream while it is live, and otherwise
 * shows why there is nothing to play. The script is a string, so that `tsc` alone builds it into `dist`.
 *
 * @module
 */

export const playerScript = `'use strict'

const WAITING_POLL_MS = 1000
const PLAYING_POLL_MS = 2000
// With fewer segments the player would stall before the next one is listed (RFC 8216 section 6.3.3).
const START_SEGMENTS = 3
const { playlist, state } = document.body.dataset
const [video, notice, badge, unmute] = ['video', '#notice', '#badge', '#unmute'].map((selector) =>
  document.querySelector(selector),
)

const NOTICES = {
  READY: 'Waiting for the encoder to connect.',
  STREAMING: 'The encoder is connected. Waiting for video.',
  INTERRUPTED: 'The encoder is gone. Waiting for it to come back.',
  STOPPED: 'The stream is over.',
  UNKNOWN: 'There is no stream of this name. It plays here as soon as it starts.',
  UNREACHABLE: 'The server does not answer. Trying again.',
}

/** Undefined while nothing plays. */
let stopPlayer
/** Whether playback has begun. */
let shown = false
/** Error of the last player, until one plays. */
let failure = ''

async function look() {
  const { status, live } = await fetchState()
  // A new stream has a new playlist.
  if (status === 'READY' || status === 'UNKNOWN') endPlayer()
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
    const reply = await fetch(state)
    return reply.status === 404 ? { status: 'UNKNOWN', live: false } : (await reply.json()).data
  } catch {
    return { status: 'UNREACHABLE', live: false }
  }
}

function startPlayer() {
  if (window.Hls?.isSupported()) {
    const hls = new Hls()
    hls.on(Hls.Events.ERROR, (_event, { fatal, details }) => {
      if (fatal) giveUp(details)
    })
    hls.on(Hls.Events.LEVEL_LOADED, (_event, { details }) => {
      if (!shown && (details.fragments.length >= START_SEGMENTS || !details.live)) play()
    })
    hls.loadSource(playlist)
    hls.attachMedia(video)
    stopPlayer = () => hls.destroy()
  } else if (video.canPlayType('application/vnd.apple.mpegurl')) {
    video.src = playlist
    stopPlayer = () => {
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
