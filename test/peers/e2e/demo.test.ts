/**
 * First steps of a new user: `npm run demo`, and its page.
 */
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { openPage, playback, watchStalls } from '../support/browser.ts'
import { start } from '../../support/process.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

t.test('the demo prints the URL of a page that plays video and audio', async (t) => {
  if (!requireTool(t, 'chromium')) return
  // Whole segments leave players a buffer of 6 s: a busy machine may cost a stall with the shortest parts.
  const settings = ['--http-port', '0', '--hls-low-latency', 'false']
  const demo = start(t, process.execPath, ['dist/cli.js', 'demo', ...settings], { cwd: ROOT })
  const [url] = await until('a URL', () => /http:\/\/\S+\/watch\/\S+/.exec(demo.output()))
  const { page, errors } = await openPage(t, url)
  const now = () => playback(page)
  await until('the video plays', async () => (await now()).currentTimeSec > 0.5)
  // On arrival, the page may jump to the newest media once enough of it is buffered.
  await page.waitForTimeout(5000)
  await watchStalls(page)
  const before = await now()
  await until(
    '15 s were played',
    async () => (await now()).currentTimeSec >= before.currentTimeSec + 15,
  )
  const after = await now()
  t.match(after, { width: 640, height: 360, paused: false, error: null })
  t.equal(after.stalls, 0, 'without a stall')
  t.ok(after.audioDecodedBytes > before.audioDecodedBytes, 'audio was decoded')
  t.ok(after.framesDecoded > before.framesDecoded + 15 * 25, 'and video')
  t.strictSame(errors, [])
  demo.kill('SIGINT')
  t.equal(await demo.exit, 0, 'Ctrl-C ends it cleanly')
})
