/**
 * First steps of a new user: `npm run demo`, and its page.
 */
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { openPage, playback } from '../support/browser.ts'
import { start } from '../../support/process.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'

/** More than the clip: the page plays on where it starts again. */
const PLAYED_SEC = 9

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

t.test('the demo prints the URL of a page that plays video and audio', async (t) => {
  if (!requireTool(t, 'chromium')) return
  const demo = start(t, process.execPath, ['dist/cli.js', 'demo', '--http-port', '0'], {
    cwd: ROOT,
  })
  const [url] = await until('a URL', () => /http:\/\/\S+\/watch\/\S+/.exec(demo.output()))
  const { page, errors } = await openPage(t, url)
  const now = () => playback(page)
  await until('the video plays', async () => (await now()).currentTimeSec > 0.5)
  const before = await now()
  const after = await until('video and audio were played', async () => {
    const state = await now()
    return (
      state.currentTimeSec >= before.currentTimeSec + PLAYED_SEC &&
      state.framesDecoded >= before.framesDecoded + PLAYED_SEC * 25 &&
      state.audioDecodedBytes > before.audioDecodedBytes &&
      state
    )
  })
  t.match(after, { width: 640, height: 360, paused: false, error: null })
  t.strictSame(errors, [])
  demo.kill('SIGINT')
  t.equal(await demo.exit, 0, 'Ctrl-C ends it cleanly')
})
