/**
 * What the log of an edge says about its origin.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { createEdgeServer } from '../../../src/cluster/edge/edge-server.ts'
import { OriginWatch } from '../../../src/cluster/edge/origin-watch.ts'
import { MillraceError } from '../../../src/errors.ts'
import { createLogger } from '../../../src/logger.ts'
import { freePort } from '../../support/free-port.ts'
import { until } from '../../support/until.ts'

const AWAY =
  'the origin does not answer: viewers get 503, for cached streams after three target durations. ' +
  'Check EDGE_OF, and that the origin runs'
const BACK = 'the origin answers again'

function log() {
  const lines: Record<string, unknown>[] = []
  const write = (line: string) => void lines.push(JSON.parse(line))
  return { lines, logger: createLogger('info', { write }) }
}

t.test(
  'an edge says once that its origin is away, at the start too, and once that it is back',
  async (t) => {
    const { lines, logger } = log()
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    const edge = await createEdgeServer({
      ...{ logger, public: { host: '127.0.0.1' }, http: { host: '127.0.0.1', port: 0 } },
      ...{ edgeOf: url, hmacSecret: 'h'.repeat(32), jwtSecret: 'j'.repeat(32) },
    })
    t.teardown(() => edge.close())
    const said = () => lines.filter(({ origin, msg }) => origin === url && msg !== 'listening')
    const ready = async () => (await fetch(`http://127.0.0.1:${edge.port}/health/ready`)).status
    await until('a line', () => said().length === 1)
    t.match(said(), [{ level: 40, reason: 'ECONNREFUSED', msg: AWAY }])
    t.equal(await ready(), 503)

    let asked = 0
    const origin = createServer((_request, reply) => {
      asked++
      reply.end('{"status":"live"}')
    })
    t.teardown(() => origin.close())
    await once(origin.listen(port, '127.0.0.1'), 'listening')
    await until('it is back', () => said().length === 2)
    t.match(said()[1], { level: 30, msg: BACK })
    t.equal(await ready(), 200)
    const before = asked
    await until('asked again', () => asked > before)
    t.equal(said().length, 2)

    origin.close()
    origin.closeAllConnections()
    await until('it is away again', () => said().length === 3)
    t.match(said()[2], { level: 40, msg: AWAY })
  },
)

t.test('an origin that does not reply is asked again after 3 s', async (t) => {
  const { lines, logger } = log()
  let asked = 0
  const origin = createServer((_request, reply) => {
    if (asked++ > 0) reply.end('{"status":"live"}')
  })
  await once(origin.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => origin.close())
  const { port } = origin.address() as AddressInfo
  const edge = await createEdgeServer({
    ...{ logger, public: { host: '127.0.0.1' }, http: { host: '127.0.0.1', port: 0 } },
    ...{
      edgeOf: `http://127.0.0.1:${port}`,
      hmacSecret: 'h'.repeat(32),
      jwtSecret: 'j'.repeat(32),
    },
  })
  t.teardown(() => edge.close())
  const said = () => lines.filter(({ msg }) => msg === AWAY || msg === BACK)
  await until('it is back', () => said().length === 2)
  t.match(said(), [{ msg: AWAY, reason: 'no answer in 3 s' }, { msg: BACK }])
})

function scripted(t: Test) {
  const { lines, logger } = log()
  const replies: (number | Error)[] = []
  const closing = new AbortController()
  const watch = new OriginWatch({
    client: {
      get: async () => {
        const reply = replies.shift()!
        if (reply instanceof Error) throw reply
        return { status: reply, headers: {}, bytes: Buffer.alloc(0) }
      },
    },
    url: 'https://origin.example.org',
    signal: closing.signal,
    logger,
  })
  const check = async (given: (number | Error)[], said: (string | undefined)[][]) => {
    replies.push(...given)
    for (const _ of given) await watch.probe()
    t.strictSame(
      lines.splice(0).map(({ msg, reason }) => [msg, reason]),
      said,
    )
  }
  return { watch, check, closing }
}

t.test('an origin that has answered is away after three failures in a row', async (t) => {
  const { watch, check, closing } = scripted(t)
  const lost = new Error('other side closed')
  await check([200, 404, lost, lost, 200, lost, lost, 200], [])
  await check([504, 502, lost], [[AWAY, 'other side closed']])
  t.equal(watch.isAway, true)
  await check([lost, 200, 200], [[BACK, undefined]])
  await check([503, 503, 503, 500], [])
  closing.abort()
  await check([lost, lost, lost], [])
})

t.test('the first probe of an origin decides alone', async (t) => {
  await scripted(t).check([502, 502], [[AWAY, 'answered 502']])
})

t.test('a limit of the edge says nothing about its origin', async (t) => {
  const { watch, check } = scripted(t)
  const limit = new MillraceError('TOO_MANY_WAITING')
  await check([limit, limit, limit, 200, limit, limit, limit], [])
  await check([502, limit, 502, limit, 502, limit], [[AWAY, 'answered 502']])
  t.equal(watch.isAway, true)
})

t.test('an origin that is slow is not asked twice at once', async (t) => {
  const waiting: (() => void)[] = []
  const watch = new OriginWatch({
    client: {
      get: async () => {
        await new Promise<void>((resolve) => void waiting.push(resolve))
        return { status: 200, headers: {}, bytes: Buffer.alloc(0) }
      },
    },
    url: 'https://origin.example.org',
    signal: new AbortController().signal,
    logger: log().logger,
  })
  const first = watch.probe()
  await watch.probe()
  t.equal(waiting.length, 1)
  waiting[0]!()
  await first
  void watch.probe()
  t.equal(waiting.length, 2)
})
