/**
 * Our caller and our listener over real sockets.
 */
import { createSocket, type Socket } from 'node:dgram'
import { once, setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { MillraceError } from '../../../src/errors.ts'
import {
  connect,
  createListener,
  type Listener,
  type AcceptDecision,
  type CloseReason,
  type ConnectionRequest,
  type ListenerOptions,
  type SrtConnection,
} from '../../../src/srt/index.ts'
import { canReusePort } from '../../../src/srt/io/socket.ts'
import {
  encodeGroupExtension,
  encodeHsExtension,
  encodeStreamIdExtension,
  ExtensionType,
} from '../../../src/srt/wire/extension.ts'
import { decodeHandshake, encodeHandshake, HandshakeType } from '../../../src/srt/wire/handshake.ts'
import { requireAddresses } from '../../support/addresses.ts'
import { freePorts } from '../../support/free-port.ts'
import { startRelay } from '../../support/udp-relay.ts'
import { encodeInduction } from '../../support/induction.ts'
import { until } from '../../support/until.ts'

const HOST = '127.0.0.1'

/** Sink that records its calls, and a promise of the end. */
class Recording {
  readonly payloads: Buffer[] = []
  readonly ended: Promise<CloseReason>
  connection: SrtConnection | undefined
  gaps = 0
  #settle: ((reason: CloseReason) => void) | undefined

  constructor() {
    this.ended = new Promise((resolve) => (this.#settle = resolve))
  }

  open(connection: SrtConnection): void {
    this.connection = connection
  }

  push(payload: Buffer): void {
    this.payloads.push(payload)
  }

  gap(lostPackets: number): void {
    this.gaps += lostPackets
  }

  end(reason: CloseReason): void {
    this.#settle?.(reason)
  }
}

async function listen(t: Test, options: Partial<ListenerOptions> = {}) {
  const recordings: Recording[] = []
  const listener = await createListener({
    host: HOST,
    port: 0,
    latencyMs: 120,
    accept: async () => {
      recordings.push(new Recording())
      return { sink: recordings.at(-1)! }
    },
    ...options,
  })
  t.teardown(() => listener.close())
  return { listener, recordings, port: listener.address().port }
}

const numbered = (number: number) => {
  const payload = Buffer.alloc(1316, number & 0xff)
  payload.writeUInt32BE(number)
  return payload
}

t.test('payloads of a caller arrive complete and in order, then the end', async (t) => {
  const requests: ConnectionRequest[] = []
  const recording = new Recording()
  const { listener, port } = await listen(t, {
    accept: async (request) => {
      requests.push(request)
      return { sink: recording }
    },
  })
  const streamId = 'mode=publish,rid=demo,token=x'
  const caller = await connect({ host: 'localhost', port, streamId, latencyMs: 300 })
  t.match(requests, [{ remoteAddress: HOST, streamId, peerVersion: '1.5.1' }])
  t.match(recording.connection, { latencyMs: 300, remoteAddress: HOST })
  t.equal(listener.connectionCount, 1)

  const sizes = [1316, 1456, 1, 188, 1316]
  for (const [number, size] of sizes.entries()) t.ok(caller.send(Buffer.alloc(size, number)))
  await caller.close()
  t.equal(await caller.closed, 'closed')
  t.equal(await recording.ended, 'shutdown')
  t.strictSame(
    recording.payloads.map((payload) => [payload.length, payload[0]]),
    sizes.map((size, number) => [size, number]),
  )
  t.match(caller.stats(), { pktSentTotal: 5, byteSentTotal: 4277, pktSndBuf: 0 })
  t.match(recording.connection!.stats(), { pktRecvTotal: 5, byteRecvTotal: 4277 })
  t.equal(listener.connectionCount, 0)
  t.notOk(caller.send(Buffer.alloc(1)), 'over is over')
})

t.test('the accept hook learns whether a caller has a passphrase before it decides', async (t) => {
  const codes: (string | undefined)[] = []
  const { port } = await listen(t, {
    passphrase: 'of all callers',
    accept: async ({ verifyEncryption }) => {
      const errors = [await verifyEncryption('of this caller'), await verifyEncryption()]
      codes.push(...errors.map((error) => error?.code))
      return { sink: new Recording(), passphrase: 'of this caller' }
    },
  })
  const caller = await connect({ host: HOST, port, passphrase: 'of this caller' })
  t.strictSame(codes.splice(0), [undefined, 'PASSPHRASE_WRONG'])
  await caller.close()
  await t.rejects(connect({ host: HOST, port }), { message: /1011/ })
  t.strictSame(codes, ['ENCRYPTION_MISSING', 'ENCRYPTION_MISSING'])
})

t.test('one caller at a time is verified before the accept hook decides', async (t) => {
  const codes: unknown[] = []
  const { port, listener } = await listen(t, {
    accept: async ({ verifyEncryption }, signal) => {
      setMaxListeners(0, signal)
      const checks = Array.from({ length: 258 }, () => verifyEncryption('of this caller'))
      const failed = (await Promise.allSettled(checks)).filter(
        ({ status }) => status !== 'fulfilled',
      )
      codes.push(...failed)
      return verifyEncryption('of this caller').then(() => ({ reject: 2409 }))
    },
  })
  await t.rejects(connect({ host: HOST, port, passphrase: 'of this caller' }), { message: /2409/ })
  t.match(codes, [{ reason: { rejectCode: 1005 } }], 'one runs, 256 wait')
  t.match(listener.stats().rejects, { 2409: 1 })
})

t.test('all ports of a listener share the limits of handshakes', async (t) => {
  let asked = 0
  const { listener, port } = await listen(t, {
    clock: { nowUs: () => 0, wallMs: () => 0 },
    accept: async () => {
      asked++
      return { reject: 2409 }
    },
  })
  const [other] = (await freePorts(1)) as [number]
  await listener.open(other)
  const controller = new AbortController()
  const { signal } = controller
  const calls = Array.from({ length: 200 }, (_, number) =>
    connect({ host: HOST, port: number < 100 ? port : other, signal }).catch(() => undefined),
  )
  await until('all have been answered or dropped', () => {
    const { conclusionsDropped } = listener.stats()
    return asked + conclusionsDropped >= 200
  })
  controller.abort()
  await Promise.all(calls)
  t.equal(asked, 150)
})

t.test('sequence numbers and timestamps wrap in the middle of a stream', async (t) => {
  const { recordings, port } = await listen(t)
  const caller = await connect({
    host: HOST,
    port,
    initialSequenceNumber: 0x7fffffff - 50,
    startTimestampUs: 2 ** 32 - 100_000,
  })
  for (let number = 0; number < 200; number++) {
    caller.send(numbered(number))
    // Timestamps are the time of sending: they wrap when 100 ms have passed.
    if (number % 20 === 0) await sleep(20)
  }
  await caller.close()
  await recordings[0]!.ended
  t.strictSame(
    recordings[0]!.payloads.map((payload) => payload.readUInt32BE()),
    Array.from({ length: 200 }, (_, number) => number),
  )
})

t.test('several callers share a port', async (t) => {
  const { listener, recordings, port } = await listen(t)
  const callers = await Promise.all(Array.from({ length: 10 }, () => connect({ host: HOST, port })))
  t.equal(listener.connectionCount, 10)
  for (let number = 0; number < 50; number++) {
    for (const caller of callers) caller.send(numbered(number))
  }
  await Promise.all(callers.map((caller) => caller.close()))
  await Promise.all(recordings.map(({ ended }) => ended))
  t.ok(recordings.every(({ payloads }) => payloads.length === 50))
  t.match(listener.stats(), { accepted: 10, inductions: 10, malformed: 0 })
})

t.test(
  '`::` accepts IPv6 and IPv4, also mapped to IPv6; IPv4 addresses are reported as such',
  async (t) => {
    if (!(await requireAddresses(t, '::1'))) return
    const remotes: string[] = []
    const recordings: Recording[] = []
    const { listener, port } = await listen(t, {
      host: '::',
      accept: async ({ remoteAddress }) => {
        remotes.push(remoteAddress)
        const recording = new Recording()
        recordings.push(recording)
        return { sink: recording }
      },
    })
    t.match(listener.address(), { address: '::', port })
    const hosts = ['::1', HOST, `::ffff:${HOST}`]
    for (const host of hosts) {
      const caller = await connect({ host, port })
      caller.send(Buffer.from(host))
      await caller.close()
    }
    await Promise.all(recordings.map(({ ended }) => ended))
    t.strictSame(
      recordings.map(({ payloads }) => payloads.join()),
      hosts,
    )
    t.strictSame(remotes, ['::1', HOST, HOST])
    t.match(listener.stats(), { accepted: 3, inductions: 3, wrongSources: 0, badCookies: 0 })
  },
)

t.test('a caller copies the payload, so its buffer may be reused', async (t) => {
  const { listener, recordings, port } = await listen(t)
  const relay = startRelay({ targetPort: port, forward: { loss: 0.5, sparesHandshakes: true } })
  t.teardown(() => relay.close())
  const caller = await connect({ host: HOST, port: relay.port, latencyMs: 1000 })
  const payload = Buffer.alloc(4)
  for (let number = 0; number < 20; number++) {
    payload.writeUInt32BE(number)
    caller.send(payload)
  }
  await caller.close()
  await recordings[0]!.ended
  const numbers = recordings[0]!.payloads.map((each) => each.readUInt32BE())
  t.ok(numbers.length > 0)
  t.strictSame(
    numbers,
    [...new Set(numbers)].toSorted((a, b) => a - b),
  )
  t.match(listener.stats(), { accepted: 1 })
})

t.test('a listener on several addresses responds from the address that was called', async (t) => {
  const addresses = [HOST, '127.0.0.2']
  if (!(await requireAddresses(t, ...addresses))) return
  const { listener, recordings, port } = await listen(t, { host: addresses })
  t.match(listener.address(), { address: HOST, port })
  // Their sockets are connected, so they receive from the called address only.
  const callers = await Promise.all(addresses.map((host) => connect({ host, port })))
  t.equal(listener.connectionCount, 2)
  for (const caller of callers) {
    caller.send(Buffer.from('said'))
    await caller.close()
  }
  await Promise.all(recordings.map(({ ended }) => ended))
  t.ok(recordings.every(({ payloads }) => payloads.join() === 'said'))
  t.match(listener.stats(), { accepted: 2, inductions: 2, unknownSocketIds: 0 })

  const stranger = createSocket('udp4')
  t.teardown(() => void stranger.close())
  for (const host of addresses) stranger.send('noise', port, host)
  await until('the noise', () => listener.stats().malformed === 2)
})

t.test('rejections are counted over all addresses', async (t) => {
  const addresses = [HOST, '127.0.0.2']
  if (!(await requireAddresses(t, ...addresses))) return
  const { listener, port } = await listen(t, {
    host: addresses,
    acceptTimeoutMs: 100,
    // Without a decision: 1016 after the time limit.
    accept: async ({ streamId }) =>
      streamId === '' ? new Promise(() => {}) : { reject: Number(streamId) },
  })
  for (const [host, streamId] of [
    [addresses[0]!, '1010'],
    [addresses[1]!, '1010'],
    [addresses[1]!, '2404'],
    [addresses[1]!, ''],
  ] as const) {
    await t.rejects(connect({ host, port, streamId }), { code: 'SRT_REJECTED' })
  }
  t.strictSame(listener.stats().rejects, { 1010: 2, 1016: 1, 2404: 1 })
})

t.test('counters do not decrease while a port closes', async (t) => {
  const { listener } = await listen(t, { accept: async () => ({ reject: 1010 }) })
  const [other] = (await freePorts(1)) as [number]
  await listener.open(other)
  await t.rejects(connect({ host: HOST, port: other }), { code: 'SRT_REJECTED' })
  const closed = listener.closePort(other)
  t.strictSame(listener.stats().rejects, { 1010: 1 })
  await closed
  t.strictSame(listener.stats().rejects, { 1010: 1 })
})

t.test(
  'a port taken on one of several addresses is reported, and no socket stays open',
  async (t) => {
    if (!(await requireAddresses(t, '127.0.0.2'))) return
    const { port } = await listen(t, { host: '127.0.0.2' })
    await t.rejects(listen(t, { host: [HOST, '127.0.0.2'], port }), {
      code: 'ADDRESS_IN_USE',
      message: `UDP port ${port} on 127.0.0.2 is in use: choose another port for SRT`,
    })
    const again = await listen(t, { host: HOST, port })
    t.equal(again.port, port)
  },
)

t.test('a rejected caller gets the code and its name', async (t) => {
  const refusals: [() => AcceptDecision, RegExp][] = [
    [() => ({ reject: 1010 }), /1010 \(BADSECRET\)/],
    [() => ({ reject: 2404 }), /: 2404; its log/],
    [
      () => {
        throw new MillraceError('STREAM_BUSY')
      },
      /2409 \(CONFLICT\)/,
    ],
    [
      () => {
        throw new Error('a bug')
      },
      /1006 \(INTERNAL\)/,
    ],
  ]
  for (const [decide, message] of refusals) {
    const warnings: string[] = []
    const { port, listener } = await listen(t, {
      accept: async () => decide(),
      onWarning: (warning) => warnings.push(warning),
    })
    await t.rejects(connect({ host: HOST, port }), { code: 'SRT_REJECTED', message })
    t.equal(listener.connectionCount, 0)
    const bugs = warnings.filter((warning) => warning.includes('a bug')).length
    t.equal(bugs, message.source.startsWith('1006') ? 1 : 0)
  }
})

t.test('SRT_TIMEOUT has address and time where nothing listens', async (t) => {
  const silent = createSocket('udp4').bind(0, HOST)
  await once(silent, 'listening')
  t.teardown(() => void silent.close())
  const { port } = silent.address()
  await t.rejects(connect({ host: HOST, port, connectTimeoutMs: 300 }), {
    code: 'SRT_TIMEOUT',
    message: `no SRT peer answered at ${HOST}:${port} within 0.3 s`,
  })
})

t.test('an abort signal ends a handshake', async (t) => {
  const controller = new AbortController()
  const { port } = await listen(t, {
    accept: () => {
      controller.abort(new Error('enough'))
      return new Promise(() => {})
    },
  })
  const attempt = connect({ host: HOST, port, signal: controller.signal })
  await t.rejects(attempt, { message: 'enough' })
  await t.rejects(connect({ host: HOST, port, signal: controller.signal }), { message: 'enough' })
})

t.test('an accept hook that takes too long is aborted', async (t) => {
  let aborted: Promise<unknown> | undefined
  const { port } = await listen(t, {
    acceptTimeoutMs: 100,
    accept: (_request, signal) => {
      aborted = once(signal, 'abort')
      return new Promise(() => {})
    },
  })
  await t.rejects(connect({ host: HOST, port }), { message: /1016 \(TIMEOUT\)/ })
  await aborted
})

t.test('ADDRESS_IN_USE has address and port', async (t) => {
  const { port } = await listen(t)
  await t.rejects(
    createListener({ host: HOST, port, latencyMs: 120, accept: async () => ({ reject: 1000 }) }),
    {
      code: 'ADDRESS_IN_USE',
      message: new RegExp(`UDP port ${port} on ${HOST} is in use`),
    },
  )
})

t.test('closing the listener ends its connections, and the port is free again', async (t) => {
  const { listener, recordings, port } = await listen(t)
  const caller = await connect({ host: HOST, port })
  await Promise.all([listener.close(), listener.close()])
  t.equal(await recordings[0]!.ended, 'closed')
  t.equal(await caller.closed, 'shutdown')
  const again = await listen(t, { port })
  t.equal(again.port, port)
})

t.test('a caller ends with a timeout after its listener vanished', async (t) => {
  const { port } = await listen(t)
  const relay = startRelay({ targetPort: port })
  t.teardown(() => relay.close())
  const caller = await connect({ host: HOST, port: relay.port, idleTimeoutMs: 300 })
  relay.blackhole(60_000)
  t.equal(await caller.closed, 'timeout')
  await caller.close()
})

t.test('invalid arguments throw at once', async (t) => {
  await t.rejects(listen(t, { host: [] }), {
    message: 'host is empty: set at least one address to listen on',
  })
  const { port } = await listen(t)
  await t.rejects(connect({ host: HOST, port, streamId: 'x'.repeat(513) }), {
    message: 'the StreamID is longer than 512 bytes: shorten it',
  })
  const caller = await connect({ host: HOST, port })
  t.throws(() => caller.send(Buffer.alloc(1457)), {
    message: 'the payload has 1457 bytes: split it, a packet holds 1456',
  })
  await caller.close()
})

t.test('random datagrams on the port do not disturb a connection', async (t) => {
  const { listener, recordings, port } = await listen(t)
  const caller = await connect({ host: HOST, port })
  const noisy: Socket = createSocket('udp4')
  t.teardown(() => void noisy.close())
  for (let length = 0; length < 1500; length += 7) {
    noisy.send(Buffer.alloc(length, length), port, HOST)
    caller.send(numbered(length))
  }
  await caller.close()
  await recordings[0]!.ended
  t.equal(recordings[0]!.payloads.length, Math.ceil(1500 / 7))
  const { malformed, unknownSocketIds } = listener.stats()
  t.ok(malformed + unknownSocketIds > 0)
})

t.test(
  'every packet arrives at 10 % loss, 50 ms, reordering and duplication through real sockets',
  async (t) => {
    // The simulator needs 500 ms; a busy machine gets more.
    const latencyMs = 3000
    const { recordings, port } = await listen(t, { latencyMs })
    const link = { loss: 0.1, delayMs: 50, jitterMs: 5, reorder: 0.02, duplicate: 0.02 }
    const relay = startRelay({ targetPort: port, seed: 7, forward: link, backward: link })
    t.teardown(() => relay.close())
    const caller = await connect({ host: HOST, port: relay.port, latencyMs })
    const packets = 1000
    for (let number = 0; number < packets; number++) {
      caller.send(numbered(number))
      // At the pace of an encoder: a burst would queue at the link.
      if (number % 5 === 0) await sleep(10)
    }
    await caller.close()
    await recordings[0]!.ended
    t.strictSame(
      recordings[0]!.payloads.map((payload) => payload.readUInt32BE()),
      Array.from({ length: packets }, (_, number) => number),
    )
    t.ok(recordings[0]!.connection!.stats().pktRcvLossTotal > packets / 20, 'the link was bad')
  },
)

t.test('warns once about small receive buffers, for any number of sockets', async (t) => {
  const warningsOf = async (host: string | string[]) => {
    const warnings: string[] = []
    await listen(t, { host, onWarning: (warning) => warnings.push(warning) })
    return warnings
  }
  if (!(await requireAddresses(t, '127.0.0.2'))) return
  t.strictSame(await warningsOf([HOST, '127.0.0.2']), await warningsOf(HOST))
})

t.test('warns about kernel drops once a minute while callers are connected', async (t) => {
  let nowUs = 1_000_000
  let readings = 0
  const clock = {
    wallMs: () => 0,
    nowUs: () => {
      readings++
      return nowUs
    },
  }
  const warnings: string[] = []
  const { listener, port } = await listen(t, {
    clock,
    idleTimeoutMs: 1_000_000,
    onWarning: (warning) => warnings.push(warning),
  })
  if ((await listener.kernelDrops()) === undefined) {
    t.pass('skipped', { skip: 'needs Linux, which counts drops' })
    return
  }
  const dropWarnings = () => warnings.filter((warning) => warning.startsWith('The kernel dropped'))
  const caller = await connect({ host: HOST, port })
  t.teardown(() => caller.close())
  const flood = createSocket('udp4')
  t.teardown(() => void flood.close())
  flood.connect(port, HOST)
  await once(flood, 'connect')
  let sent = 0
  /** Sends more than the receive buffer holds before the listener reads the first. */
  const overflow = async () => {
    const datagram = Buffer.alloc(1472)
    for (let count = 0; count < 10_000; count++) flood.send(datagram)
    sent += 10_000
    const drops = (await listener.kernelDrops())!
    await until('the rest of it', () => listener.stats().malformed + drops === sent)
    return drops
  }

  const first = await overflow()
  nowUs += 10_000_000
  await until('a warning', () => dropWarnings().length === 1)
  t.match(dropWarnings()[0], `The kernel dropped ${first} datagrams for SRT`)

  const all = await overflow()
  t.ok(all > first)
  nowUs += 45_000_000
  const before = readings
  await until('some ticks', () => readings > before + 20)
  t.equal(dropWarnings().length, 1)
  nowUs += 20_000_000
  await until('the next warning', () => dropWarnings().length === 2)
  t.match(dropWarnings()[1], `The kernel dropped ${all - first} datagrams for SRT`)
})

t.test('listeners share a port where Node.js can, each with callers of its own', async (t) => {
  const versions = { '20.20.2': false, '22.11.0': false, '22.12.0': true, '22.20.1': true }
  const later = { '23.0.0': false, '23.1.0': true, '24.0.0': true }
  for (const [version, can] of Object.entries({ ...versions, ...later }))
    t.equal(canReusePort(version), can, version)

  const first = await listen(t, { reusePort: true })
  const { port } = first
  if (!canReusePort(process.versions.node)) {
    await t.rejects(listen(t, { port, reusePort: true }), { code: 'ADDRESS_IN_USE' })
    return
  }
  const second = await listen(t, { port, reusePort: true })
  await t.rejects(listen(t, { port }), { code: 'ADDRESS_IN_USE' }, 'not with one that does not')
  t.equal(await joinGroup(t, port), 1015, 'members of a group may come to different listeners')
  const callers = await Promise.all(Array.from({ length: 40 }, () => connect({ host: HOST, port })))
  const [one, other] = [first.listener.connectionCount, second.listener.connectionCount]
  t.equal(one + other, 40)
  t.ok(one > 0 && other > 0, `${one} and ${other}`)
  for (const caller of callers) caller.send(numbered(7))
  await Promise.all(callers.map((caller) => caller.close()))
  const recordings = [...first.recordings, ...second.recordings]
  await Promise.all(recordings.map(({ ended }) => ended))
  t.ok(
    recordings.every(({ payloads }) => payloads.length === 1),
    'all arrive where they belong',
  )
})

t.test('a caller stays at its listener while others of its port open and close', async (t) => {
  const first = await listen(t, { reusePort: true })
  const { port } = first
  const callers = await Promise.all(Array.from({ length: 40 }, () => connect({ host: HOST, port })))
  const sendAll = async (listener: Listener, total: number) => {
    for (const caller of callers) caller.send(numbered(total))
    const counts = () => first.recordings.map(({ payloads }) => payloads.length)
    await until(`payload ${total} of each`, () => counts().every((count) => count === total))
    t.equal(listener.connectionCount, 40)
  }
  await sendAll(first.listener, 1)
  const others: Listener[] = []
  for (let total = 2; total < 6 && canReusePort(process.versions.node); total++) {
    others.push((await listen(t, { port, reusePort: true })).listener)
    await sendAll(first.listener, total)
  }
  for (const other of others) await other.close()
  await sendAll(first.listener, others.length + 2)
  t.equal(await first.listener.kernelDrops(), 0)
})

t.test(
  'a caller goes to the listener at its port that it belongs to',
  { skip: !canReusePort(process.versions.node) && 'Node.js does not know reusePort' },
  async (t) => {
    const listeners = new Map<string, Awaited<ReturnType<typeof listen>>>()
    let moved = 0
    const open = async (name: string, port = 0) => {
      const recordings: Recording[] = []
      const own = await listen(t, {
        port,
        reusePort: true,
        accept: async (request) => {
          const { streamId, isMovable } = request
          t.equal(isMovable?.(), true)
          if (streamId !== name) {
            moved++
            listeners.get(streamId)!.listener.expect(request)
            return { isElsewhere: true }
          }
          recordings.push(new Recording())
          return { sink: recordings.at(-1)! }
        },
      })
      listeners.set(name, { ...own, recordings })
      return own.port
    }
    const port = await open('one')
    await open('two', port)
    const names = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? 'one' : 'two'))
    const callers = await Promise.all(
      names.map((streamId) => connect({ host: HOST, port, streamId })),
    )
    for (const caller of callers) caller.send(numbered(7))
    for (const [name, { listener, recordings }] of listeners) {
      t.equal(listener.connectionCount, 20, name)
      await until(`payloads of ${name}`, () =>
        recordings.every(({ payloads }) => payloads.length === 1),
      )
    }
    t.ok(moved > 0, `${moved} were moved`)
  },
)

/** Calls as a member of a group. @returns type of the response, which is the reject code of a rejected caller */
async function joinGroup(t: Test, port: number, { streamId = 'one', type = 1 } = {}) {
  const socket = createSocket('udp4')
  t.teardown(() => socket.close())
  socket.bind(0, HOST)
  await once(socket, 'listening')
  const ask = async (datagram: Buffer) => {
    const answered = once(socket, 'message')
    socket.send(datagram, port, HOST)
    const [response] = (await answered) as [Buffer]
    return decodeHandshake(response)!
  }
  const { cookie } = await ask(encodeInduction(77, HOST))
  const conclusion = {
    ...{ version: 5, encryptionField: 0, extensionField: 5, initialSequenceNumber: 0 },
    ...{ mtuBytes: 1500, flowWindowPackets: 8192, type: HandshakeType.CONCLUSION },
    ...{ socketId: 77, cookie },
  }
  const blocks = [
    encodeHsExtension(ExtensionType.HSREQ, { receiverDelayMs: 120, senderDelayMs: 120 }),
    encodeStreamIdExtension(streamId),
    encodeGroupExtension({ groupId: 0x40000001, type, weight: 1 }),
  ]
  const packet = { socketId: 0, timestampUs: 0, peerAddress: HOST, blocks }
  return (await ask(encodeHandshake(conclusion, packet))).type
}

t.test(
  'members of a group are decided on one after another: the first decides whether others join',
  async (t) => {
    const asked: [streamId: string, isJoining: boolean | undefined][] = []
    const decide: ((decision: AcceptDecision) => void)[] = []
    const { port, listener } = await listen(t, {
      acceptTimeoutMs: 60_000,
      accept: ({ streamId, isJoining }) => {
        asked.push([streamId, isJoining])
        return new Promise((resolve) => decide.push(resolve))
      },
    })
    const members = [joinGroup(t, port), joinGroup(t, port), joinGroup(t, port)]
    const others = [joinGroup(t, port, { streamId: 'two' })]
    await until('two callers are asked about', () => asked.length === 2)
    const ofBoth = new Map([
      ['one', false],
      ['two', false],
    ])
    t.strictSame(new Map(asked), ofBoth, 'no more than one of a group')
    const first = asked.findIndex(([streamId]) => streamId === 'one')
    decide[first]!({ reject: 2403 })
    await until('the next one is asked about', () => asked.length === 3)
    t.strictSame(asked[2], ['one', false], 'a rejected caller has no group')
    const recording = new Recording()
    decide[2]!({ sink: recording })
    await until('the last one is asked about', () => asked.length === 4)
    t.strictSame(asked[3], ['one', true])
    decide[3]!({ sink: new Recording() })
    decide[1 - first]!({ sink: new Recording() })
    const types = await Promise.all([...members, ...others])
    t.strictSame(
      types.filter((type) => type !== -1),
      [2403],
    )
    t.equal(listener.connectionCount, 3)
    t.match(recording.connection?.stats().lines, [{ line: 1 }, { line: 2 }])
  },
)

t.test(
  'rejects a ninth line, a line of another type, and a group that wants to play',
  async (t) => {
    let sends = false
    const { port, listener } = await listen(t, {
      accept: async () => ({ sink: new Recording(), sends }),
    })
    t.equal(await joinGroup(t, port), -1)
    t.equal(await joinGroup(t, port, { type: 2 }), 1015)
    for (let line = 2; line <= 8; line++) t.equal(await joinGroup(t, port), -1)
    t.equal(await joinGroup(t, port), 1015)
    sends = true
    t.equal(await joinGroup(t, port, { streamId: 'two' }), 1015)
    t.match(listener.stats().rejects, { 1015: 3 })
  },
)

t.test('a member that has expired before its turn is not asked about', async (t) => {
  const asked: unknown[] = []
  const { port, listener } = await listen(t, {
    accept: (request, signal) => {
      asked.push(request)
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason))
      })
    },
  })
  const members = [joinGroup(t, port), joinGroup(t, port)]
  await until('both wait', () => asked.length === 1 && listener.stats().datagrams === 4)
  await listener.close()
  t.strictSame(await Promise.all(members), [1007, 1007])
  t.equal(asked.length, 1)
})
