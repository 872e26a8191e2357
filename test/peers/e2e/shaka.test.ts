/**
 * Shaka Player stays on its page, as hls.js does in discontinuities.test.ts, when one encoder replaces a killed one.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { openBrowser } from '../support/browser.ts'
import { checkPlaylists } from '../../support/check-playlists.ts'
import { FRAMES_PER_SEC, startEncoder } from '../support/live-encoder.ts'
import { startService } from '../../support/service.ts'
import { openShaka, shakaState } from '../support/shaka-player.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'
import { record, segmentUris } from '../../support/viewer.ts'

/** Two segments. */
const AWAY_SEC = 4

/** Setting of docs/troubleshooting.md for absences of more than a segment. */
const CONFIG = { manifest: { availabilityWindowOverride: 3600 } }

/** Playback after the discontinuity that is watched: five segments, however long that takes. */
const PLAYED_SEC = 10

const MODES = [
  { mode: 'parts, with the same frame size', lowLatency: true, size: '320x180', height: 180 },
  {
    mode: 'whole segments, with another frame size',
    lowLatency: false,
    size: '640x360',
    height: 360,
  },
]

/** File names of the segments and parts after the first discontinuity; undefined if there are none. */
function filesAfterDiscontinuity(playlist: string): string[] | undefined {
  const [, after = ''] = playlist.split('#EXT-X-DISCONTINUITY\n')
  const parts = [...after.matchAll(/#EXT-X-PART:.*URI="([^"]+)"/g)].map(([, uri]) => uri!)
  const files = [...segmentUris(after), ...parts]
  return files.length > 0 ? files : undefined
}

t.jobs = MODES.length

for (const { mode, lowLatency, size, height } of MODES) {
  t.test(
    `Shaka plays on in ${mode}, when the encoder is killed and another connects`,
    async (t) => {
      if (!requireTool(t, 'ffmpeg', 'chromium')) return
      const { server } = await startService(t, { hls: { lowLatency } })
      const browser = await openBrowser(t)
      const context = await browser.newContext()

      const streamId = size
      const { srtUrl, masterUrl } = await server.startStream({ streamId })
      const playlistUrl = masterUrl.replace('master', 'cmaf-video-1')
      const stop = new AbortController()
      t.teardown(() => stop.abort())
      const viewer = record(playlistUrl, stop.signal)

      const first = startEncoder(t, srtUrl)
      await until('live', () => server.status(streamId).live)
      const page = await openShaka(context, masterUrl, CONFIG)
      const playing = () => shakaState(page).then(({ currentTimeSec }) => currentTimeSec > 6)
      await until('Shaka plays', playing, { everyMs: 100 })
      first.kill('SIGKILL')
      await first.exit
      await sleep(AWAY_SEC * 1000)
      startEncoder(t, srtUrl, size)

      const behind = await until('media after the discontinuity', async () =>
        filesAfterDiscontinuity(await (await fetch(playlistUrl)).text()),
      )
      const atSwitch = await until('Shaka fetches it', async () => {
        const state = await shakaState(page)
        return behind.some((file) => state.segments.includes(file)) && state
      })
      const later = await until(
        'Shaka plays on',
        async () => {
          const state = await shakaState(page)
          return state.currentTimeSec >= atSwitch.bufferedSec + PLAYED_SEC && state
        },
        { everyMs: 100 },
      ).catch(async (error: unknown) => {
        t.fail(`${String(error)}: ${JSON.stringify(await shakaState(page))}`)
        return shakaState(page)
      })
      t.strictSame(later.errors, [])
      t.equal(later.height, height)
      const stillSec = later.stoodStillSec - atSwitch.stoodStillSec
      t.comment(
        `stood still ${stillSec.toFixed(1)} s, ${atSwitch.stoodStillSec.toFixed(1)} s before`,
      )
      t.ok(later.framesDecoded > atSwitch.framesDecoded + FRAMES_PER_SEC)
      await page.close()
      await server.stopStream(streamId)
      const { playlists, failures } = await viewer
      t.strictSame(failures, [], 'all that was listed could be fetched')
      t.strictSame(checkPlaylists(playlists), [], 'sequence numbers only went up, by the rules')
    },
  )
}
