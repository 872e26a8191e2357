import t from 'tap'
import { signPlaybackToken } from '../../../src/index.ts'
import { machineClock } from '../../../src/timing/clock.ts'
import { startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { openPage, playback } from '../support/browser.ts'
import { publishFinely } from '../support/fine-clip.ts'
import { requireTool } from '../support/tools.ts'

const SECRET = 'p'.repeat(32)

t.test('the player page plays with a token, and says so without one', async (t) => {
  if (!requireTool(t, 'ffmpeg', 'chromium')) return
  const { server, url } = await startService(t, { playbackSecret: SECRET })
  const { srtUrl } = await server.startStream({ streamId: 'studio' })
  publishFinely(t, srtUrl)
  await until('a live stream', () => server.status('studio').live)
  const refused = await openPage(t, `${url}/watch/studio`)
  await until('the notice', async () => {
    return /No access to this stream/.test((await refused.page.textContent('#notice')) ?? '')
  })
  const expiresAt = new Date(Date.now() + 86_400_000)
  const token = signPlaybackToken({ streamId: 'studio', secret: SECRET, expiresAt })
  const { page, errors } = await openPage(t, `${url}/t/${token}/watch/studio`)
  const requested: string[] = []
  page.on('request', (request) => requested.push(request.url()))
  await until('2 s were played', async () => (await playback(page)).currentTimeSec >= 2)
  const media = requested.filter((each) => each.includes('/video/'))
  t.ok(
    media.some((each) => each.includes('_HLS_part')),
    'blocking requests',
  )
  t.ok(media.every((each) => each.startsWith(`${url}/t/${token}/video/studio/`)))
  t.strictSame(errors, [])
  t.intercept(machineClock, 'wallMs', { value: () => expiresAt.getTime() })
  await until('the page says that the token has expired', async () => {
    return /No access to this stream/.test((await page.textContent('#notice')) ?? '')
  })
})
