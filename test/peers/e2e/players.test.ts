/**
 * Players that know nothing of parts, on the URL of a low-latency stream.
 */
import t, { type Test } from 'tap'
import { start } from '../../support/process.ts'
import { publishFinely } from '../support/fine-clip.ts'
import { startService } from '../../support/service.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'

const FRAMES_PER_SEC = 30
const PLAYED_SEC = 10

const PROGRESS = /^\w+= *\S+\n/gm
/** ffmpeg reads the init segment again after each reload of a playlist, of any server. */
const SECOND_INIT =
  /^(\[mov,.*Found duplicated MOOV Atom\. Skipped it| +Last message repeated.*)\n/gm

/** Starts a low-latency stream. @returns the URL of its multivariant playlist */
async function startStream(t: Test): Promise<string> {
  const { server } = await startService(t)
  const { srtUrl, masterUrl } = await server.startStream({ streamId: 'demo' })
  publishFinely(t, srtUrl)
  await until('parts', async () => {
    const text = await (await fetch(new URL('cmaf-video-1.m3u8', masterUrl))).text()
    return text.includes('#EXT-X-PART:')
  })
  return masterUrl
}

t.test('ffmpeg plays both formats of a low-latency stream', async (t) => {
  if (!requireTool(t, 'ffmpeg')) return
  const url = await startStream(t)
  const playFile = async (file: string) => {
    const program = start(t, 'ffmpeg', [
      ...['-v', 'warning', '-progress', 'pipe:1', '-re', '-i', new URL(file, url).href],
      ...['-t', String(PLAYED_SEC), '-c', 'copy', '-f', 'null', '-'],
    ])
    t.equal(await program.exit, 0)
    const output = program.output()
    const frames = Number([...output.matchAll(/^frame=(\d+)$/gm)].at(-1)?.[1])
    t.ok(Math.abs(frames - PLAYED_SEC * FRAMES_PER_SEC) <= 2, `${frames} frames of ${file}`)
    t.equal(output.replace(PROGRESS, '').replace(SECOND_INIT, ''), '', 'no warning')
  }
  await Promise.all(['master.m3u8', 'playlist.m3u8'].map(playFile))
})

t.test('GStreamer plays a low-latency stream', async (t) => {
  if (!requireTool(t, 'gst-launch-1.0')) return
  const url = await startStream(t)
  // Only one sink tells its frames, since the lines of two may run into each other.
  const sinks = [
    'video-sink=fakesink name=video sync=true silent=false',
    'audio-sink=fakesink sync=true',
  ]
  const program = start(t, 'gst-launch-1.0', ['-v', 'playbin3', `uri=${url}`, ...sinks])
  const readTimes = () => [
    ...program.output().matchAll(/GstFakeSink:video: last-message = chain.* pts: ([\d:.]+)/g),
  ]
  await until('all frames', () => readTimes().length >= PLAYED_SEC * FRAMES_PER_SEC, {
    everyMs: 500,
  })
  program.kill('SIGINT')
  await program.exit
  const times = readTimes()
  const ptsSec = times.map(([, time = '']) => {
    const [hours = 0, minutes = 0, seconds = 0] = time.split(':').map(Number)
    return 3600 * hours + 60 * minutes + seconds
  })
  const playedSec = ptsSec.at(-1)! - ptsSec[0]!
  t.ok(Math.abs(playedSec - ptsSec.length / FRAMES_PER_SEC) < 0.2, `in ${playedSec} s of media`)
  // The decoder gives some frames the time of a neighbor.
  const steps = ptsSec.slice(1).map((sec, index) => sec - ptsSec[index]!)
  t.ok(
    Math.max(...steps) < 3 / FRAMES_PER_SEC,
    `at most ${Math.max(...steps)} s from one to the next`,
  )
})
