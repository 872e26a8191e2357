/**
 * Calls between nodes over real HTTP, and requests that no node has signed.
 */
import t from 'tap'
import { systemClock } from '../../src/timing/clock.ts'
import { NodeClient } from '../../src/cluster/edge/node-client.ts'
import { callNode, isRefused } from '../../src/cluster/node/call-node.ts'
import { NodeCalls } from '../../src/auth/node-calls.ts'
import { MillraceError } from '../../src/errors.ts'
import { freePort } from '../support/free-port.ts'
import { MemoryService, startApp } from '../http/memory-service.ts'

const calls = new NodeCalls(() => ['c'.repeat(32)], systemClock)
const foreign = new NodeCalls(() => ['f'.repeat(32)], systemClock)

t.test('answers the calls of nodes, and refuses all others', async (t) => {
  const routes = {
    echo: async (body: unknown) => ({ heard: body }),
    refuse: async () => {
      throw new MillraceError('STREAM_NOT_FOUND')
    },
  }
  const app = await startApp(t, new MemoryService(), {}, undefined, {
    nodeCalls: calls,
    nodeRoutes: routes,
  })
  const call = (name: string, by = calls) =>
    callNode(new NodeClient({ calls: by }), {
      url: `${app.url}/`,
      call: name,
      body: { text: 'ä' },
      timeoutMs: 2000,
    })
  t.strictSame(await call('echo'), { heard: { text: 'ä' } })
  await t.rejects(call('refuse'), { code: 'STREAM_NOT_FOUND' })
  await t.rejects(call('echo', foreign), { code: 'NODE_CALL_INVALID' })
  await t.rejects(call('other'), { code: 'ROUTE_NOT_FOUND' })

  const post = async (headers: Record<string, string>, body: string) => {
    const reply = await fetch(`${app.url}/node/echo`, { method: 'POST', headers, body })
    return reply.status
  }
  const json = { 'content-type': 'application/json' }
  t.equal(await post(json, '{}'), 404, 'unsigned')
  const echo = { method: 'POST', path: '/node/echo', body: Buffer.from('{}') }
  const signed = calls.sign(echo)
  t.equal(await post({ ...json, 'millrace-call': signed }, '{"a":1}'), 403, 'another body')
  const passedOn = calls.sign({ ...echo, client: '192.0.2.1' })
  t.equal(await post({ ...json, 'millrace-call': passedOn }, '{}'), 404, 'of a client')
})

t.test('tells a node that is gone from one that does not answer', async (t) => {
  const refused = callNode(new NodeClient({ calls }), {
    url: `http://127.0.0.1:${await freePort()}`,
    call: 'echo',
    body: {},
    timeoutMs: 1000,
  })
  t.equal(await refused.catch(isRefused), true)
  t.equal(isRefused(new MillraceError('STREAM_NOT_FOUND')), false)
})
