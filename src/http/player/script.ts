/**
 * The script of the player page, for the browser: asks for the stream's state, plays while there is something to play,
 * and says in plain words what it waits for otherwise. It stands here as text so that `tsc` alone carries it along.
 *
 * @module
 */

export const playerScript = `'use strict'

const WAITING_POLL_MS = 1000
const PLAYING_POLL_MS = 2000
// With fewer segments in hand the player would run dry before the next one is listed (RFC 8216 section 6.3.3).
const START_SEGMENTS = 3
const { playlist, state } = document.body.dataset
const [video, notice, badge, unmute] = ['video', '#notice', '#badge', '#unmute'].map((selector) =>
  document.querySelector(selector),
)

const NOTICES = {
  READY: 'Waiting for the encoder to connect.',
  STREAMING: 'The encoder is connected. Waiting for the first pictures.',
  INTERRUPTED: 'The encoder is gone. Waiting for it to come back.',
  STOPPED: 'The stream is over.',
  UNKNOWN: 'There is no stream of this name. It plays here as soon as it starts.',
  UNREACHABLE: 'The server does not answer. Trying again.',
}

/** Undefined while nothing plays. */
let stopPlayer
/** Whether it has shown a picture. */
let shown = false
/** Why the last player gave up, until one plays. */
let failure = ''

async function look() {
  const { status, live } = await fetchState()
  // The playlist of a stream that has just begun is another one than before.
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

/** The next look starts anew if there is something to play. */
function giveUp(details) {
  endPlayer()
  failure = 'Playback failed (' + details + '). Trying again.'
}

function offerSound() {
  unmute.hidden = !video.muted
}

video.addEventListener('playing', () => {
  shown = true
  notice.hidden = true
  failure = ''
  offerSound()
})
video.addEventListener('volumechange', offerSound)
video.addEventListener('ended', endPlayer)
video.addEventListener('error', () => {
  // Without a player the element only complains that its source was taken away.
  if (stopPlayer !== undefined && window.Hls?.isSupported() !== true) giveUp(video.error?.message)
})
unmute.addEventListener('click', () => {
  video.muted = false
})

look()
`
