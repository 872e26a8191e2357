/**
 * Floods of the SRTLA port: a bonded publisher and bonded newcomers are not affected.
 */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { connect } from '../../src/srt/index.ts'
import { publishDemo } from '../support/demo-encoder.ts'
import { freePort } from '../support/free-port.ts'
import { startService } from '../support/service.ts'
import { startSrtlaSender } from '../support/srtla-proxy.ts'
import { until } from '../support/until.ts'
import { floodSrtla } from './attacks/srtla.ts'

t.test('floods of registrations, unused groups and strangers affect nobody', async (t) => {
  const srtlaPort = await freePort()
  const token = randomBytes(32).toString('hex')
  const { server, url } = await startService(t, {
    srtla: { port: srtlaPort },
    metrics: { token },
  })
  const bonded = await startSrtlaSender(t, [srtlaPort, srtlaPort])
  const { streamKey } = await server.startStream({ streamId: 'bystander' })
  await until('the lines have joined', () => bonded.sender.lines.every(({ joined }) => joined))
  publishDemo(t, `srt://127.0.0.1:${bonded.port}?streamid=${streamKey}&latency=5000`)
  await until('the bystander publishes', () => server.status('bystander').publisher)

  const target = {
    ...{ host: '127.0.0.1', httpPort: 0, srtPort: 0, hmacSecret: '', jwtSecret: '' },
    srtlaPort,
  }
  const signal = AbortSignal.timeout(60_000)
  const attacks = Promise.all([
    floodSrtla(target, signal, {
      ...{ what: 'registrations', networks: 3, perSec: 3000, datagrams: 9000, subnet: 81 },
    }),
    floodSrtla(target, signal, {
      ...{ what: 'groups', networks: 8, perSec: 1000, datagrams: 3000, subnet: 82 },
    }),
    floodSrtla(target, signal, {
      ...{ what: 'strangers', networks: 3, perSec: 3000, datagrams: 9000, subnet: 83 },
    }),
  ])
  const { streamKey: newKey } = await server.startStream({ streamId: 'newcomer' })
  const newcomer = await startSrtlaSender(t, [srtlaPort])
  await until('a newcomer joins', () => newcomer.sender.lines.every(({ joined }) => joined))
  const { port } = newcomer
  const caller = await connect({
    ...{ host: '127.0.0.1', port, streamId: newKey, connectTimeoutMs: 20_000 },
  })
  t.teardown(() => caller.close())

  const [registrations, groups, strangers] = await attacks
  t.strictSame(strangers.replies, {}, 'strangers get no answer')
  t.strictSame(Object.keys(registrations.replies), ['9201'])
  t.ok(registrations.replies['9201']! <= registrations.sent)
  t.ok(groups.replies['9210']! > (groups.replies['9202'] ?? 0), 'most groups are refused')
  const headers = { authorization: `Bearer ${token}` }
  const metrics = await (await fetch(`${url}/metrics`, { headers })).text()
  const valueOf = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(metrics)?.[1])
  t.ok(valueOf('millrace_srtla_groups') <= 200)
  t.ok(valueOf('millrace_srtla_lines') <= 20, 'an attacker has as many lines as addresses')
  t.match(server.status('bystander').publisher, { packetsDropped: 0, lines: [{}, {}] })
})
