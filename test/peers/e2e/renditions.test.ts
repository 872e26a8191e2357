/**
 * One ffmpeg sends three frame sizes and two languages: hls.js lists them, and plays on across a switch.
 */
import { execFile } from 'node:child_process'
import { appendFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import type { EndpointName } from '../../../src/client/index.ts'
import { openBrowser } from '../support/browser.ts'
import { checkPlaylists } from '../../support/check-playlists.ts'
import { openPlayer, playerState, switchAudioTrack, switchLevel } from '../support/hls-player.ts'
import { start } from '../../support/process.ts'
import { callApi } from '../../support/service.ts'
import { createSecrets, startNodes, type NodeProcess } from '../support/node-processes.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'
import { record } from '../../support/viewer.ts'

const HEIGHTS = [180, 270, 360]
const SOURCE = [
  ...['-f', 'lavfi', '-re', '-i', 'testsrc2=size=640x360:rate=30'],
  ...['-f', 'lavfi', '-re', '-i', 'sine=frequency=440:sample_rate=48000'],
  ...['-f', 'lavfi', '-re', '-i', 'sine=frequency=880:sample_rate=48000'],
]
const SIZES = [
  ...['-filter_complex', '[0:v]split=3[a][b][c];[b]scale=480:270[b];[c]scale=320:180[c]'],
  ...['-map', '[a]', '-map', '[b]', '-map', '[c]', '-map', '1:a', '-map', '2:a'],
]
const CODECS = [
  ...['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '30'],
  ...['-sc_threshold', '0', '-b:v:0', '1500k', '-b:v:1', '700k', '-b:v:2', '300k'],
  ...['-c:a', 'aac', '-metadata:s:a:0', 'language=eng', '-metadata:s:a:1', 'language=fra'],
]

/** Formats of the stream, and what hls.js takes from each. */
const FORMATS = [
  {
    multivariant: 'master.m3u8',
    videos: ['cmaf-video-1.m3u8', 'cmaf-video-2.m3u8', 'cmaf-video-3.m3u8'],
    audios: ['cmaf-audio-1.m3u8', 'cmaf-audio-2.m3u8'],
    french: 'cmaf-audio-2.m3u8',
    english: 'cmaf-audio-1.m3u8',
  },
  {
    multivariant: 'ts.m3u8',
    videos: ['playlist.m3u8', 'video-2.m3u8', 'video-3.m3u8'],
    audios: ['audio-2.m3u8'],
    french: 'audio-2.m3u8',
    // In the variant that plays last.
    english: 'video-2.m3u8',
  },
]

t.test('publishes three sizes and two languages of one encoder in both formats', async (t) => {
  if (!requireTool(t, 'ffmpeg', 'ffprobe', 'chromium')) return
  // A process of its own: the viewers and the browser's driver would take turns with the encoder's packets.
  const env = { ...createSecrets(), HLS_SEGMENT_SEC: '1' }
  const [node] = (await startNodes(t, 'serve', env, 1)) as [NodeProcess]
  const call = (name: EndpointName) =>
    callApi(node.url, name, { stream_id: 'studio' }, env.HMAC_SECRET)
  const { srt_url: srtUrl, master_url: masterUrl } = (await call('start-stream')).body.data
  const urlOf = (file: string) => new URL(file, masterUrl).href
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const files = FORMATS.flatMap(({ videos, audios }) => [...videos, ...audios])
  const viewers = files.map((file) => record(urlOf(file), stop.signal))
  const encoder = start(t, 'ffmpeg', [
    ...['-v', 'error', ...SOURCE, ...SIZES, ...CODECS],
    ...['-f', 'mpegts', srtUrl],
  ])
  await until('a playlist to start with', async () => (await call('status')).body.data['live'])

  const browser = await openBrowser(t)
  for (const { multivariant, french, english } of FORMATS) {
    const page = await openPlayer(await browser.newContext(), urlOf(multivariant))
    const state = () => playerState(page)
    await until('the video plays', async () => (await state()).framesDecoded > 15)
    const { levels, audioTracks } = await state()
    t.strictSame(levels, HEIGHTS)
    t.strictSame(audioTracks, ['English', 'French'])

    for (const index of [2, 0, 1]) {
      await switchLevel(page, index)
      await until(`${HEIGHTS[index]} lines`, async () => (await state()).height === HEIGHTS[index])
      const { currentTimeSec } = await state()
      await until('it plays on', async () => (await state()).currentTimeSec > currentTimeSec + 1)
    }
    for (const [index, from] of [
      [1, french],
      [0, english],
    ] as const) {
      await switchAudioTrack(page, index)
      await until(`audio from ${from}`, async () => (await state()).audioFrom === from)
      const { currentTimeSec, audioDecodedBytes } = await state()
      await until('it plays on', async () => (await state()).currentTimeSec > currentTimeSec + 3)
      t.ok((await state()).audioDecodedBytes > audioDecodedBytes, 'with audio')
    }
    const { fatalErrors, mediaError } = await state()
    t.strictSame(fatalErrors, [])
    t.equal(mediaError, null)
    await page.close()
  }

  encoder.kill('SIGINT')
  await encoder.exit
  await call('stop-stream')
  const recordings = new Map(
    (await Promise.all(viewers)).map((recording, index) => [files[index]!, recording]),
  )
  for (const [file, { playlists, failures }] of recordings) {
    t.strictSame(failures, [], 'all that was listed could be fetched')
    // The encoder may end before it has sent audio for its last frames.
    t.notMatch(
      playlists.at(-1),
      /#EXT-X-GAP\n(.*\n)*.*\.(ts|m4s)\n(.*\n)*.*\.(ts|m4s)\n/,
      'and is there',
    )
    t.strictSame(checkPlaylists(playlists, file), [], `${file} keeps the rules`)
  }
  const folder = t.testdir()
  for (const { videos } of FORMATS) {
    const [main, ...others] = await Promise.all(
      videos.map(async (file) => {
        const { playlists, segments } = recordings.get(file)!
        const [, map] = /#EXT-X-MAP:URI="([^"]+)"/.exec(playlists[0]!) ?? []
        const init =
          map === undefined ? '' : new DataView(await (await fetch(urlOf(map))).arrayBuffer())
        return { segments, init }
      }),
    )
    for (const uri of [...main!.segments.keys()].slice(0, 8)) {
      const number = uri.slice(uri.lastIndexOf('-'))
      const starts = await Promise.all(
        [main!, ...others].map(async ({ segments, init }, index) => {
          const name = [...segments.keys()].find((each) => each.endsWith(number))!
          const file = join(folder, `${index}${number}`)
          await writeFile(file, init)
          await appendFile(file, segments.get(name)!)
          return firstPts(file)
        }),
      )
      const [start] = starts
      t.ok(Number.isSafeInteger(start))
      t.strictSame(starts, [start, start, start], `${number} starts at one time`)
    }
  }
})

/** @returns presentation time of the first video frame in the file, in 90 kHz */
async function firstPts(file: string): Promise<number> {
  const { stdout } = await promisify(execFile)('ffprobe', [
    ...['-v', 'error', '-select_streams', 'v', '-show_entries', 'packet=pts'],
    ...['-read_intervals', '%+#1', '-of', 'csv=p=0', file],
  ])
  return Number.parseInt(stdout, 10)
}
