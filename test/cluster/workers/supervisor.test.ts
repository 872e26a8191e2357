/**
 * HTTP_WORKERS with real processes: playback through workers, replacement of what dies, and the end of all of them.
 */
import { randomBytes } from 'node:crypto'
import { createServer as createTcpServer } from 'node:net'
import { Agent, get, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { createServer } from '../../../src/index.ts'
import { connect } from '../../../src/srt/index.ts'
import { freePort, freePorts } from '../../support/free-port.ts'
import { tryApi } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { segmentUris } from '../../support/viewer.ts'
import { groupOf, publishStream, serveWithWorkers, spawnService } from './workers-service.ts'

const kill = (pid: number | undefined) => process.kill(pid!, 'SIGKILL')

/** Number after the last segment of a playlist. */
function nextNumber(playlist: string): number {
  const first = Number(/^#EXT-X-MEDIA-SEQUENCE:(\d+)$/m.exec(playlist)![1])
  return first + playlist.match(/#EXTINF/g)!.length
}

// One service and one encoder for the tests up to the death of the supervisor.
const password = 'p'.repeat(20)
const service = await serveWithWorkers(t, { ADMIN_PASSWORD: password })
const encoder = await publishStream(t, service, 'studio')

t.test('workers play a stream, and pass on the API and the dashboard', async (t) => {
  t.equal(service.pids('ingest-process').length, 1)
  t.equal(service.pids('worker-process').length, 2)
  t.match(
    service.lines().filter(({ msg }) => msg === 'listening'),
    [{ http: service.url, srt_port: service.srtPort, process: 'ingest' }],
  )
  const url = `${service.url}/video/studio/playlist.m3u8`
  const [uri] = segmentUris(await (await fetch(url)).text())
  // One connection each, so that both workers answer.
  const segments = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const reply = await fetch(new URL(uri!, url), { headers: { connection: 'close' } })
      return { etag: reply.headers.get('etag'), bytes: Buffer.from(await reply.arrayBuffer()) }
    }),
  )
  t.equal(segments[0]!.bytes[0], 0x47)
  for (const each of segments) t.strictSame(each, segments[0])
  const { body } = await service.api('status', { stream_id: 'studio' })
  t.match(body.data, { status: 'STREAMING', live: true, playlist_url: url })
  const calls = service.lines().filter(({ audit }) => audit === 'start-stream')
  t.match(calls, [{ process: 'ingest', client: '127.0.0.1' }], 'the client, not the worker')
  const login = await fetch(`${service.url}/admin/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: service.url },
    body: JSON.stringify({ password }),
  })
  t.equal(login.status, 200)
})

t.test('a worker that is killed is replaced, and playback goes on', async (t) => {
  const before = nextNumber((await service.readPlaylist('studio'))!)
  const [victim, survivor] = service.pids('worker-process')
  kill(victim)
  const isNew = (pid: number) => pid !== victim && pid !== survivor
  await until('another worker', () => service.pids('worker-process').some(isNew))
  t.ok(service.pids('worker-process').includes(survivor!))
  await until('playback', async () => {
    const playlist = await service.readPlaylist('studio')
    return playlist !== undefined && nextNumber(playlist) > before + 1
  })
  t.match(service.program.output(), /worker-1 ended \(SIGKILL\)/)
})

t.test('an ingest process that is killed is replaced, and its encoder comes back', async (t) => {
  const before = (await service.readPlaylist('studio'))!
  const [victim] = service.pids('ingest-process')
  const workers = service.pids('worker-process')
  kill(victim)
  await until('another ingest process', () =>
    service.pids('ingest-process').some((pid) => pid !== victim),
  )
  await until('the stream', async () => {
    const playlist = await service.readPlaylist('studio')
    return playlist !== undefined && nextNumber(playlist) > nextNumber(before) + 1
  })
  t.not(service.pids('ingest-process')[0], victim)
  t.strictSame(service.pids('worker-process'), workers)
  t.ok(encoder.events.length >= 2, 'the encoder has reconnected')
  const { body } = await service.api('status', { stream_id: 'studio' })
  t.match(body.data, { status: 'STREAMING' })
})

t.test('all processes end cleanly when the supervisor is killed', async (t) => {
  const { body } = await service.api('start-stream', { stream_id: 'other' })
  const streamId = body.data['stream_key'] as string
  const caller = await connect({ host: '127.0.0.1', port: service.srtPort, streamId })
  // New connections end with the supervisor, open ones stay.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const readPlaylist = async () => {
    const request = get(`${service.url}/video/studio/playlist.m3u8`, { agent })
    const [reply] = (await once(request, 'response')) as [IncomingMessage]
    return text(reply)
  }
  t.notMatch(await readPlaylist(), /ENDLIST/)
  const [supervisor] = service.pids('serve')
  kill(supervisor)
  await until('ENDLIST', async () => (await readPlaylist()).includes('#EXT-X-ENDLIST'))
  t.equal(await caller.closed, 'shutdown')
  await until('nothing is left', () => groupOf(supervisor!).length === 0)
  t.strictSame(readdirSync(service.folder), [])
})

t.test('SIGTERM to all processes ends them in order, with ENDLIST through a worker', async (t) => {
  const service = await serveWithWorkers(t)
  await publishStream(t, service, 'studio')
  t.equal(readdirSync(service.folder).length, 1)
  service.program.kill('SIGTERM')
  await until('ENDLIST', async () => (await service.readPlaylist('studio'))?.includes('ENDLIST'))
  t.equal(await service.program.exit, 0)
  t.strictSame(groupOf(service.program.child.pid!), [])
  t.strictSame(readdirSync(service.folder), [])
  await t.rejects(fetch(service.url))
})

t.test('a second signal ends all processes at once', async (t) => {
  const service = await serveWithWorkers(t)
  await service.api('start-stream', { stream_id: 'studio' })
  service.program.kill('SIGINT')
  await until('a drain', async () => (await fetch(`${service.url}/health/ready`)).status === 503)
  service.program.kill('SIGINT')
  t.equal(await service.program.exit, 'SIGINT')
  await until('nothing is left', () => groupOf(service.program.child.pid!).length === 0)
  t.strictSame(readdirSync(service.folder), [])
})

t.test('SIGHUP replaces secrets in all processes, and in those that start later', async (t) => {
  const file = join(t.testdir(), 'hmac')
  const write = () => {
    const secret = randomBytes(32).toString('hex')
    writeFileSync(file, secret)
    return secret
  }
  const first = write()
  const service = await serveWithWorkers(t, { HMAC_SECRET: '', HMAC_SECRET_FILE: file })
  const statusWith = async (secret: string) =>
    (await tryApi(service.url, 'start-stream', { stream_id: 'studio' }, secret)).status
  t.equal(await statusWith(first), 200)
  const second = write()
  service.program.kill('SIGHUP')
  await until('the reload', () => service.program.output().includes('"settings reloaded"'))
  t.equal(await statusWith(second), 200)
  t.equal(await statusWith(first), 403)

  writeFileSync(file, '')
  service.program.kill('SIGHUP')
  await until('a refusal', () => service.program.output().includes('HMAC_SECRET_FILE is '))
  const [victim] = service.pids('ingest-process')
  kill(victim)
  await until('another ingest process', async () => (await statusWith(second)) === 200)
  const [successor] = service.pids('ingest-process')
  t.not(successor, victim)

  kill(successor)
  await until(
    'a third one',
    () => ![undefined, successor].includes(service.pids('ingest-process')[0]),
  )
  const third = write()
  service.program.kill('SIGHUP')
  await until(
    'the secret of a reload during its start',
    async () => (await statusWith(third)) === 200,
  )
})

t.test('five deaths within a minute end the service with exit 1', async (t) => {
  const service = await serveWithWorkers(t)
  const { body } = await service.api('start-stream', { stream_id: 'studio' })
  const streamId = body.data['stream_key'] as string
  const encoder = await connect({ host: '127.0.0.1', port: service.srtPort, streamId })
  for (let deaths = 1; deaths <= 5; deaths++) {
    kill(await until('a worker', () => service.pids('worker-process').at(-1)))
    await until(
      'its end',
      () =>
        service.program.output().match(/worker-\d ended \(/g)?.length === deaths ||
        service.program.child.exitCode !== null,
    )
  }
  t.equal(await service.program.exit, 1)
  t.match(service.program.output(), /^millrace: 5 processes ended within a minute/m)
  t.equal(await encoder.closed, 'shutdown')
  t.strictSame(readdirSync(service.folder), [])
})

t.test('a mistake in the settings of any process ends the start with one message', async (t) => {
  const [httpPort, apiPort] = (await freePorts(2)) as [number, number]
  const attempt = async (env: Record<string, string>) => {
    // No line of the log.
    const { program, folder } = spawnService(t, { HTTP_PORT: String(httpPort), ...env })
    const exit = await program.exit
    t.strictSame(readdirSync(folder), [])
    const messages = program
      .output()
      .split('\n')
      .filter((line) => line !== '')
    t.equal(messages.length, 1, program.output())
    return { exit, message: messages[0] }
  }
  t.match(await attempt({ HTTP_PORT: '0' }), {
    exit: 2,
    message: /^millrace: HTTP_PORT is 0, HTTP_WORKERS is 2: expected /,
  })
  t.match(await attempt({ HTTP_WORKERS: 'many' }), { exit: 2, message: /HTTP_WORKERS is "many"/ })
  t.match(await attempt({ TLS_CERT: '/nowhere', TLS_KEY: '/nowhere' }), {
    exit: 2,
    message: /\/nowhere/,
  })
  const taken = createTcpServer().listen(httpPort, '127.0.0.1')
  const takenApi = createTcpServer().listen(apiPort, '127.0.0.1')
  await Promise.all([once(taken, 'listening'), once(takenApi, 'listening')])
  t.teardown(() => (taken.close(), takenApi.close()))
  t.match(await attempt({}), { exit: 1, message: new RegExp(`port ${httpPort} .*HTTP_PORT`) })
  t.match(await attempt({ HTTP_PORT: String(await freePort()), API_PORT: String(apiPort) }), {
    exit: 1,
    message: new RegExp(`port ${apiPort} .*API_PORT`),
  })
})

t.test('the library refuses workers', async (t) => {
  const secrets = { hmacSecret: 'h'.repeat(32), jwtSecret: 'j'.repeat(32) }
  await t.rejects(createServer({ ...secrets, http: { workers: 1 } }), {
    code: 'CONFIG_INVALID',
    message: /^http\.workers is 1: expected 0/,
  })
})
