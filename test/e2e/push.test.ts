/**
 * Streams that are sent to listeners of others, and to another instance of this service.
 */
import t, { type Test } from 'tap'
import { createListener, type Listener } from '../../src/srt/index.ts'
import { publishDemo } from '../support/demo-encoder.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'

/** A busy machine is never as late. */
const LATENCY = '&latency=3000'

t.test('a stream is sent to another service and to a listener, again and again', async (t) => {
  const { server, api, tryApi } = await startService(t)
  const second = await startService(t)
  const target = await second.server.startStream({ streamId: 'copy', encryption: true })
  const own = await listen(t)
  const ofOwn = `srt://127.0.0.1:${own.listener.address().port}?streamid=KEEPOUT${LATENCY}`
  const pushUrls = [target.srtUrl + LATENCY, ofOwn]
  const { data } = (await api('start-stream', { stream_id: 'studio', push_urls: pushUrls })).body
  publishDemo(t, data['srt_url'] + LATENCY, { mayFail: true })
  await until('live there', () => second.server.status('copy').live)
  await until('media', () => own.bytes() > 200_000)
  t.equal(own.requests[0], 'KEEPOUT')

  const pushes = () => server.status('studio').pushes
  const record = (await api('status', { stream_id: 'studio' })).body.data
  t.match(record['pushes'], [
    { remote: `127.0.0.1:${second.server.srtPort}`, state: 'CONNECTED', calls: 1 },
    { remote: /^127/, state: 'CONNECTED', connection: { latency_ms: 3000, packets_dropped: 0 } },
  ])
  t.notMatch(JSON.stringify(record), /KEEPOUT|passphrase|token=/)
  t.strictSame(record['readers'], [])
  t.equal(second.server.status('copy').publisher?.packetsLost, 0)

  own.end()
  await until('lost', () => pushes()[1]?.state !== 'CONNECTED')
  t.match(pushes()[1], { error: 'the peer has ended the connection' })
  t.equal(pushes()[0]?.state, 'CONNECTED')
  const before = own.bytes()
  await until('there again', () => own.bytes() > before + 100_000)
  t.equal(pushes()[1]?.calls, 2)

  await api('start-stream', { stream_id: 'studio', push_urls: [target.srtUrl + LATENCY] })
  await until('it has left', () => own.listener.connectionCount === 0)
  t.equal(pushes().length, 1)
  t.equal(pushes()[0]?.calls, 1, 'the other one is not disturbed')
  await server.stopStream('studio')
  await until('stopped there', () => second.server.status('copy').status === 'INTERRUPTED')
  await until('forgotten', () => pushes().length === 0)

  for (const wrong of ['http://host:9000', 'srt://169.254.169.254:9000', 'srt://host'])
    t.match(await tryApi('start-stream', { stream_id: 'studio', push_urls: [wrong] }), {
      status: 400,
      body: { code: 'BODY_INVALID', error: /^push_urls: / },
    })
  const five = Array.from({ length: 5 }, (_, index) => `srt://host:${9000 + index}`)
  t.match(await tryApi('start-stream', { stream_id: 'studio', push_urls: five }), {
    status: 400,
    body: { error: /^push_urls must be at most 4 SRT URLs/ },
  })
})

t.test('a listener that refuses is a warning, and costs the stream nothing', async (t) => {
  const { server, api } = await startService(t)
  const second = await startService(t)
  const url = `srt://127.0.0.1:${second.server.srtPort}?streamid=mode=publish,rid=a,token=KEEPOUT`
  const { data } = (await api('start-stream', { stream_id: 'studio', push_urls: [url] })).body
  publishDemo(t, data['srt_url'] + LATENCY, { mayFail: true })
  await until('live', () => server.status('studio').live)
  const { pushes, warnings, publisher } = server.status('studio')
  t.match(pushes, [{ state: 'WAITING', error: /1010/ }])
  t.match(
    warnings.map(({ code }) => code),
    ['PUSH_FAILING'],
  )
  t.notMatch(JSON.stringify([pushes, warnings]), /KEEPOUT/)
  t.equal(publisher?.packetsDropped, 0)
})

interface OwnListener {
  readonly listener: Listener
  /** Stream ids of those that have called. */
  readonly requests: string[]
  bytes(): number
  /** Ends the latest connection. */
  end(): void
}

async function listen(t: Test): Promise<OwnListener> {
  const requests: string[] = []
  let bytes = 0
  let end = () => {}
  const listener = await createListener({
    ...{ host: '127.0.0.1', port: 0, latencyMs: 20 },
    accept: async ({ streamId }) => {
      requests.push(streamId)
      return {
        sink: {
          open: (connection) => (end = () => connection.close()),
          push: ({ length }) => (bytes += length),
          gap: () => t.fail('packets are missing'),
          end: () => undefined,
        },
      }
    },
  })
  t.teardown(() => listener.close())
  return { listener, requests, bytes: () => bytes, end: () => end() }
}
