/**
 * Short keys, the standard's form of a stream id, and a port without any, by ffmpeg, GStreamer and srt-live-transmit;
 * refused ones get 1010.
 */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { issueStreamKey } from '../../../src/auth/stream-key.ts'
import { freePorts } from '../../support/free-port.ts'
import { start } from '../../support/process.ts'
import { startService, type TestService } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { requireTool } from '../support/tools.ts'

const CLIP = 'fixtures/demo.mpegts'
const TOKEN = 'metrics'.repeat(5)

interface Call {
  readonly port: number
  readonly streamId?: string
  readonly passphrase?: string
}

/** Command lines of encoders that publish the demo clip. */
const ENCODERS = {
  ffmpeg: ({ port, streamId, passphrase }: Call) => {
    const query = new URLSearchParams({
      ...(streamId !== undefined && { streamid: streamId }),
      ...(passphrase !== undefined && { passphrase, pbkeylen: '32' }),
    })
    const url = `srt://127.0.0.1:${port}?${query.toString()}`
    return ['ffmpeg', '-v', 'error', '-re', '-i', CLIP, '-c', 'copy', '-f', 'mpegts', url]
  },
  'gst-launch-1.0': ({ port, streamId, passphrase }: Call) => [
    ...[
      'gst-launch-1.0',
      '-q',
      'filesrc',
      `location=${CLIP}`,
      '!',
      'tsparse',
      'set-timestamps=true',
    ],
    ...['!', 'srtsink', `uri=srt://127.0.0.1:${port}`],
    ...(streamId === undefined ? [] : [`streamid=${streamId}`]),
    ...(passphrase === undefined ? [] : [`passphrase=${passphrase}`, 'pbkeylen=32']),
  ],
  'srt-live-transmit': ({ port, streamId, passphrase }: Call) => {
    const query = new URLSearchParams({
      ...(streamId !== undefined && { streamid: streamId }),
      ...(passphrase !== undefined && { passphrase, pbkeylen: '32' }),
    })
    const source = `ffmpeg -v error -re -i ${CLIP} -c copy -f mpegts pipe:1`
    const url = `srt://127.0.0.1:${port}?${query.toString()}`
    return ['bash', '-c', `${source} | srt-live-transmit -q -chunk:1316 file://con '${url}'`]
  },
}

const isLive = ({ server }: TestService) => server.findStream('studio')?.live === true

for (const [tool, commandOf] of Object.entries(ENCODERS)) {
  t.test(`${tool} publishes with each form of a key, also after a restart`, async (t) => {
    if (!requireTool(t, tool)) return
    const [port] = (await freePorts(1)) as [number]
    const jwtSecret = randomBytes(32).toString('hex')
    const before = await startService(t, { jwtSecret })
    const { shortStreamKey } = await before.server.startStream({ streamId: 'studio' })
    await before.server.close()
    // A key of the second in which a process starts may be its own.
    await new Promise((resolve) => setTimeout(resolve, 1000))

    const options = { jwtSecret, srt: { streamPorts: `${port}-${port}` } }
    const service = await startService(t, { ...options, hls: { segmentSec: 0.5 } })
    const { srtPort } = service.server
    const publish = async (what: string, call: Call) => {
      const [command = '', ...args] = commandOf(call)
      const program = start(t, command, args)
      await until(`${what}: live`, () => isLive(service))
      program.kill('SIGKILL')
      service.server.kick('studio')
      await until(`${what}: gone`, () => !isLive(service))
      t.pass(what)
    }
    await publish('a short key of the process before', { port: srtPort, streamId: shortStreamKey })
    const form = `#!::m=publish,r=studio,token=${shortStreamKey.slice('studio-'.length)}`
    await publish('the form of the standard', { port: srtPort, streamId: form })
    const { passphrase = '' } = await service.server.startStream({
      ...{ streamId: 'studio', encryption: true, publishPort: port },
    })
    await publish('a port without a stream id', { port, passphrase })
  })

  t.test(`${tool} is refused with 1010 for a short key that is not good`, async (t) => {
    if (!requireTool(t, tool)) return
    const service = await startService(t, { metrics: { token: TOKEN } })
    const { srtPort: port } = service.server
    const { shortStreamKey: revoked } = await service.server.startStream({ streamId: 'studio' })
    await service.server.stopStream('studio', { revoke: true })
    const { shortStreamKey: good } = await service.server.startStream({ streamId: 'studio' })
    const issue = async (secret: string, ageSec: number) => {
      const now = new Date(Date.now() - ageSec * 1000)
      return (await issueStreamKey({ streamId: 'studio', secret, now })).shortStreamKey
    }
    const at = good.length - 5
    const bad = {
      expired: await issue(service.jwtSecret, 7201),
      revoked,
      foreign: await issue(randomBytes(32).toString('hex'), 0),
      altered: good.slice(0, at) + (good[at] === 'A' ? 'B' : 'A') + good.slice(at + 1),
      truncated: good.slice(0, -1),
    }
    for (const [what, streamId] of Object.entries(bad)) {
      const rejects = () => readRejects(service)
      const earlier = await rejects()
      const [command = '', ...args] = commandOf({ port, streamId })
      const program = start(t, command, args)
      await until(`${what}: 1010`, async () => (await rejects()) > earlier)
      program.kill('SIGKILL')
      t.equal(service.server.status('studio').status, 'READY', what)
    }
  })
}

/** Number of refusals of keys, all of which have the code 1010. */
async function readRejects({ server }: TestService): Promise<number> {
  const headers = { authorization: `Bearer ${TOKEN}` }
  const text = await (await fetch(`${server.publicUrl}/metrics`, { headers })).text()
  const lines = text.matchAll(/^millrace_rejects_total\{reason="STREAM_KEY_\w+"\} (\d+)/gm)
  return [...lines].reduce((sum, [, count]) => sum + Number(count), 0)
}
