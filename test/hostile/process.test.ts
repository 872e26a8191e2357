/**
 * The process of the service: an uncaught error ends it in order, a log without a reader does not end it.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { connect } from '../../src/srt/index.ts'
import { freePorts } from '../support/free-port.ts'
import { start, type Program } from '../support/process.ts'
import { callApi } from '../support/service.ts'
import { until } from '../support/until.ts'

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))
const SECRETS = { HMAC_SECRET: 'h'.repeat(32), JWT_SECRET: 'j'.repeat(32) }
const TOKEN = 'eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjF9.c2lnbmF0dXJl'

/** Code that throws an uncaught error in the process, as a defect would. */
const DEFECTS = {
  'throws twice': `for (let time = 0; time < 2; time++) setImmediate(() => { throw new TypeError(message) })`,
  rejects: `void Promise.reject(new TypeError(message))`,
  'throws, and its ports do not close': `
    const { Socket } = await import('node:dgram')
    Socket.prototype.close = () => undefined
    setImmediate(() => { throw new TypeError(message) })`,
}

interface Line {
  readonly level: number
  readonly msg: string
  readonly stack?: string
}

async function serve(t: Test, defect = '') {
  const preload = `process.on('SIGUSR2', async () => {
    const message = 'lost ${SECRETS.HMAC_SECRET} ${TOKEN} passphrase=correcthorse&x'; ${defect} })`
  // Ports that no other process takes when this one has closed them.
  const [httpPort, srtPort] = (await freePorts(2)) as [number, number]
  const program = start(
    t,
    process.execPath,
    ['--import', join(t.testdir({ 'preload.mjs': preload }), 'preload.mjs'), CLI, 'serve'],
    {
      env: {
        ...SECRETS,
        ...{ HTTP_HOST: '127.0.0.1', HTTP_PORT: String(httpPort) },
        ...{ SRT_HOST: '127.0.0.1', SRT_PORT: String(srtPort) },
        ...{ PUBLIC_HOST: '127.0.0.1' },
      },
    },
  )
  await until('listening', () => program.output().includes('"msg":"listening"'))
  return { program, url: `http://127.0.0.1:${httpPort}`, srtPort }
}

function lines(program: Program): Line[] {
  const texts = program
    .output()
    .split('\n')
    .filter((line) => line !== '')
  return texts.map((line) => JSON.parse(line) as Line)
}

const startStream = (url: string) =>
  callApi(url, 'start-stream', { stream_id: 'studio' }, SECRETS.HMAC_SECRET)

for (const [what, defect] of Object.entries(DEFECTS)) {
  t.test(`a process that ${what} logs one line, closes its ports and exits 1`, async (t) => {
    const { program, url, srtPort } = await serve(t, defect)
    const { body } = await startStream(url)
    const streamId = body.data['stream_key'] as string
    const encoder = await connect({ host: '127.0.0.1', port: srtPort, streamId })
    program.child.kill('SIGUSR2')
    t.equal(await program.exit, 1)

    const fatal = lines(program).filter(({ level }) => level === 60)
    t.match(fatal, [{ msg: /^Uncaught error, exit 1\. /, stack: /lost … … passphrase=…&x/ }])
    t.equal(fatal.length, 1)
    t.notMatch(program.output(), /hhhh|eyJ|correcthorse/)
    t.equal(await encoder.closed, 'shutdown', 'the encoder gets SHUTDOWN')
    const udp = createSocket('udp4').bind(srtPort, '127.0.0.1')
    await once(udp, 'listening')
    udp.close()
    const tcp = connectTcp(Number(new URL(url).port), '127.0.0.1')
    const [error] = (await once(tcp, 'error')) as NodeJS.ErrnoException[]
    t.equal(error?.code, 'ECONNREFUSED')
  })
}

t.test('a service survives the end of its log reader', async (t) => {
  const { program, url } = await serve(t)
  program.child.stdout!.destroy()
  program.child.stderr!.destroy()
  const replies = []
  for (let call = 0; call < 20; call++) replies.push((await startStream(url)).status)
  t.ok(replies.every((status) => status === 200))
  program.child.kill('SIGTERM')
  t.equal(await program.exit, 0)
})
