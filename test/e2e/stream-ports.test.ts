/**
 * Ports that a stream has to itself, for encoders that send no stream id.
 */
import t from 'tap'
import { connect } from '../../src/srt/index.ts'
import { publishDemo } from '../support/demo-encoder.ts'
import { freePorts } from '../support/free-port.ts'
import { startService, type TestService } from '../support/service.ts'
import { startSrtlaSender } from '../support/srtla-proxy.ts'
import { until } from '../support/until.ts'

/** Service with one such port. */
async function startWithPort(t: Parameters<typeof startService>[0]) {
  const [port] = (await freePorts(1)) as [number]
  const service = await startService(t, { srt: { streamPorts: `${port}-${port}` } })
  const start = (body: object) => service.api('start-stream', { stream_id: 'studio', ...body })
  return { ...service, port, start }
}

const statusOf = ({ server }: TestService) => server.status('studio')

t.test('an encoder without a stream id publishes at the port of its stream', async (t) => {
  const service = await startWithPort(t)
  const { port } = service
  const { data } = (await service.start({ encryption: true, publish_port: port })).body
  const passphrase = String(data['passphrase'])
  t.equal(data['publish_url'], `srt://127.0.0.1:${port}?passphrase=${passphrase}&pbkeylen=32`)
  t.equal(statusOf(service).publishPort, port)
  await t.rejects(connect({ host: '127.0.0.1', port }), { code: 'SRT_REJECTED' }, 'no passphrase')
  publishDemo(t, String(data['publish_url']), { mayFail: true })
  await until('a live stream', () => statusOf(service).live)
  t.equal(statusOf(service).publisher?.packetsUndecryptable, 0)

  await service.api('stop-stream', { stream_id: 'studio' })
  t.equal(statusOf(service).publishPort, undefined)
  await t.rejects(connect({ host: '127.0.0.1', port, passphrase }), 'the port is closed')
  const again = await service.start({ encryption: true, publish_port: port })
  t.equal(again.status, 200, 'and may be opened again')
})

t.test('a stream id counts at the port of a stream as well, and there is no other', async (t) => {
  const service = await startWithPort(t)
  const { port } = service
  const own = await service.start({ allow_from: ['127.0.0.1'], publish_port: port })
  const other = await service.api('start-stream', { stream_id: 'other' })
  const call = (streamId?: string) =>
    connect({ host: '127.0.0.1', port, ...(streamId !== undefined && { streamId }) })
  await t.rejects(call('studio'), { message: /1010/ })
  await t.rejects(call(String(other.body.data['stream_key'])), { message: /1010/ })
  for (const streamId of [undefined, String(own.body.data['short_stream_key'])]) {
    const caller = await call(streamId)
    await until('it publishes', () => statusOf(service).status === 'STREAMING')
    await caller.close()
    await until('it has left', () => statusOf(service).status === 'INTERRUPTED')
  }
  await t.rejects(connect({ host: '127.0.0.1', port: service.server.srtPort }), { message: /1010/ })
  await service.start({ allow_from: ['192.0.2.0/24'] })
  await t.rejects(call(), 'from elsewhere')
})

t.test('a port is refused without a range, without protection, and when it is taken', async (t) => {
  const service = await startWithPort(t)
  const { port, start } = service
  const without = await startService(t)
  const refused = (call: Promise<unknown>, message: RegExp) => t.rejects(call, { message })
  await refused(without.api('start-stream', { stream_id: 'a', publish_port: port }), /400.*not set/)
  await refused(start({ publish_port: port + 1, encryption: true }), /one of SRT_STREAM_PORTS/)
  await refused(start({ publish_port: port }), /400.*requires encryption or allow_from/)
  t.equal((await start({ publish_port: port, encryption: true })).status, 200)
  t.equal((await start({ publish_port: port })).status, 200, 'its own port')
  const taken = { stream_id: 'other', publish_port: port, encryption: true }
  await refused(service.api('start-stream', taken), /belongs to another stream/)
  await refused(service.api('status', { stream_id: 'other' }), /404/)
})

t.test('the ports of all encoders are refused, and stay open', async (t) => {
  const ports = (await freePorts(2)).toSorted((one, other) => one - other) as [number, number]
  const [srtPort, srtlaPort] = ports
  const service = await startService(t, {
    srt: { port: srtPort, streamPorts: `${srtPort}-${srtlaPort}` },
    srtla: { port: srtlaPort },
  })
  for (const port of ports) {
    const request = { stream_id: 'studio', publish_port: port, encryption: true }
    await t.rejects(service.api('start-stream', request), /400.*is SRT_PORT or SRTLA_PORT/)
  }
  const lines = await startSrtlaSender(t, [srtlaPort])
  await until('a line joins', () => lines.sender.lines[0]!.joined)
  const { body } = await service.api('start-stream', { stream_id: 'studio' })
  const { stream_key: streamId } = body.data
  const caller = await connect({ host: '127.0.0.1', port: srtPort, streamId })
  await caller.close()
})
