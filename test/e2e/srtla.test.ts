/**
 * A bonded encoder: three lines over relays that simulate a bad network, to the service's `SRTLA_PORT`.
 */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { publishDemo } from '../support/demo-encoder.ts'
import { freePort } from '../support/free-port.ts'
import { startService } from '../support/service.ts'
import { startSrtlaSender } from '../support/srtla-proxy.ts'
import { startRelay } from '../support/udp-relay.ts'
import { until } from '../support/until.ts'

const TOKEN = randomBytes(32).toString('hex')

/** Long enough for repairs on a busy machine. */
const LATENCY_MS = 5000

t.test('a bonded encoder publishes as one, while lines die and get other ports', async (t) => {
  const port = await freePort()
  const { server, url, api } = await startService(t, {
    srtla: { port },
    metrics: { token: TOKEN },
  })
  const relays = [20, 100, 60].map((delayMs, index) => {
    const link = { loss: 0.05, delayMs }
    return startRelay({ targetPort: port, seed: index * 10, forward: link, backward: link })
  })
  for (const relay of relays) t.teardown(() => relay.close())
  const proxy = await startSrtlaSender(
    t,
    relays.map((relay) => relay.port),
  )
  const { streamKey } = await server.startStream({ streamId: 'field' })
  await until('all lines have joined', () => proxy.sender.lines.every(({ joined }) => joined))
  publishDemo(t, `srt://127.0.0.1:${proxy.port}?streamid=${streamKey}&latency=${LATENCY_MS}`)
  const report = () => server.status('field').publisher
  const lines = () => report()?.lines ?? []
  await until('all lines carry media, and have reported their RTT', () => {
    const used = lines().filter(
      ({ packetsReceived, rttMs = 0 }) => packetsReceived > 20 && rttMs > 0,
    )
    return used.length === relays.length
  })
  const { remote } = report()!
  t.match(
    lines().map(({ line }) => line),
    [1, 2, 3],
  )
  const [first, second] = relays
  first!.rebind()
  second!.blackhole(5000)
  await until('a line has a new port', () => lines().some(({ line }) => line === 4))
  const isHeard = ({ heardUs }: { heardUs: number }) => performance.now() * 1000 - heardUs < 2e6
  await until('all lines are back', () => proxy.sender.lines.every(isHeard))
  t.strictSame(proxy.sender.refusals, [])

  const { body } = await api('status', { stream_id: 'field' })
  t.match(body.data, {
    publisher: {
      remote,
      packets_dropped: 0,
      lines: [{ line: Number, remote: /^127\.0\.0\.1:\d+$/, bitrate_bps: Number, rtt_ms: Number }],
    },
    sources: [{ connection: { lines: [{ packets_received: Number }] } }],
  })
  const headers = { authorization: `Bearer ${TOKEN}` }
  const metrics = await (await fetch(`${url}/metrics`, { headers })).text()
  t.match(metrics, /^millrace_srtla_groups 1$/m)
  t.match(metrics, /^millrace_srt_line_received_bytes_total\{stream="field",line="3"\} \d+$/m)
  t.notMatch(metrics, '127.0.0.1')
})

t.test('names the setting of a port that is in use', async (t) => {
  const { server } = await startService(t)
  await t.rejects(startService(t, { srtla: { port: server.srtPort } }), {
    code: 'ADDRESS_IN_USE',
    message: /choose another srtla\.port/,
  })
})
