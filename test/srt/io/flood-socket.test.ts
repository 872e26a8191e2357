/**
 * The flood of `flood.test.ts` over real sockets, with the datagrams of two seconds. Each burst waits until the
 * previous one is read, so that the kernel drops nothing, on a slow machine either.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import t from 'tap'
import { forgeConclusion, forgeInduction } from '../../../bench/srt-flood/forged.ts'
import { connect, createListener } from '../../../src/srt/index.ts'
import { createRandom } from '../../support/random.ts'
import { until } from '../../support/until.ts'

const BURSTS = 500
const INDUCTIONS = 80
const CONCLUSIONS = 20
/** Inductions per second that are answered for one network (`induction-limiter.ts`), and the initial burst. */
const ANSWERED_PER_SEC = 1000

const HOST = '127.0.0.1'

t.test('publishers lose nothing in a flood of handshakes, which leaves no state', async (t) => {
  const received: Record<string, number[]> = { first: [], second: [], third: [] }
  const listener = await createListener({
    host: HOST,
    port: 0,
    // Long enough for repairs on a busy machine.
    latencyMs: 8000,
    accept: async ({ streamId }) => ({
      sink: {
        open: () => {},
        push: (payload) => received[streamId]?.push(payload.readUInt32BE()),
        gap: (lostPackets) => t.fail(`${lostPackets} packets lost`),
        end: () => {},
      },
    }),
  })
  t.teardown(() => listener.close())
  const { port } = listener.address()
  const call = (streamId: string) =>
    connect({ host: HOST, port, streamId, connectTimeoutMs: 20_000, idleTimeoutMs: 20_000 })
  const publishers = await Promise.all(Object.keys(received).map(call))

  const attacker = createSocket('udp4')
  t.teardown(() => attacker.close())
  const connected = once(attacker, 'connect')
  attacker.connect(port, HOST)
  await connected

  const random = createRandom(1)
  const before = listener.stats()
  const startMs = performance.now()
  for (let burst = 0; burst < BURSTS; burst++) {
    for (let i = 0; i < INDUCTIONS; i++) attacker.send(forgeInduction(random))
    for (let i = 0; i < CONCLUSIONS; i++) attacker.send(forgeConclusion(random))
    const payload = Buffer.alloc(1316)
    payload.writeUInt32BE(burst)
    for (const publisher of publishers) {
      if (!publisher.send(payload)) t.fail('a payload was not taken')
    }
    const isRead = () => {
      const { inductions, badCookies } = listener.stats()
      return (
        inductions - before.inductions === (burst + 1) * INDUCTIONS &&
        badCookies - before.badCookies === (burst + 1) * CONCLUSIONS
      )
    }
    await until(`burst ${burst}`, isRead, { everyMs: 1 })
  }
  const elapsedSec = (performance.now() - startMs) / 1000
  const sent = Array.from({ length: BURSTS }, (_, number) => number)
  await until('all payloads', () => Object.values(received).every(({ length }) => length >= BURSTS))
  for (const [name, numbers] of Object.entries(received)) t.strictSame(numbers, sent, name)

  const { inductions, inductionsDropped, accepted } = listener.stats()
  const answered = inductions - before.inductions - (inductionsDropped - before.inductionsDropped)
  t.ok(answered <= ANSWERED_PER_SEC * (1 + elapsedSec), `${answered} answers`)
  t.equal(accepted, publishers.length)
  t.equal(listener.connectionCount, publishers.length, 'no other caller is connected')

  await call('a late caller')
  t.equal(listener.connectionCount, publishers.length + 1, 'a later caller connects')
})
