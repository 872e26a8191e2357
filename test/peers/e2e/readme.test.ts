/**
 * The commands with which README.md runs, starts and publishes a stream, as written but for the ports.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { Client } from '../../../src/client/index.ts'
import { freePort } from '../../support/free-port.ts'
import { start } from '../../support/process.ts'
import { until } from '../../support/until.ts'
import { requireTool } from '../support/tools.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

t.test('a stream that is started and published as README.md says is played', async (t) => {
  if (!requireTool(t, 'ffmpeg')) return
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  const commands = Array.from(readme.matchAll(/```sh\n([^]*?)```/g), ([, text]) => text!)
  const find = (part: string) => commands.find((text) => text.includes(part))!

  const home = mkdtempSync(join(tmpdir(), 'millrace-readme-'))
  t.teardown(() => rmSync(home, { recursive: true }))
  const [httpPort, srtPort] = [await freePort(), await freePort()]
  const url = `http://127.0.0.1:${httpPort}`
  const env = {
    ...{ HOME: home, PUBLIC_HOST: '127.0.0.1', HTTP_HOST: '127.0.0.1' },
    ...{ HTTP_PORT: String(httpPort), SRT_PORT: String(srtPort) },
  }

  const service = start(t, 'bash', ['-c', `${find('keygen')}\n`], { cwd: ROOT, env })
  await until('the service listens', () => service.output().includes('"msg":"listening"'))
  t.equal(statSync(join(home, 'millrace.env')).mode & 0o777, 0o600, 'only its user reads secrets')

  const { stdout } = await promisify(execFile)('bash', ['-c', find('start studio')], {
    cwd: ROOT,
    env: { ...process.env, ...env },
  })
  const [, srtUrl, masterUrl] = /^SRT URL +(\S+)$[^]*^Players +(\S+)$/m.exec(stdout)!

  const publish = find('testsrc2').replace('srt://…', srtUrl!)
  const encoder = start(t, 'bash', ['-c', publish])
  await until('a part is listed', async () => {
    const master = await fetch(masterUrl!)
    const [uri] = /^cmaf-video-1\.m3u8/m.exec(await master.text()) ?? []
    if (uri === undefined) return false
    const playlist = await fetch(new URL(uri, masterUrl))
    return (await playlist.text()).includes('#EXT-X-PART:')
  })
  const secret = /^HMAC_SECRET=(.*)$/m.exec(readFileSync(join(home, 'millrace.env'), 'utf8'))![1]!
  const client = new Client({ url, secret })
  const status = await until('the stream is live', async () => {
    const answer = await client.call('status', { stream_id: 'studio' })
    return answer.live && answer
  })
  const faults = status.warnings.filter(({ code }) => code !== 'NOT_REAL_TIME')
  t.strictSame(faults, [], 'nothing is wrong with the source, however slow this machine is')
  t.strictSame(
    status.tracks.map(({ codec_string: codec }) => codec),
    ['avc1.64001f', 'mp4a.40.2'],
    'High profile with 8 bits in 4:2:0, which every browser decodes',
  )
  encoder.kill('SIGINT')
  await encoder.exit
})
