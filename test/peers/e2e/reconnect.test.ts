/**
 * The encoder dies without SHUTDOWN and reconnects: viewers continue on the same URL.
 */
import t from 'tap'
import { openPage, playback } from '../support/browser.ts'
import { checkPlaylists } from '../../support/check-playlists.ts'
import { startEncoder } from '../support/live-encoder.ts'
import { startService } from '../../support/service.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'
import { record } from '../../support/viewer.ts'

t.test('an encoder resumes its stream 2 s and 20 s after it was killed', async (t) => {
  if (!requireTool(t, 'ffmpeg', 'chromium')) return
  const { server, url } = await startService(t)
  const { srtUrl, masterUrl } = await server.startStream({ streamId: 'studio' })
  const stopViewing = new AbortController()
  t.teardown(() => stopViewing.abort())
  const viewer = record(masterUrl.replace('master', 'cmaf-video-1'), stopViewing.signal)

  let encoder = startEncoder(t, srtUrl)
  await until('live', () => server.status('studio').live)
  const { page, errors } = await openPage(t, `${url}/watch/studio`)
  const time = async () => (await playback(page)).currentTimeSec
  await until('the video plays', async () => (await time()) > 3)

  for (const awaySec of [2, 20]) {
    encoder.kill('SIGKILL')
    await encoder.exit
    await new Promise((resolve) => setTimeout(resolve, awaySec * 1000))
    encoder = startEncoder(t, srtUrl)
    await until('live again', () => server.status('studio').live)
    const before = await time()
    const playsOn = async () => (await time()) > before + 5
    await until(`plays on after ${awaySec} s`, playsOn).catch(async (error: unknown) => {
      t.fail(`${String(error)}: ${JSON.stringify(await playback(page))}`)
    })
    t.equal((await playback(page)).error, null)
  }
  await server.stopStream('studio')
  const { playlists, failures } = await viewer

  t.strictSame(errors, [], 'the page had no error')
  t.strictSame(failures, [], 'all that was listed could be fetched')
  t.strictSame(checkPlaylists(playlists), [], 'sequence numbers only went up, by the rules')
  const [first, last] = [playlists[0]!, playlists.at(-1)!]
  t.notMatch(first, '#EXT-X-DISCONTINUITY\n')
  const discontinuities = last.split('#EXT-X-DISCONTINUITY\n').length - 1
  const passed = discontinuitySequence(last) - discontinuitySequence(first)
  t.equal(passed + discontinuities, 2, 'each return is a discontinuity')
  t.equal(server.status('studio').totals.publishers, 3)
})

t.test('an encoder replaces its own dead connection at its first attempt', async (t) => {
  if (!requireTool(t, 'ffmpeg')) return
  const { server } = await startService(t)
  const { srtUrl } = await server.startStream({ streamId: 'studio' })
  const stream = server.findStream('studio')!
  const first = startEncoder(t, srtUrl)
  await until('live', () => stream.live)
  const { remote } = stream.encoder!.report()
  first.kill('SIGKILL')
  await first.exit
  const killedAt = performance.now()
  const takenOver = new Promise<number>((resolve) =>
    stream.once('publish', () => resolve(performance.now() - killedAt)),
  )
  startEncoder(t, srtUrl)
  const tookMs = await takenOver
  t.not(stream.encoder!.report().remote, remote, 'another encoder publishes')
  t.comment(`taken over ${Math.round(tookMs)} ms after the kill`)
  await until('live again', () => stream.live)
})

function discontinuitySequence(playlist: string): number {
  return Number(/#EXT-X-DISCONTINUITY-SEQUENCE:(\d+)/.exec(playlist)?.[1])
}
