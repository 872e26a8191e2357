/**
 * hls.js plays across every change in a live stream: on the same page, without a fatal error.
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { publish } from '../../../src/cli/publisher/publisher.ts'
import { openBrowser } from '../support/browser.ts'
import { checkPlaylists } from '../../support/check-playlists.ts'
import { openPlayer, untilState } from '../support/hls-player.ts'
import { startService } from '../../support/service.ts'
import { splice } from '../support/splice.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'
import { record } from '../../support/viewer.ts'

const SECONDS = 8
/** Duration of the second clip, which ends early once it has been played: a busy browser decodes few of its frames. */
const MAX_SECONDS_AFTER = 30
const FRAMES_PER_SEC = 30

/** Playing time behind a discontinuity that shows that the player has passed it. */
const PLAYED_BEHIND_SEC = 3
/** Frames decoded behind it: more than the key frames. */
const DECODED_BEHIND = 60

interface ClipOptions {
  /** First timestamp. */
  readonly fromSec: number
  readonly size?: string
  readonly profile?: string
  readonly sampleRate?: number
  /** Video only. */
  readonly mute?: true
}

interface Case {
  readonly name: string
  readonly clips: readonly [ClipOptions, ClipOptions]
  /** Pause of the encoder between the clips, in seconds; default: it continues with the second without reconnecting. */
  readonly awaySec?: number
  readonly sizeAfter: { width: number; height: number }
  /** There is no audio behind the discontinuity. */
  readonly silent?: true
  /** Played in transport stream as well: timeline, tracks and frame size change in one of these each. */
  readonly inTransportStream?: true
}

const FIRST: ClipOptions = { fromSec: 0 }
const SMALL = { width: 320, height: 180 }
const LARGE = { width: 640, height: 360 }

const CASES: readonly Case[] = [
  {
    name: 'encoder back after 2 s',
    clips: [FIRST, FIRST],
    awaySec: 2,
    sizeAfter: SMALL,
    inTransportStream: true,
  },
  {
    name: 'another resolution',
    clips: [FIRST, { fromSec: SECONDS, size: '640x360' }],
    sizeAfter: LARGE,
    inTransportStream: true,
  },
  {
    name: 'timestamps 1000 s ahead',
    clips: [FIRST, { fromSec: 1000 + SECONDS }],
    sizeAfter: SMALL,
  },
  {
    name: 'timestamps 1000 s back',
    clips: [{ fromSec: 1000 }, { fromSec: SECONDS }],
    sizeAfter: SMALL,
  },
  {
    name: 'another H.264 profile and AAC sample rate',
    clips: [FIRST, { fromSec: SECONDS, profile: 'baseline', sampleRate: 44_100 }],
    sizeAfter: SMALL,
  },
  {
    name: 'audio that ends',
    clips: [FIRST, { fromSec: SECONDS, mute: true }],
    sizeAfter: SMALL,
  },
  {
    name: 'audio that begins later',
    clips: [
      { fromSec: 0, mute: true },
      { fromSec: SECONDS, sampleRate: 48_000 },
    ],
    sizeAfter: SMALL,
    silent: true,
    inTransportStream: true,
  },
]

/** Video and audio, a key frame each second. */
async function encode(folder: string, options: ClipOptions, seconds: number): Promise<Buffer> {
  const { fromSec, size = '320x180', profile = 'high', sampleRate = 48_000, mute } = options
  const file = join(folder, `${[seconds, ...Object.values(options)].join('-')}.mpegts`)
  const source = [
    ...['-f', 'lavfi', '-i', `testsrc2=size=${size}:rate=${FRAMES_PER_SEC}`],
    ...['-f', 'lavfi', '-i', `sine=sample_rate=${sampleRate}`],
  ]
  const codec = [
    ...['-c:v', 'libx264', '-preset', 'veryfast', '-profile:v', profile, '-pix_fmt', 'yuv420p'],
    ...['-g', String(FRAMES_PER_SEC), '-sc_threshold', '0', '-t', String(seconds)],
    ...(mute ? ['-an'] : ['-c:a', 'aac']),
  ]
  const target = ['-output_ts_offset', String(fromSec), '-f', 'mpegts', file]
  await promisify(execFile)('ffmpeg', ['-v', 'error', '-y', ...source, ...codec, ...target])
  return readFileSync(file)
}

const [clipsBefore, clipsAfter] = [new Map<ClipOptions, Buffer>(), new Map<ClipOptions, Buffer>()]

t.test('hls.js plays across every discontinuity, in parts of CMAF', (t) =>
  playAcross(t, { played: 'master.m3u8', watched: 'cmaf-video-1.m3u8' }, CASES),
)

t.test('hls.js plays across discontinuities, in whole segments of transport stream', (t) =>
  playAcross(
    t,
    { played: 'playlist.m3u8', watched: 'playlist.m3u8' },
    CASES.filter(({ inTransportStream }) => inTransportStream),
  ),
)

interface Playlists {
  readonly played: string
  /** Media playlist whose versions are checked. */
  readonly watched: string
}

async function playAcross(
  t: Test,
  { played, watched }: Playlists,
  cases: readonly Case[],
): Promise<void> {
  if (!requireTool(t, 'ffmpeg', 'chromium')) return
  const folder = t.testdir()
  for (const { clips } of cases) {
    const [before, after] = clips
    if (!clipsBefore.has(before)) clipsBefore.set(before, await encode(folder, before, SECONDS))
    if (clipsAfter.has(after)) continue
    clipsAfter.set(after, await encode(folder, after, MAX_SECONDS_AFTER))
  }
  // A window that holds both clips: a player that is late finds all of them, and counts discontinuities from the first one.
  const { server } = await startService(t, { hls: { segmentSec: 1, playlistSegments: 60 } })
  const browser = await openBrowser(t)
  const context = await browser.newContext()
  // More at once, and decoding takes the time that the service needs.
  t.jobs = 4

  const plays = cases.map(({ name, clips: [before, after], awaySec, sizeAfter, silent }, index) =>
    t.test(name, async (t) => {
      const streamId = `discontinuity-${index}`
      const { srtUrl, playlistUrl } = await server.startStream({ streamId })
      const urlOf = (file: string) => new URL(file, playlistUrl).href
      const stop = new AbortController()
      t.teardown(() => stop.abort())
      const viewer = record(urlOf(watched), stop.signal)
      const [first, second] = [clipsBefore.get(before)!, clipsAfter.get(after)!]
      const sending = new AbortController()
      t.teardown(() => sending.abort())
      // On a busy machine a call may find no time to be answered, and a packet more than 120 ms on its way is dropped.
      const url = `${srtUrl}&latency=2000`
      const send = (file: Buffer) => publish({ file, url, retry: true, signal: sending.signal })
      const sendBoth = () =>
        awaySec === undefined
          ? send(splice(first, second))
          : send(first)
              .then(() => sleep(awaySec * 1000))
              .then(() => send(second))
      let sent: Promise<unknown> | undefined
      // A busy machine may take longer to open a page than the first clip lasts.
      const page = await openPlayer(context, urlOf(played), () => {
        sent = sendBoth()
        return until('a playlist to start with', () => server.status(streamId).live)
      })
      const atDiscontinuity = await untilState(
        page,
        'the discontinuity is played',
        ({ shown }) => shown !== null && shown.discontinuities > 0,
      )
      // A busy browser decodes fewer frames than it plays.
      const later = await untilState(page, 'it plays on', (state) => {
        const sec = state.currentTimeSec - atDiscontinuity.currentTimeSec
        const frames = state.framesDecoded - atDiscontinuity.framesDecoded
        return sec >= PLAYED_BEHIND_SEC && frames >= DECODED_BEHIND
      })
      t.match(later, { ...sizeAfter, mediaError: null })
      t.strictSame(later.fatalErrors, [])
      if (!silent) t.ok(later.audioDecodedBytes > atDiscontinuity.audioDecodedBytes, 'and audio')
      await page.close()
      sending.abort()
      await sent
      await server.stopStream(streamId)
      const { playlists, failures } = await viewer
      t.strictSame(failures, [], 'all that was listed could be fetched')
      t.strictSame(checkPlaylists(playlists), [], 'sequence numbers only went up, by the rules')
    }),
  )
  await Promise.all(plays)
}
