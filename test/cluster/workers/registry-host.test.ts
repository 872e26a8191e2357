/**
 * The registry of the supervisor, called by its children over IPC.
 */
import type { ChildProcess } from 'node:child_process'
import { EventEmitter } from 'node:events'
import t from 'tap'
import { RegistryClient } from '../../../src/cluster/workers/registry-client.ts'
import { RegistryHost } from '../../../src/cluster/workers/registry-host.ts'
import { machineClock } from '../../../src/timing/clock.ts'

const NEXT = { options: { backup: undefined }, keyExpiresAtMs: Date.now() + 3_600_000 }

/** Both ends of the IPC channel of a child, with copies as `serialization: 'advanced'` makes them. */
function connect(host: RegistryHost) {
  const channel = new EventEmitter()
  const child = Object.assign(new EventEmitter(), {
    connected: true,
    send: (message: unknown) => channel.emit('message', structuredClone(message)),
  })
  host.serve(child as unknown as ChildProcess)
  const send = (message: unknown) => child.emit('message', structuredClone(message))
  const client = new RegistryClient(Object.assign(channel, { send }) as unknown as NodeJS.Process)
  return { child, channel, client }
}

function openHost(): RegistryHost {
  return new RegistryHost({ maxStreams: 1, clock: machineClock })
}

t.test('children share streams, outboxes and refusals', async (t) => {
  const host = openHost()
  const [a, b] = [connect(host).client, connect(host).client]
  await a.registry.renewNode({ node: 'a', url: 'http://a' })
  await a.registry.start('studio', NEXT)
  t.match(await a.registry.claim('studio', { node: 'a', epoch: 'e', seenFence: 0 }), {
    outcome: 'granted',
  })
  const stream = await b.registry.get('studio')
  t.match(stream, { owner: 'a', ownerUrl: 'http://a' })
  t.strictSame(stream?.options, {}, 'what is undefined is not there')
  await b.registry.renewNode({ node: 'c', url: 'http://c' })
  const excess = b.registry.start('other', NEXT)
  await t.rejects(excess, { code: 'TOO_MANY_STREAMS' }, 'the limit is that of all nodes')
  await t.rejects(b.registry.start('studio', { ...NEXT, publishPort: 5000 }), {
    code: 'BODY_INVALID',
    message: /^publish_port requires encryption/,
  })
  await t.rejects(b.registry.claim('studio', { node: 'b', epoch: 'f', seenFence: stream!.fence }), {
    code: 'REGISTRY_UNAVAILABLE',
    retryAfterSec: 1,
  })
  await a.outboxes.update('a', { events: [{ id: '1', text: 'x' }], over: [] })
  t.strictSame((await a.outboxes.update('a', { events: [], over: [] })).counts, new Map([['a', 1]]))
})

t.test('the streams of a child that has ended can be adopted with all their numbers', async (t) => {
  const host = openHost()
  const [a, b] = [connect(host), connect(host)]
  for (const [node, { client }] of Object.entries({ a, b }))
    await client.registry.renewNode({ node, url: `http://${node}` })
  await a.client.registry.start('studio', NEXT)
  const claimed = await a.client.registry.claim('studio', { node: 'a', epoch: 'e', seenFence: 0 })
  t.ok(claimed.outcome === 'granted')
  t.strictSame(await b.client.registry.orphans('b', { limit: 10 }), [])
  a.child.connected = false
  a.child.emit('exit')
  t.match(await b.client.registry.orphans('b', { limit: 10 }), [{ id: 'studio', isGone: true }])
})

t.test('a command reaches the child that has the node, if there is one', async (t) => {
  const host = openHost()
  const [a, b] = [connect(host), connect(host)]
  await b.client.registry.renewNode({ node: 'b', url: 'http://b' })
  const commands: unknown[] = []
  b.client.readCommands((command) => commands.push(command))
  await a.client.sendCommand('b', { refresh: 'studio' })
  t.strictSame(commands, [{ refresh: 'studio' }])
  b.child.connected = false
  b.child.emit('exit')
  const lost = a.client.sendCommand('b', { refresh: 'other' })
  await t.rejects(lost, { code: 'REGISTRY_UNAVAILABLE' })
  t.equal(commands.length, 1)
})

t.test('without a supervisor the registry is away', async (t) => {
  const { channel, client } = connect(openHost())
  t.equal(client.isReady, true)
  const silent = new EventEmitter()
  const waiting = new RegistryClient(Object.assign(silent, { send: () => true }) as never)
  const call = waiting.registry.get('studio')
  for (const each of [silent, channel]) each.emit('disconnect')
  await t.rejects(call, { code: 'REGISTRY_UNAVAILABLE' })
  await t.rejects(client.registry.get('studio'), { code: 'REGISTRY_UNAVAILABLE' })
  t.equal(client.isReady, false)
})
