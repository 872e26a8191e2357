/**
 * Which addresses are called, over real sockets and a real name server.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { parseAllowList } from '../../src/outbound/address-rules.ts'
import { SrtCaller } from '../../src/service/srt-caller.ts'
import { createListener, parseSrtUrl } from '../../src/srt/index.ts'
import { startNameServer } from '../support/name-server.ts'

async function setUp(t: Test, allow: string, names: Readonly<Record<string, readonly string[]>>) {
  const { createResolver } = await startNameServer(t, (name) => names[name] ?? 'unknown')
  const options = { allowed: parseAllowList(allow)!, onWarning: () => t.fail('no warning') }
  const srtCaller = new SrtCaller({ ...options, createResolver })
  t.teardown(() => srtCaller.close())
  return (url: string, connectTimeoutMs = 300) =>
    srtCaller.call(parseSrtUrl(url), { connectTimeoutMs })
}

async function listen(t: Test) {
  const calls: string[] = []
  const listener = await createListener({
    ...{ host: '127.0.0.1', port: 0, latencyMs: 120 },
    accept: async ({ streamId }) => {
      calls.push(streamId)
      return { reject: 2409 }
    },
  })
  t.teardown(() => listener.close())
  return { calls, port: listener.address().port }
}

t.test('calls those addresses of a name that are allowed, one after the other', async (t) => {
  const { calls, port } = await listen(t)
  const call = await setUp(t, '127.0.0.0/8', {
    'camera.example': ['169.254.169.254', '10.0.0.1', '127.0.0.77', '127.0.0.1'],
    'metadata.example': ['169.254.169.254', '100.100.100.200'],
    'private.example': ['10.0.0.1'],
  })
  // Nobody answers at 127.0.0.77.
  await t.rejects(call(`srt://camera.example:${port}?streamid=x`), {
    ...{ name: 'MillraceError', code: 'SRT_REJECTED', message: /: 2409 \(CONFLICT\)/ },
  })
  t.strictSame(calls, ['x'], 'a refusal is final')
  for (const name of ['metadata.example', 'private.example']) {
    const message = `${name} is at no address that PULL_ALLOW allows, or at a link-local or metadata address`
    await t.rejects(call(`srt://${name}:${port}`), { code: 'ADDRESS_FORBIDDEN', message })
  }
  await t.rejects(call(`srt://dead.example:${port}?streamid=SECRET`), {
    code: 'SRT_TIMEOUT',
    message: 'dead.example cannot be reached (ENOTFOUND): check host and network',
  })
})

t.test('a name of many addresses costs one call four attempts', async (t) => {
  const socket = createSocket('udp4')
  const local = new Set<string>()
  socket.on('message', (_, { port }) => local.add(String(port)))
  socket.bind(0, '0.0.0.0')
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  const addresses = Array.from({ length: 50 }, (_, index) => `127.0.1.${index + 1}`)
  const call = await setUp(t, '', { 'many.example': addresses })
  await t.rejects(call(`srt://many.example:${socket.address().port}`, 50), { code: 'SRT_TIMEOUT' })
  t.equal(local.size, 4)
})
