/**
 * Floods of handshakes by anonymous callers and key holders: publishers and newcomers are not affected.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { publishDemo } from '../support/demo-encoder.ts'
import { connect } from '../../src/srt/index.ts'
import { startService, type TestService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { floodConclusions } from './attacks/conclusion-flood.ts'
import { fillWaitingPlaces } from './attacks/waiting-places.ts'
import type { Target } from './target.ts'

const NEWCOMERS = 8
/** Pause between newcomers, so that they call throughout the attack. */
const NEWCOMER_EACH_MS = 200

type Test = Parameters<typeof startService>[0]

function targetOf({ server, hmacSecret, jwtSecret }: TestService): Target {
  const { httpPort, srtPort } = server
  return { host: '127.0.0.1', httpPort, srtPort, hmacSecret, jwtSecret }
}

/** Publishes until the test ends, with a latency long enough for repairs on a busy machine. */
async function startPublisher(t: Test, { server }: TestService): Promise<void> {
  const { srtUrl } = await server.startStream({ streamId: 'bystander' })
  publishDemo(t, `${srtUrl}&latency=5000`)
  await until('the bystander publishes', () => server.status('bystander').publisher)
}

/** @returns how many of them were let in */
async function connectNewcomers(t: Test, { server }: TestService): Promise<number> {
  let connected = 0
  for (let number = 0; number < NEWCOMERS; number++) {
    // The attack has no progress to wait for.
    await sleep(NEWCOMER_EACH_MS)
    const { streamKey } = await server.startStream({ streamId: `newcomer-${number}` })
    const caller = await connect({
      host: '127.0.0.1',
      port: server.srtPort,
      streamId: streamKey,
      connectTimeoutMs: 20_000,
    }).catch(() => undefined)
    if (caller === undefined) continue
    connected++
    t.teardown(() => caller.close())
  }
  return connected
}

t.test(
  'a flood of conclusions with bad tokens is answered in part, and newcomers connect',
  async (t) => {
    const service = await startService(t)
    await startPublisher(t, service)
    const attack = floodConclusions(targetOf(service), AbortSignal.timeout(60_000), {
      perSec: 4000,
      conclusions: 12_000,
    })
    t.equal(await connectNewcomers(t, service), NEWCOMERS)
    const { sent, answers } = await attack
    t.equal(sent, 12_000)
    const answered = Object.values(answers).reduce((sum, count) => sum + count, 0)
    t.ok(answered > 0 && answered < sent / 6, `${answered} of ${sent} were judged`)
    t.match(service.server.status('bystander').publisher, { packetsDropped: 0 })
  },
)

t.test('callers with one key occupy two waiting places, and newcomers connect', async (t) => {
  const service = await startService(t)
  await startPublisher(t, service)
  const attack = fillWaitingPlaces(targetOf(service), AbortSignal.timeout(60_000), {
    perSec: 3000,
    conclusions: 9000,
  })
  await until('the stream is crowded', () => service.server.findStream('crowded')?.encoder)
  t.equal(await connectNewcomers(t, service), NEWCOMERS)
  await attack
  t.match(service.server.status('bystander').publisher, { packetsDropped: 0 })
})
