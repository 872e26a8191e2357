/**
 * Floods of handshakes by anonymous callers and key holders: publishers and newcomers are not affected.
 */
import t from 'tap'
import { GroupType } from '../../src/srt/wire/extension.ts'
import { publishDemo } from '../support/demo-encoder.ts'
import { publishAsGroup } from '../support/group-encoder.ts'
import { connect } from '../../src/srt/index.ts'
import { startService, type TestService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { floodConclusions } from './attacks/conclusion-flood.ts'
import { floodGroups, type GroupAttack } from './attacks/socket-groups.ts'
import { fillWaitingPlaces } from './attacks/waiting-places.ts'
import type { Target } from './target.ts'

const NEWCOMERS = 8
/** Time for which a newcomer calls: that of `until`, which a busy machine does not reach. */
const CONNECT_MS = 120_000
const CONCLUSIONS = 12_000

type Test = Parameters<typeof startService>[0]

function targetOf({ server, hmacSecret, jwtSecret }: TestService): Target {
  const { httpPort, srtPort } = server
  return { host: '127.0.0.1', httpPort, srtPort, hmacSecret, jwtSecret }
}

/** @returns signal that aborts when the test ends */
function signalOf(t: Test): AbortSignal {
  const ended = new AbortController()
  t.teardown(async () => ended.abort())
  return ended.signal
}

/** Publishes until the test ends, with the largest latency, for a busy machine. */
async function startPublisher(t: Test, { server }: TestService): Promise<void> {
  const { srtUrl } = await server.startStream({ streamId: 'bystander' })
  publishDemo(t, `${srtUrl}&latency=8000`)
  await until('the bystander publishes', () => server.status('bystander').publisher)
}

/** Connects newcomers throughout the attack. @returns how many of them were let in */
async function connectNewcomers(
  t: Test,
  { server }: TestService,
  sent: () => number,
): Promise<number> {
  let connected = 0
  for (let number = 1; number <= NEWCOMERS; number++) {
    await until('more of the attack', () => {
      return sent() >= (CONCLUSIONS * number) / (NEWCOMERS + 1)
    })
    const { streamKey } = await server.startStream({ streamId: `newcomer-${number}` })
    const caller = await connect({
      host: '127.0.0.1',
      port: server.srtPort,
      streamId: streamKey,
      connectTimeoutMs: CONNECT_MS,
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
    const startMs = performance.now()
    let sent = 0
    const attack = floodConclusions(targetOf(service), signalOf(t), {
      ...{ networks: 3, perSec: 4000, conclusions: CONCLUSIONS },
      onBurst: (count) => (sent = count),
    })
    t.equal(await connectNewcomers(t, service, () => sent), NEWCOMERS)
    const { sent: total, answers } = await attack
    const elapsedSec = (performance.now() - startMs) / 1000
    t.equal(total, CONCLUSIONS)
    const answered = Object.values(answers).reduce((sum, count) => sum + count, 0)
    // Of each address 150 at once and 20 a second (source-limiter.ts).
    const limit = 3 * (150 + 20 * elapsedSec)
    t.ok(answered > 0 && answered <= limit, `${answered} were judged in ${elapsedSec} s`)
    t.match(service.server.status('bystander').publisher, { packetsDropped: 0 })
  },
)

t.test('floods of socket groups affect neither a bonded publisher nor newcomers', async (t) => {
  const service = await startService(t)
  const { server } = service
  const { streamKey } = await server.startStream({ streamId: 'bystander' })
  publishAsGroup(t, {
    ...{ type: GroupType.BROADCAST, streamKey, latencyMs: 8000 },
    ports: [server.srtPort, server.srtPort],
  })
  const lines = (streamId: string) => server.status(streamId).publisher?.lines?.length
  await until('the bystander publishes', () => lines('bystander') === 2)
  let sent = 0
  let mostLines = 0
  const attack = (what: GroupAttack, subnet: number) =>
    floodGroups(targetOf(service), signalOf(t), what, {
      ...{ networks: 3, perSec: 1000, conclusions: CONCLUSIONS, subnet },
      onBurst: (count) => {
        sent = count
        mostLines = Math.max(mostLines, lines('crowded') ?? 0)
      },
    })
  const attacks = [attack('strangers', 61), attack('unused-lines', 62), attack('wrong-sizes', 63)]
  t.equal(await connectNewcomers(t, service, () => sent), NEWCOMERS)
  const [strangers, members, sizes] = await Promise.all(attacks)
  t.ok(strangers!.answers[1010]! > 0)
  t.equal(strangers!.answers[-1], undefined, 'none of the strangers connects')
  t.ok(members!.answers[-1]! > 0, 'lines join')
  t.ok(members!.answers[1015]! > members!.answers[-1]!, 'most are refused')
  t.ok(mostLines >= 1 && mostLines <= 8, `${mostLines} lines`)
  t.ok(sizes!.answers[1015]! > (sizes!.answers[-1] ?? 0), 'no type that groups have')
  t.match(server.status('bystander').publisher, { packetsDropped: 0, lines: [{}, {}] })
})

t.test('callers with one key occupy two waiting places, and newcomers connect', async (t) => {
  const service = await startService(t)
  await startPublisher(t, service)
  let sent = 0
  const attack = fillWaitingPlaces(targetOf(service), signalOf(t), {
    ...{ perSec: 3000, conclusions: CONCLUSIONS },
    onBurst: (count) => (sent = count),
  })
  await until('the stream is crowded', () => service.server.findStream('crowded')?.encoder)
  t.equal(await connectNewcomers(t, service, () => sent), NEWCOMERS)
  await attack
  t.match(service.server.status('bystander').publisher, { packetsDropped: 0 })
})
