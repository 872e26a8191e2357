/** Commands that call the API of a running service. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { formatRecord, formatStreams } from '../../src/cli/stream-texts.ts'
import { Client } from '../../src/client/index.ts'
import { publishDemo } from '../support/demo-encoder.ts'
import { freePort } from '../support/free-port.ts'
import { startService, type TestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))

interface Outcome {
  readonly exit: number
  readonly out: string
  readonly err: string
}

async function millrace(env: Record<string, string>, ...args: string[]): Promise<Outcome> {
  try {
    const options = { env: { PATH: process.env['PATH'], ...env } }
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [CLI, ...args], options)
    return { exit: 0, out: stdout, err: stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { exit: code, out: stdout, err: stderr }
  }
}

/** Settings of a service, as its file has them. */
function settingsOf({ hmacSecret, jwtSecret, server }: TestService): Record<string, string> {
  const HTTP_PORT = String(server.httpPort)
  return { HMAC_SECRET: hmacSecret, JWT_SECRET: jwtSecret, HTTP_HOST: '127.0.0.1', HTTP_PORT }
}

t.test('start prints what encoder and viewers need, with the settings of serve', async (t) => {
  const service = await startService(t, { srt: { passphrase: 'passphrase-passphrase' } })
  const { server, url } = service
  const { exit, out, err } = await millrace(settingsOf(service), 'start', 'studio', '--encryption')
  t.match({ exit, err }, { exit: 0, err: '' })
  const listener = `srt://127.0.0.1:${server.srtPort}`
  const [, key, secured] = /^SRT URL +srt:\S+\?streamid=([^&]+)(&passphrase=\S+)$/m.exec(out) ?? []
  const rows = {
    'SRT URL': `${listener}?streamid=${key}${secured}`,
    'OBS Server': `${listener}?latency=500000${secured}`,
    'OBS Stream Key': key!,
    ffmpeg: `ffmpeg -re -i INPUT -c copy -f mpegts -pes_payload_size 0 '${listener}?streamid=${key}${secured}&latency=500000&linger=2'`,
    Watch: `${url}/watch/studio`,
    Players: `${url}/video/studio/master.m3u8`,
    Recorders: `${url}/video/studio/playlist.m3u8`,
  }
  const lines = out.split('\n').map((line) => line.replace(/ {2,}/, '  '))
  for (const [name, value] of Object.entries(rows)) t.ok(lines.includes(`${name}  ${value}`), name)
  t.match(lines[0], /^studio is READY\. Its stream key is good until 2\d{3}-/)
})

t.test('start takes the fields of start-stream as options', async (t) => {
  const service = await startService(t)
  const env = { HMAC_SECRET: service.hmacSecret }
  const { exit, out } = await millrace(
    env,
    ...['start', '--backup', 'studio', '--url', service.url, '--json', '--no-failback'],
    ...['--latency-ms', '500', '--allow-from', '127.0.0.1', '--allow-from', '::1'],
  )
  t.equal(exit, 0)
  t.match(JSON.parse(out), { stream_id: 'studio', backup_srt_url: /^srt:/ })
  t.strictSame(service.server.status('studio').options, {
    ...{ failback: false, latencyMs: 500, allowFrom: ['127.0.0.1', '::1'] },
  })
  const refused = await millrace(env, 'start', 'studio', '--url', service.url, '--latency-ms', 'x')
  t.strictSame(refused, {
    exit: 1,
    out: '',
    err: 'millrace: latency_ms must be a whole number from 20 to 8000\n',
  })
  const empty = await millrace(env, 'start', 'studio', '--url', service.url, '--dvr-sec', '')
  t.match(empty, { exit: 1, err: /^millrace: dvr_sec must be a whole number/ }, 'no 0')
})

t.test('status and streams show a live stream, and stop ends it', async (t) => {
  const service = await startService(t)
  const env = settingsOf(service)
  t.match(await millrace(env, 'streams'), { exit: 0, out: /^no streams: / })
  const { srtUrl } = await service.server.startStream({ streamId: 'studio' })
  await service.server.startStream({ streamId: 'other' })
  publishDemo(t, srtUrl, { mayFail: true })
  await until('the stream is live', () => service.server.status('studio').live)

  const { out } = await millrace(env, 'status', 'studio')
  t.match(out, /^studio +STREAMING, live since 2\d{3}-\S+Z$/m)
  t.match(
    out,
    /^Encoder +127\.0\.0\.1:\d+, \d+\.\d Mbit\/s, RTT \d+ ms, \d+ packets lost, \d+ dropped$/m,
  )
  t.match(out, /^Track +video h264, \d+x\d+/m)
  t.match(out, /^Track +audio aac, \d+ Hz, \d channels/m)
  t.match(out, /^On air +main$/m)
  t.match(out, /^Viewers +\d+$/m)
  const json = await millrace(env, 'status', 'studio', '--json')
  t.match(JSON.parse(json.out), { stream_id: 'studio', live: true })

  const list = await millrace(env, 'streams')
  t.match(
    list.out,
    /^STREAM +STATE +BITRATE +VIEWERS +WARNINGS\nother +READY +- +0 +-\nstudio +STREAMING +\d/,
  )
  const ready = await millrace(env, 'streams', '--status', 'READY', '--json')
  t.match(JSON.parse(ready.out), [{ stream_id: 'other' }])

  t.match(await millrace(env, 'stop', 'studio'), { exit: 0, out: /^studio +STOPPED$/m })
  t.equal(service.server.status('studio').status, 'STOPPED')
})

t.test('start and status say that viewers need a playback token', async (t) => {
  const service = await startService(t, { playbackSecret: 'k'.repeat(32) })
  const env = settingsOf(service)
  const row = /^Token +viewers need the URL that `millrace sign-playback studio` prints$/m
  t.match(await millrace(env, 'start', 'studio'), { exit: 0, out: row })
  t.match(await millrace(env, 'status', 'studio'), { exit: 0, out: row })
  const open = await millrace(env, 'start', 'studio', '--no-playback-token')
  t.match(open.out, /^Players/m)
  t.notMatch(open.out, /^Token/m)
})

t.test('status shows a ban, and that the owner of the stream does not answer', async (t) => {
  const service = await startService(t)
  await service.server.startStream({ streamId: 'studio' })
  service.server.kick('studio', { banSec: 60 })
  const { out } = await millrace(settingsOf(service), 'status', 'studio')
  t.match(out, /^Banned until +2\d{3}-\S+Z$/m)
  const client = new Client({ url: service.url, secret: service.hmacSecret })
  const record = await client.call('status', { stream_id: 'studio' })
  const stale = { ...record, stale: true } as const
  t.match(formatRecord(stale), /^Stale +the node of the stream does not answer/m)
  t.match(formatStreams([stale]), /^studio +READY \(stale\) /m)
})

t.test('streams lists all pages', async (t) => {
  const service = await startService(t)
  const ids = Array.from({ length: 101 }, (_, index) => `s-${String(index).padStart(3, '0')}`)
  for (const streamId of ids) await service.server.startStream({ streamId })
  const { out } = await millrace(settingsOf(service), 'streams', '--json')
  const listed = JSON.parse(out) as { stream_id: string }[]
  t.strictSame(
    listed.map(({ stream_id: id }) => id),
    ids,
  )
})

t.test('a call that fails ends with 1 and a line that says what to do', async (t) => {
  const service = await startService(t)
  const env = settingsOf(service)
  const fails = async (settings: Record<string, string>, args: string[], err: string) =>
    t.strictSame(await millrace(settings, ...args), { exit: 1, out: '', err: `millrace: ${err}\n` })
  await fails(env, ['status', 'typo'], 'no such stream: `millrace streams` lists all')
  const stranger = { ...env, HMAC_SECRET: 'x'.repeat(32) }
  await fails(stranger, ['streams'], 'Invalid Request: set HMAC_SECRET to that of the service')
  const nobody = `http://127.0.0.1:${await freePort()}`
  await fails(
    env,
    ['start', 'studio', '--url', nobody],
    `cannot connect to ${nobody} (ECONNREFUSED): start \`millrace serve\`, or name its address with --url`,
  )
  t.match(await millrace({}, 'streams'), { exit: 2, err: /^millrace: HMAC_SECRET is not set: / })

  const hangsUp = createServer((request) => request.socket.destroy()).listen(0, '127.0.0.1')
  t.teardown(() => hangsUp.close())
  await once(hangsUp, 'listening')
  const silent = `http://127.0.0.1:${(hangsUp.address() as AddressInfo).port}`
  await fails(
    env,
    ['start', 'studio', '--url', silent],
    `no answer from ${silent} (UND_ERR_SOCKET): the call may have taken effect, which \`millrace streams\` shows`,
  )
})
