/**
 * The process is killed and started again: the encoder reconnects by itself, and the player continues.
 */
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { openPage, playback } from '../support/browser.ts'
import { freePort } from '../../support/free-port.ts'
import { start } from '../../support/process.ts'
import { callApi } from '../../support/service.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'
import { startWebhookReceiver } from '../../support/webhook-receiver.ts'

const CLI = fileURLToPath(new URL('../../../dist/cli.js', import.meta.url))

/** Live encoder that is restarted whenever it ends, as by a supervisor, up to a limit. */
function encodeInLoop(t: Test, url: string): void {
  const encoder =
    'ffmpeg -v error -re -f lavfi -i testsrc2=size=320x180:rate=30 -re -f lavfi -i sine=sample_rate=48000 ' +
    `-c:v libx264 -preset ultrafast -tune zerolatency -g 30 -pix_fmt yuv420p -c:a aac -f mpegts '${url}'`
  start(t, 'bash', ['-c', `for i in {1..100}; do ${encoder}; sleep 0.5; done`])
}

t.test('the player page continues without a reload after two kill -9', async (t) => {
  if (!requireTool(t, 'ffmpeg', 'chromium')) return
  const hooks = await startWebhookReceiver(t)
  const env = {
    HMAC_SECRET: randomBytes(32).toString('hex'),
    JWT_SECRET: randomBytes(32).toString('hex'),
    HTTP_HOST: '127.0.0.1',
    HTTP_PORT: String(await freePort()),
    SRT_HOST: '127.0.0.1',
    SRT_PORT: String(await freePort()),
    PUBLIC_HOST: '127.0.0.1',
    HLS_SEGMENT_SEC: '1',
    DEFAULT_WEBHOOK_URLS: hooks.url,
  }
  const serve = async () => {
    const service = start(t, process.execPath, [CLI, 'serve'], { env })
    await until('the service listens', () => service.output().includes('"srt_port"'))
    return service
  }
  let service = await serve()
  const url = `http://127.0.0.1:${env.HTTP_PORT}`
  const body = { stream_id: 'studio' }
  const started = await callApi(url, 'start-stream', body, env.HMAC_SECRET)
  encodeInLoop(t, started.body.data['srt_url'])

  const playlistUrl = `${url}/video/studio/playlist.m3u8`
  const numbers = async () => {
    const text = await (await fetch(playlistUrl)).text()
    const number = (tag: string) => Number(new RegExp(`^#${tag}:(\\d+)$`, 'm').exec(text)?.[1])
    return {
      media: number('EXT-X-MEDIA-SEQUENCE'),
      segments: text.match(/#EXTINF/g)?.length ?? 0,
    }
  }
  await until('a playlist', async () => (await numbers()).segments >= 3)
  const { page, errors } = await openPage(t, `${url}/watch/studio`)
  const playFor = (what: string, frames: number) =>
    until(what, async () => (await playback(page)).framesDecoded > frames, {
      everyMs: 100,
    })
  await playFor('the video plays', 90)

  for (const round of [1, 2]) {
    const before = await numbers()
    service.kill('SIGKILL')
    await service.exit
    const killedAtMs = performance.now()
    const seen = hooks.received.length
    service = await serve()
    await until('stream.resumed', () =>
      hooks.received.slice(seen).some(({ event }) => event.type === 'stream.resumed'),
    )
    const { framesDecoded } = await playback(page)
    // More than the player had buffered when the process died.
    await playFor(`the video plays after kill ${round}`, framesDecoded + 300)
    t.comment(
      `kill ${round}: 10 s played ${Math.round(performance.now() - killedAtMs)} ms after it`,
    )
    const after = await numbers()
    t.ok(after.media >= before.media + before.segments, 'media sequence went forward')
    t.equal((await playback(page)).error, null)
  }
  t.strictSame(errors, [], 'the page had no error')
})
