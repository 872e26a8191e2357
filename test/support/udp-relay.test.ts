import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import t from 'tap'
import { startRelay, type RelayOptions, type UdpRelay } from './udp-relay.ts'
import { until } from './until.ts'

interface Test {
  teardown(close: () => unknown): unknown
}

interface Arrival {
  readonly from: number
  readonly text: string
}

interface Peer {
  readonly port: number
  readonly arrivals: Arrival[]
  send(text: string, port: number): void
  close(): void
}

async function openPeer(t: Test, { echo = false } = {}): Promise<Peer> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4 * 1024 * 1024 })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  let open = true
  const close = () => {
    if (open) socket.close()
    open = false
  }
  t.teardown(close)
  const peer: Peer = {
    port: socket.address().port,
    arrivals: [],
    send: (text, port) => socket.send(text, port, '127.0.0.1'),
    close,
  }
  socket.on('message', (datagram, { port }) => {
    peer.arrivals.push({ from: port, text: datagram.toString() })
    if (echo) socket.send(datagram, port, '127.0.0.1')
  })
  return peer
}

function openRelay(t: Test, options: RelayOptions): UdpRelay {
  const relay = startRelay(options)
  t.teardown(() => relay.close())
  return relay
}

const texts = (peer: Peer) => peer.arrivals.map(({ text }) => text)
const numbers = (count: number) => Array.from({ length: count }, (_, index) => String(index))

t.test('a perfect link carries every datagram of each client in both directions', async (t) => {
  const target = await openPeer(t, { echo: true })
  const relay = openRelay(t, { targetPort: target.port })
  const clients = [await openPeer(t), await openPeer(t)]
  for (const [index, client] of clients.entries()) {
    for (const number of numbers(200)) client.send(`${index}:${number}`, relay.port)
  }
  for (const [index, client] of clients.entries()) {
    await until('all echoes', () => client.arrivals.length === 200)
    t.same(
      client.arrivals,
      numbers(200).map((number) => ({ from: relay.port, text: `${index}:${number}` })),
    )
  }
  t.equal(new Set(target.arrivals.map(({ from }) => from)).size, 2, 'a source port per client')
  t.match(relay.counters('forward'), { received: 400, forwarded: 400, blackholed: 0 })
  t.match(relay.counters('backward'), { received: 400, forwarded: 400 })
})

t.test('delay and jitter keep the order; reordering changes it without loss', async (t) => {
  const target = await openPeer(t)
  const queue = openRelay(t, {
    targetPort: target.port,
    forward: { delayMs: 20, jitterMs: 15 },
  })
  const client = await openPeer(t)
  for (const number of numbers(300)) client.send(number, queue.port)
  await until('all', () => target.arrivals.length === 300)
  t.same(texts(target), numbers(300))

  const mixer = openRelay(t, {
    targetPort: target.port,
    forward: { reorder: 0.1, reorderMs: 20 },
  })
  target.arrivals.length = 0
  for (const number of numbers(300)) client.send(number, mixer.port)
  await until('all', () => target.arrivals.length === 300)
  t.notSame(texts(target), numbers(300))
  t.same(
    texts(target).toSorted((a, b) => Number(a) - Number(b)),
    numbers(300),
  )
  t.ok(mixer.counters('forward').reordered > 10)
})

t.test('the datagrams that arrive depend only on the seed, in both directions', async (t) => {
  const arrivals = async () => {
    const target = await openPeer(t, { echo: true })
    const relay = openRelay(t, {
      targetPort: target.port,
      seed: 11,
      forward: { loss: 0.2 },
      backward: { loss: 0.2 },
    })
    const client = await openPeer(t)
    for (const number of numbers(500)) client.send(number, relay.port)
    await until('everything decided', () => {
      const { received, lost } = relay.counters('forward')
      return received === 500 && relay.counters('backward').received === 500 - lost
    })
    const back = relay.counters('backward')
    await until('everything back', () => client.arrivals.length === back.received - back.lost)
    return { there: texts(target), back: texts(client) }
  }
  const first = await arrivals()
  t.ok(first.there.length < 450 && first.back.length < first.there.length)
  t.same(await arrivals(), first)
})

t.test('the target sees a new source port after a rebinding, and responses arrive', async (t) => {
  const target = await openPeer(t, { echo: true })
  const relay = openRelay(t, { targetPort: target.port })
  const client = await openPeer(t)
  client.send('before', relay.port)
  await until('the first echo', () => client.arrivals.length === 1)
  relay.rebind()
  client.send('after', relay.port)
  await until('the second echo', () => client.arrivals.length === 2)
  t.same(texts(client), ['before', 'after'])
  t.not(target.arrivals[0]!.from, target.arrivals[1]!.from)
})

t.test('a black hole drops both directions for its duration', async (t) => {
  const target = await openPeer(t, { echo: true })
  const relay = openRelay(t, { targetPort: target.port })
  const client = await openPeer(t)
  relay.blackhole(60_000)
  for (const number of numbers(10)) client.send(number, relay.port)
  await until('all swallowed', () => relay.counters('forward').blackholed === 10)
  t.equal(target.arrivals.length, 0)
  relay.blackhole(0)
  client.send('light', relay.port)
  await until('the echo', () => client.arrivals.length === 1)
  t.same(texts(client), ['light'])
})

t.test('the tap gets every datagram that reaches the relay, lost ones included', async (t) => {
  const target = await openPeer(t)
  const seen: string[] = []
  const relay = openRelay(t, {
    targetPort: target.port,
    forward: { loss: 1 },
    tap: (direction, datagram) => seen.push(`${direction} ${datagram.toString()}`),
  })
  const client = await openPeer(t)
  client.send('x', relay.port)
  await until('the loss', () => relay.counters('forward').lost === 1)
  t.same(seen, ['forward x'])
  t.equal(target.arrivals.length, 0)
})

t.test('the relay forwards IPv6', async (t) => {
  const target = createSocket('udp6').bind(0, '::1')
  const client = createSocket('udp6').bind(0, '::1')
  t.teardown(() => [target, client].map((socket) => socket.close()))
  await Promise.all([once(target, 'listening'), once(client, 'listening')])
  target.on('message', (datagram, { port }) => target.send(datagram, port, '::1'))
  const relay = openRelay(t, { targetPort: target.address().port, host: '::1' })
  client.send('there and back', relay.port, '::1')
  t.equal(String((await once(client, 'message'))[0]), 'there and back')
})

t.test('`alter` changes or drops datagrams', async (t) => {
  const target = await openPeer(t, { echo: true })
  const client = await openPeer(t)
  const seen: string[] = []
  const relay = openRelay(t, {
    targetPort: target.port,
    tap: (direction, datagram) => void seen.push(`${direction} ${String(datagram)}`),
    alter: (_direction, datagram) => {
      datagram[0]!++
      return datagram.toString() !== 'c'
    },
  })
  for (const text of ['a', 'b', 'g']) client.send(text, relay.port)
  await until('what is let through', () => client.arrivals.length > 0)
  t.same(texts(client), ['i'], 'a came back as b and was stopped as c, b was stopped at once')
  t.same(seen, ['forward a', 'forward b', 'forward g', 'backward b', 'backward h'])
  t.equal(relay.counters('forward').received, 2)
  t.equal(relay.counters('backward').received, 1)
})
