/**
 * The programs of examples/, as they are, against real services on the loopback.
 */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Webhook } from 'standardwebhooks'
import t, { type Test } from 'tap'
import { publishDemo } from '../support/demo-encoder.ts'
import { freePort } from '../support/free-port.ts'
import { start, type Program } from '../support/process.ts'
import { startService, type TestService } from '../support/service.ts'
import { continuityFaults, readPackets } from '../support/ts-reader.ts'
import { demux, unitsOf } from '../mpegts/demux.ts'
import { until } from '../support/until.ts'
import { CREDENTIALS, REGION, startStorage } from './s3-storage.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const run = promisify(execFile)

// Most of the time is that of media.
t.jobs = 5

const newSecrets = () => ({
  HMAC_SECRET: randomBytes(32).toString('hex'),
  JWT_SECRET: randomBytes(32).toString('hex'),
})

function example(t: Test, path: string, env: Record<string, string>): Program {
  return start(t, process.execPath, [join('examples', path)], { cwd: ROOT, env })
}

/** Publishes the demo clip in a loop until the test ends. */
function publishClip(t: Test, srtUrl: string): void {
  publishDemo(t, srtUrl.replace(/\/\/[^:]+/, '//127.0.0.1'), { mayFail: true })
}

/** Publishes to the URL that a program prints. */
async function publishTo(t: Test, program: Program): Promise<void> {
  const [, srtUrl] = await until('the SRT URL', () => /publish to (\S+)/.exec(program.output()))
  publishClip(t, srtUrl!)
}

/** Starts a service with the live stream `studio`. */
async function startStudio(t: Test): Promise<TestService & { readonly playlistUrl: string }> {
  const service = await startService(t, { hls: { segmentSec: 1 } })
  const { srtUrl, playlistUrl } = await service.server.startStream({ streamId: 'studio' })
  publishClip(t, srtUrl)
  await until('the stream is live', () => service.server.status('studio').live)
  return { ...service, playlistUrl }
}

t.test('s3: segments and playlist of a recording are in the storage', async (t) => {
  const storage = await startStorage(t, 1)
  const program = example(t, 's3/record.js', {
    ...newSecrets(),
    ...{ S3_URL: storage.url, AWS_REGION: REGION, SRT_PORT: '0', HTTP_PORT: '0' },
    ...{ AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId },
    AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
  })
  await publishTo(t, program)
  await until('two segments', () => storage.uploads.length >= 4)
  program.kill()
  t.equal(await program.exit, 0)

  t.same(storage.refused, [])
  t.match(program.output(), /the storage answered 503/, 'the first upload was repeated')
  const playlistPath = [...storage.files.keys()].find((path) => path.endsWith('.m3u8'))!
  t.match(playlistPath, /^\/bucket\/recordings\/demo\/[^/]+\/playlist\.m3u8$/)
  const playlist = storage.files.get(playlistPath)!
  t.equal(playlist.contentType, 'application/vnd.apple.mpegurl')
  const text = playlist.bytes.toString()
  t.match(text, /#EXT-X-PLAYLIST-TYPE:EVENT\n#EXT-X-TARGETDURATION:10\n[^]*#EXT-X-ENDLIST\n$/)
  const listed = text.split('\n').filter((line) => line.endsWith('.ts'))
  t.same(
    [...storage.files.keys()].filter((path) => path.endsWith('.ts')),
    listed.map((uri) => join(dirname(playlistPath), uri)),
    'the playlist lists the stored segments',
  )

  const durationSec = [...text.matchAll(/#EXTINF:([\d.]+)/g)].reduce(
    (sum, [, sec]) => sum + Number(sec),
    0,
  )
  const stored = listed.map((uri) => storage.files.get(join(dirname(playlistPath), uri))!.bytes)
  const packets = stored.flatMap((bytes) => readPackets(bytes))
  t.same(continuityFaults(packets), [])
  const units = unitsOf(demux(Buffer.concat(stored)))
  const frames = units.filter(({ track }) => track.kind === 'video').length
  t.ok(Math.abs(frames - durationSec * 30) <= 1, `${frames} frames in ${durationSec} s`)
  t.ok(units.length > frames, 'and audio')
})

t.test('fastify: users with a session watch their streams, others nothing', async (t) => {
  const secrets = { ...newSecrets(), SESSION_SECRET: randomBytes(32).toString('hex') }
  const ports = { SRT_PORT: '0', HTTP_PORT: '0', APP_PORT: '0' }
  const program = example(t, 'fastify/app.js', { ...secrets, ...ports, ADA_PASSWORD: 'lovelace' })
  await publishTo(t, program)
  const [, port] = await until('the port', () => /listening on \S+:(\d+)/.exec(program.output()))
  const url = `http://127.0.0.1:${port}`
  const playlistUrl = `${url}/live/studio/playlist.m3u8`
  const logIn = (password: string) =>
    fetch(`${url}/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ user: 'ada', password }),
    })
  t.equal((await logIn('babbage')).status, 403)
  const session = await logIn('lovelace')
  const { token } = (await session.json()) as { token: string }
  const cookie = session.headers.get('set-cookie')!.split(';')[0]!

  const get = (path: string, headers: Record<string, string> = {}) => fetch(path, { headers })
  const refused = await get(playlistUrl)
  t.match([refused.status, refused.headers.get('cache-control')], [401, 'no-store'])
  t.equal((await get(playlistUrl, { authorization: `Bearer ${token}x` })).status, 401)
  t.equal((await get(playlistUrl.replace('studio', 'other'), { cookie })).status, 403)
  const preflight = await fetch(playlistUrl, { method: 'OPTIONS' })
  t.match([preflight.status, preflight.headers.get('access-control-allow-origin')], [204, '*'])

  const playlist = await until('a playlist', async () => {
    const reply = await get(playlistUrl, { cookie })
    const text = await reply.text()
    return reply.ok && text
  })
  const [uri] = /^\S+\.ts$/m.exec(playlist)!
  const segmentUrl = new URL(uri, playlistUrl).href
  t.equal((await get(segmentUrl)).status, 401)
  const segment = await get(segmentUrl, { authorization: `Bearer ${token}` })
  t.equal((await segment.arrayBuffer()).byteLength % 188, 0)
  program.kill()
  await until('the end of the playlist', async () => {
    const reply = await get(playlistUrl, { cookie })
    return (await reply.text()).includes('#EXT-X-ENDLIST')
  })
  t.equal(await program.exit, 0)
})

t.test('webhooks: a receiver handles each genuine webhook once', async (t) => {
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const port = await freePort()
  const program = example(t, 'webhooks/receiver.js', { WEBHOOK_SECRET: secret, PORT: String(port) })
  await until('the receiver listens', () => program.output().includes('listening'))
  const url = `http://127.0.0.1:${port}/`

  const { server } = await startService(t, { webhook: { secret } })
  await server.startStream({ streamId: 'studio', webhookUrls: [url] })
  await until('stream.ready', () => program.output().includes('stream.ready studio'))

  const webhook = new Webhook(secret)
  const body = JSON.stringify({
    type: 'stream.live',
    stream_id: 'two',
    data: { master_url: 'u' },
  })
  const send = (id: string, at: Date, signed = body) =>
    fetch(url, {
      method: 'POST',
      headers: {
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
        'webhook-signature': webhook.sign(id, at, signed),
      },
      body,
    }).then(({ status }) => status)
  const now = new Date()
  t.equal(await send('a', now), 204)
  t.equal(await send('a', now), 204, 'a repetition is accepted')
  t.equal(await send('b', new Date(now.getTime() - 600_000)), 403, 'an old webhook')
  t.equal(await send('c', now, '{}'), 403, 'a forged webhook')
  t.equal((await fetch(url)).status, 405)
  await until('the event', () => program.output().includes('two plays at u'))
  t.equal(program.output().match(/two plays/g)?.length, 1)
})

t.test('noalbs: the bridge has the statistics page of SRT Live Server', async (t) => {
  const { url, hmacSecret, api } = await startStudio(t)
  const port = await freePort()
  const env = { MILLRACE_URL: url, HMAC_SECRET: hmacSecret, PORT: String(port) }
  const program = example(t, 'noalbs/bridge.js', env)
  await until('the bridge listens', () => program.output().includes('listening'))
  const read = async () => {
    const reply = await fetch(`http://127.0.0.1:${port}/stats`)
    t.equal(reply.status, 200)
    return (await reply.json()) as { publishers: Record<string, Record<string, number>> }
  }
  // As NOALBS reads it: whole numbers but for the rates and the round-trip time, none missing.
  const { publishers } = await until('a bitrate', async () => {
    const statistics = await read()
    return (statistics.publishers['studio']?.['bitrate'] ?? 0) > 0 && statistics
  })
  const studio = publishers['studio']!
  for (const name of ['bitrate', 'bytesRcvDrop', 'bytesRcvLoss', 'msRcvBuf', 'uptime']) {
    t.ok(Number.isInteger(studio[name]) && studio[name]! >= 0, `${name}: ${studio[name]}`)
  }
  t.match(studio, { pktRcvDrop: 0, pktRcvLoss: 0, mbpsBandwidth: 0, msRcvBuf: 120 })
  t.ok(studio['rtt']! >= 0)
  t.ok(Math.abs(studio['mbpsRecvRate']! - studio['bitrate']! / 1000) < 0.001)
  await api('stop-stream', { stream_id: 'studio' })
  await until('offline', async () => (await read()).publishers['studio'] === undefined)
  t.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 404)
})

t.test('load: autocannon requests the playlist and its newest segment', async (t) => {
  const { playlistUrl } = await startStudio(t)
  const program = join(ROOT, 'examples/load/load.js')
  const load = (...args: string[]) => run(process.execPath, [program, playlistUrl, ...args])
  const { stdout } = await load('--connections', '2', '--seconds', '2')
  const result = JSON.parse(stdout) as Record<string, number>
  t.match(result, { failures: 0 })
  t.ok(result['requests_per_sec']! > 0, stdout)
  t.ok(result['segments']! >= 2, 'it follows the playlist')
  await t.rejects(load('--connections', '100000'), { message: /from 1 to 1000/ })
})
