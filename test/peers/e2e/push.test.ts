/**
 * srt-live-transmit listens, is killed and comes back: each time it gets the stream again, from a key frame on.
 */
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { freePort } from '../../support/free-port.ts'
import { publishDemo } from '../../support/demo-encoder.ts'
import { start } from '../../support/process.ts'
import { startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { requireTool } from '../support/tools.ts'

t.test('srt-live-transmit gets a stream again after each kill', async (t) => {
  if (!requireTool(t, 'srt-live-transmit', 'ffmpeg')) return
  const { server } = await startService(t)
  const folder = mkdtempSync(join(tmpdir(), 'push-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const port = await freePort()
  const passphrase = 'correct horse battery'
  const { srtUrl } = await server.startStream({
    streamId: 'studio',
    pushUrls: [
      `srt://127.0.0.1:${port}?passphrase=${passphrase.replaceAll(' ', '%20')}&pbkeylen=32`,
    ],
  })
  publishDemo(t, srtUrl, { mayFail: true })
  const push = () => server.status('studio').pushes[0]!
  for (const round of [0, 1]) {
    const file = join(folder, `${round}.ts`)
    const url = `srt://127.0.0.1:${port}?mode=listener&passphrase=${passphrase}`
    const { kill, exit } = start(t, 'sh', [
      '-c',
      `srt-live-transmit -q '${url}' file://con > ${file}`,
    ])
    await until('media', () => push().state === 'CONNECTED' && statSync(file).size > 500_000)
    kill('SIGKILL')
    await exit
    const args = ['-v', 'error', '-i', file, '-map', '0:v', '-frames:v', '30', '-f', 'null', '-']
    const decoded = start(t, 'ffmpeg', args)
    await decoded.exit
    t.equal(decoded.output(), '', 'it begins with a key frame')
    t.equal(readFileSync(file)[0], 0x47)
    await until('the loss is seen', () => push().state === 'WAITING')
  }
  t.equal(server.status('studio').publisher?.packetsDropped, 0)
})
