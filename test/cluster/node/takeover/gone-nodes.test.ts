/**
 * Nodes that are gone, and nodes that only seem so: real sockets, a registry in memory, virtual time.
 */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import {
  endLease,
  replaceEarlier,
  watchNext,
} from '../../../../src/cluster/node/takeover/gone-nodes.ts'
import { RENEW_MS } from '../../../../src/cluster/node/takeover/node-lease.ts'
import { freePort } from '../../../support/free-port.ts'
import { VirtualTime } from '../../../support/virtual-time.ts'
import { MemoryRegistry } from '../../registry/memory-registry.ts'
import type { ModelOptions } from '../../../../src/cluster/registry/registry-model.ts'

/** Nobody listens there. */
const URL = `http://127.0.0.1:${await freePort()}`

function createNodes(options?: Partial<ModelOptions>) {
  const time = new VirtualTime()
  const memory = new MemoryRegistry(time.clock, options)
  return {
    time,
    memory,
    /** A node that renews its lease until it is stopped. @returns stops it */
    startNode(node: string, url = URL) {
      const renew = () => void memory.model.renewNode({ node, url })
      renew()
      return time.every(RENEW_MS, renew)
    },
    live: () =>
      memory.model
        .listLiveNodes()
        .map(({ node }) => node)
        .toSorted(),
    watchNext: (own: string) => time.until(watchNext(memory.calls, own, time)),
    replaceEarlier: (node: string, url = URL) =>
      time.until(replaceEarlier(memory.calls, { node, url }, time)),
    async endLease(node: string) {
      const known = memory.model.listLiveNodes().find((each) => each.node === node)
      return time.until(endLease(memory.calls, known!, time))
    },
  }
}

/** @returns URL of a server that does this with each connection */
async function listen(t: Test, onConnection: (socket: Socket, end: () => void) => void) {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    onConnection(socket, () => server.close())
  })
  t.teardown(() => server.close())
  const port = await freePort()
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${port}`
}

const CASES = {
  'the next node': ({ watchNext }) => watchNext('a'),
  'an owner that refuses a call': ({ endLease }) => endLease('b'),
  'a node with the same URL': ({ replaceEarlier }) => replaceEarlier('a'),
} satisfies Record<string, (nodes: ReturnType<typeof createNodes>) => Promise<unknown>>

for (const [title, find] of Object.entries(CASES)) {
  t.test(`${title} is gone only if it does not renew its lease`, async (t) => {
    const nodes = createNodes()
    const stop = nodes.startNode('b')
    await find(nodes)
    t.strictSame(nodes.live(), ['b'])
    stop()
    await find(nodes)
    t.strictSame(nodes.live(), [])
  })
}

t.test('a lease is ended once a renewal would have come', async (t) => {
  const { time, startNode, endLease, live } = createNodes()
  startNode('b')()
  const fromMs = time.clock.wallMs()
  await time.pass(RENEW_MS)
  t.equal(await endLease('b'), true)
  t.equal(time.clock.wallMs() - fromMs, RENEW_MS + 100)
  t.strictSame(live(), [])
})

t.test('each node watches the next one, and the last one the first', async (t) => {
  const { startNode, watchNext, live } = createNodes()
  for (const node of ['d', 'b', 'c', 'a']) startNode(node)()
  await watchNext('b')
  t.strictSame(live(), ['a', 'b', 'd'])
  await watchNext('b')
  t.strictSame(live(), ['a', 'b'])
  await watchNext('b')
  t.strictSame(live(), ['b'])
  await watchNext('b')
  t.strictSame(live(), ['b'], 'not itself')
})

t.test('a node at whose URL a process listens keeps its lease', async (t) => {
  const { startNode, watchNext, live } = createNodes()
  const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'
  startNode('b', await listen(t, (socket) => socket.end(answer)))()
  await watchNext('a')
  t.strictSame(live(), ['b'])
  startNode('b', await listen(t, (socket) => socket.destroy()))()
  await watchNext('a')
  t.strictSame(live(), ['b'], 'one that resets connections')
})

t.test('a node that ends while it is asked is gone', async (t) => {
  const { startNode, watchNext, live } = createNodes()
  const url = await listen(t, (socket, end) => {
    end()
    socket.destroy()
  })
  startNode('b', url)()
  await watchNext('a')
  t.strictSame(live(), [])
})

t.test('two nodes with one URL learn of each other', async (t) => {
  const { startNode, replaceEarlier, live } = createNodes()
  startNode('a')
  startNode('c', `${URL}0`)
  t.equal(await replaceEarlier('a'), false, 'not of itself')
  const stop = startNode('b')
  t.equal(await replaceEarlier('a'), true)
  stop()
  t.equal(await replaceEarlier('a'), false)
  t.strictSame(live(), ['a', 'c'])
})

t.test('a node whose lease lapses meanwhile is none that lives', async (t) => {
  const { startNode, replaceEarlier } = createNodes({ leaseMs: 200 })
  startNode('b')()
  t.equal(await replaceEarlier('a'), false)
})
