/**
 * Encrypted connections: from the handshake to the change of keys, over bad networks, and against hostile
 * peers.
 */
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { RejectCode } from '../../../src/srt/wire/reject-code.ts'
import { Call } from '../../../src/srt/connection/call.ts'
import { Decryption } from '../../../src/srt/crypto/decryption.ts'
import { Encryption } from '../../../src/srt/crypto/encryption.ts'
import { Endpoint } from '../../../src/srt/connection/endpoint.ts'
import {
  connect,
  createListener,
  type AcceptDecision,
  type SrtError,
} from '../../../src/srt/index.ts'
import { deriveKey } from '../../../src/srt/crypto/key-encryption.ts'
import type { SrtConnection } from '../../../src/srt/types.ts'
import { decodeExtensions, encodeBlock, ExtensionType } from '../../../src/srt/wire/extension.ts'
import { decodeHandshake } from '../../../src/srt/wire/handshake.ts'
import {
  ControlType,
  controlSubtype,
  controlType,
  encryptionKeyFlag,
  HEADER_BYTES,
  isControl,
  writeControlHeader,
  writeDataHeader,
} from '../../../src/srt/wire/packet.ts'
import type { LinkOptions } from '../../support/impairment.ts'
import { createRandom } from '../../support/random.ts'
import { FIRST_SEED, rounds } from '../../support/soak.ts'
import { until } from '../../support/until.ts'
import { simulate } from '../simulator.ts'
import { ENDPOINT_OPTIONS } from '../endpoint-options.ts'
import { wholeDatagram } from '../whole-datagram.ts'

const HOST = '127.0.0.1'
const PASSPHRASE = 'correct horse battery'

const isExtension = (datagram: Buffer, subtype: number) =>
  isControl(datagram) &&
  controlType(datagram) === ControlType.USER_DEFINED &&
  controlSubtype(datagram) === subtype

/** A caller, a listener, and the datagrams between them, which a test can alter. */
async function createPair({
  refreshPackets = 1000,
  preannouncePackets = 100,
  alterAnswer = (datagram: Buffer) => datagram,
} = {}) {
  const random = createRandom(1)
  const keyEncryptionKey = await deriveKey(PASSPHRASE, random.bytes(16), 16)
  const payloads: string[] = []
  const failures: unknown[] = []
  const toCaller: Buffer[] = []
  const toListener: Buffer[] = []
  let connection: SrtConnection | undefined
  let nowUs = 0
  /** Datagrams in flight: each is delivered after the call that sent it. */
  const underWay: (() => void)[] = []
  let isDelivering = false
  const deliver = (delivery: () => void) => {
    underWay.push(delivery)
    if (isDelivering) return
    isDelivering = true
    for (let next = underWay.shift(); next; next = underWay.shift()) next()
    isDelivering = false
  }
  /** Drops a datagram if it returns false. */
  let gate: (datagram: Buffer) => boolean = () => true
  const endpoint: Endpoint = new Endpoint({
    ...ENDPOINT_OPTIONS,
    latencyMs: 200,
    random: random.bytes,
    nowUs: 0,
    host: {
      transmit: (datagram) => {
        const copy = alterAnswer(wholeDatagram(datagram))
        toCaller.push(wholeDatagram(datagram))
        if (gate(copy)) deliver(() => call.handleDatagram(copy, nowUs))
      },
      request: (attempt) => {
        const decryption = Decryption.unlock(
          keyEncryptionKey,
          attempt.agreement.keyMaterial!,
          nowUs,
        )!
        const sink = {
          open: (opened: SrtConnection) => (connection = opened),
          push: (payload: Buffer) => payloads.push(payload.toString()),
          gap: (lostPackets: number) => payloads.push(`gap ${lostPackets}`),
          end: () => {},
        }
        endpoint.decide(attempt, { sink, decryption }, nowUs)
      },
      expire: () => {},
      fail: (error) => failures.push(error),
    },
  })
  const inject = (datagram: Buffer) =>
    endpoint.handleDatagram(Buffer.from(datagram), 40_000, '192.0.2.1', nowUs)
  const call: Call = new Call({
    remoteAddress: '192.0.2.2',
    remotePort: 10_080,
    socketId: 77,
    streamId: '',
    latencyMs: 200,
    peerLatencyMs: 200,
    initialSequenceNumber: 1000,
    startTimestampUs: 0,
    sendBufferPackets: 8192,
    maxBandwidthBps: 1e9,
    connectTimeoutUs: 3_000_000,
    idleTimeoutUs: 5_000_000,
    encryption: new Encryption({
      keyEncryptionKey,
      refreshPackets,
      preannouncePackets,
      random: random.bytes,
    }),
    host: {
      transmit: (datagram) => {
        const copy = wholeDatagram(datagram)
        toListener.push(copy)
        if (gate(copy)) deliver(() => inject(copy))
      },
      connected: () => {},
      refused: (error) => failures.push(error),
      ended: () => {},
      fail: (error) => failures.push(error),
    },
  })
  call.start(0)
  const { socketId } = decodeHandshake(toCaller.at(-1)!)!
  return {
    endpoint,
    call,
    payloads,
    failures,
    toCaller,
    toListener,
    socketId,
    inject,
    setGate: (next: typeof gate) => (gate = next),
    stats: () => connection!.stats(),
    send: (text: string) => call.send(Buffer.from(text), nowUs),
    advance(durationUs: number) {
      const untilUs = nowUs + durationUs
      for (; nowUs < untilUs; nowUs += 10_000) {
        call.tick(nowUs)
        endpoint.tick(nowUs)
      }
    },
    /** Sends a control packet to the listener as if from the caller. */
    extension(subtype: number, contents: Buffer): Buffer {
      const datagram = Buffer.alloc(HEADER_BYTES + contents.length)
      const type = ControlType.USER_DEFINED
      writeControlHeader(datagram, { type, subtype, information: 0, timestampUs: 0, socketId })
      datagram.set(contents, HEADER_BYTES)
      return datagram
    },
  }
}

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => `packet ${from + i}`)

t.test(
  'a listener that agrees to encrypt repeats the key material byte for byte (3.2.2)',
  async (t) => {
    const { toCaller, toListener, inject, send, payloads, failures } = await createPair()
    const conclusion = toListener.at(-1)!
    const answer = toCaller.at(-1)!
    t.strictSame(decodeExtensions(answer)?.keyMaterial, decodeExtensions(conclusion)?.keyMaterial)
    t.match(decodeHandshake(conclusion), { encryptionField: 2, extensionField: 3 })
    t.equal(decodeHandshake(answer)?.extensionField, 3)
    const before = toCaller.length
    inject(conclusion)
    t.strictSame(toCaller.slice(before), [answer], 'a repeated conclusion gets the same bytes')
    send('secret')
    t.strictSame(payloads, ['secret'])
    t.notOk(toListener.at(-1)!.includes('secret'))
    t.strictSame(failures, [])
  },
)

t.test(
  'a caller refuses a listener that does not confirm its keys (libsrt: enforcedencryption=0)',
  async (t) => {
    const answers: [string, (good: Buffer) => Buffer[], RegExp][] = [
      ['another passphrase', () => [word(4)], /the SRT peer has another passphrase/],
      ['no passphrase', () => [word(3)], /the SRT peer does not agree to encrypt/],
      ['an unknown state', () => [word(0x04000000)], /does not agree/],
      ['nothing', () => [], /does not agree/],
      ['one bit less', (good) => [withFlippedBit(good)], /does not agree/],
      ['other keys', (good) => [Buffer.concat([good, Buffer.alloc(16)])], /does not agree/],
    ]
    for (const [what, contents, message] of answers) {
      const { failures, send } = await createPair({
        alterAnswer: (datagram) => {
          const good = isControl(datagram) ? decodeExtensions(datagram)?.keyMaterial : undefined
          if (controlType(datagram) !== ControlType.HANDSHAKE || good === undefined) return datagram
          const blocks = contents(good).map((each) => encodeBlock(ExtensionType.KMRSP, each))
          return Buffer.concat([datagram.subarray(0, 80), ...blocks])
        },
      })
      t.match(failures, [{ code: 'SRT_REJECTED', message }], what)
      t.notOk(send('in clear'), 'nothing is sent')
    }
  },
)

/** KMRSP of a refusal, as libsrt writes it. */
function word(state: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(state)
  return bytes
}

function withFlippedBit(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes)
  copy[copy.length - 1]! ^= 1
  return copy
}

t.test('a clear packet on an encrypted connection replaces no encrypted one (6.1.6)', async (t) => {
  const { inject, send, payloads, stats, socketId, advance } = await createPair()
  const forged = Buffer.alloc(HEADER_BYTES + 6)
  writeDataHeader(forged, { sequence: 1000, message: 1, timestampUs: 0, socketId })
  forged.write('forged', HEADER_BYTES)
  inject(forged)
  send('true')
  inject(forged)
  advance(500_000)
  t.strictSame(payloads, ['true'])
  t.match(stats(), { pktRcvUndecryptTotal: 2, pktRecvTotal: 1, pktRcvLossTotal: 0 })
})

t.test(
  'keys change during a connection, each announced and confirmed before its use (6.1.6)',
  async (t) => {
    const pair = await createPair({ refreshPackets: 100, preannouncePackets: 30 })
    for (let i = 0; i < 350; i++) {
      pair.send(`packet ${i}`)
      pair.advance(10_000)
    }
    t.strictSame(pair.payloads, numbers(0, 350))
    const flags = pair.toListener.filter((d) => !isControl(d)).map(encryptionKeyFlag)
    t.strictSame(
      flags,
      Array.from({ length: 350 }, (_, i) => (Math.floor(i / 100) % 2) + 1),
    )
    const requests = pair.toListener.filter((d) => isExtension(d, ExtensionType.KMREQ))
    const responses = pair.toCaller.filter((d) => isExtension(d, ExtensionType.KMRSP))
    t.equal(requests.length, 3)
    t.strictSame(
      responses.map((d) => d.subarray(HEADER_BYTES)),
      requests.map((d) => d.subarray(HEADER_BYTES)),
    )
    t.match(pair.stats(), { pktRcvUndecryptTotal: 0, pktRcvLossTotal: 0 })
  },
)

t.test('a lost KMREQ is repeated, and so is a lost KMRSP (libsrt)', async (t) => {
  for (const lost of [ExtensionType.KMREQ, ExtensionType.KMRSP]) {
    const pair = await createPair({ refreshPackets: 100, preannouncePackets: 30 })
    let swallowed = 0
    pair.setGate((datagram) => !isExtension(datagram, lost) || ++swallowed > 5)
    for (let i = 0; i < 150; i++) {
      pair.send(`packet ${i}`)
      pair.advance(20_000)
    }
    t.strictSame(pair.payloads, numbers(0, 150))
    t.equal(swallowed, 6)
    t.equal(encryptionKeyFlag(pair.toListener.findLast((d) => !isControl(d))!), 2)
  }
})

t.test('retransmissions repair packets of a peer that changes its key too early', async (t) => {
  const pair = await createPair({ refreshPackets: 100, preannouncePackets: 30 })
  // libsrt without a response: its packets are encrypted with a key that this side does not know.
  const held: Buffer[] = []
  pair.setGate((datagram) => {
    const isOdd = !isControl(datagram) && encryptionKeyFlag(datagram) === 2
    if (isOdd) held.push(Buffer.from(datagram))
    return !isOdd
  })
  for (let i = 0; i < 103; i++) {
    pair.send(`packet ${i}`)
    pair.advance(10_000)
  }
  pair.setGate(() => true)
  t.ok(held.length >= 3)
  t.strictSame(pair.payloads, numbers(0, 100))
  pair.send('packet 103')
  pair.advance(100_000)
  t.strictSame(pair.payloads, numbers(0, 104))
})

t.test('counts packets under an unknown key, and does not acknowledge them', async (t) => {
  const pair = await createPair()
  pair.setGate((datagram) => {
    if (!isControl(datagram)) datagram[4] = datagram[4]! ^ 0x18
    return true
  })
  for (let i = 0; i < 5; i++) pair.send('?')
  pair.setGate(() => true)
  t.strictSame(pair.payloads, [])
  t.match(pair.stats(), { pktRcvUndecryptTotal: 5, pktRecvTotal: 0 })
})

t.test('counts a malformed KMREQ without a response', async (t) => {
  const pair = await createPair()
  const good = decodeExtensions(pair.toListener.at(-1)!)!.keyMaterial!
  const bent = Buffer.from(good)
  bent[45]! ^= 1
  const tooLong = Buffer.concat([good, Buffer.alloc(1400 - good.length)])
  const bad = [Buffer.alloc(0), Buffer.alloc(4), good.subarray(0, 55), bent, tooLong]
  const before = pair.toCaller.length
  for (const message of bad) pair.inject(pair.extension(ExtensionType.KMREQ, message))
  t.equal(pair.toCaller.length, before)
  t.equal(pair.endpoint.stats.malformed, bad.length)
  pair.inject(pair.extension(ExtensionType.KMREQ, good))
  t.ok(isExtension(pair.toCaller.at(-1)!, ExtensionType.KMRSP))
  t.strictSame(pair.toCaller.at(-1)!.subarray(HEADER_BYTES), good)
  pair.send('still here')
  t.strictSame(pair.payloads, ['still here'])
})

t.test('responds to a flood of KMREQs ten times (6.1)', async (t) => {
  const pair = await createPair()
  const good = decodeExtensions(pair.toListener.at(-1)!)!.keyMaterial!
  const before = pair.toCaller.length
  for (let i = 0; i < 1000; i++) pair.inject(pair.extension(ExtensionType.KMREQ, good))
  t.equal(pair.toCaller.length - before, 10)
  t.equal(pair.endpoint.stats.malformed, 990)
})

t.test('an unsolicited KMRSP changes nothing (CVE-2026-55868)', async (t) => {
  const pair = await createPair()
  const before = pair.toCaller.length
  for (const bytes of [0, 1, 4, 40, 56, 72, 1456]) {
    pair.inject(pair.extension(ExtensionType.KMRSP, Buffer.alloc(bytes)))
  }
  const refusal = pair.extension(ExtensionType.KMRSP, Buffer.from([4, 0, 0, 0]))
  refusal.writeInt32BE(77, 12)
  pair.call.handleDatagram(refusal, 0)
  t.equal(pair.toCaller.length, before)
  for (const text of ['one', 'two']) pair.send(text)
  t.strictSame(pair.payloads, ['one', 'two'])
  t.strictSame(pair.failures, [])
})

t.test('no extension packet throws or replaces a key, with any contents', async (t) => {
  const pair = await createPair({ refreshPackets: 2 ** 24 })
  const good = decodeExtensions(pair.toListener.at(-1)!)!.keyMaterial!
  const noise = fc.uint8Array({ maxLength: 130 }).map((bytes) => Buffer.from(bytes))
  const bent = fc.tuple(fc.nat(55), fc.nat(255), fc.nat(60)).map(([at, value, length]) => {
    const message = Buffer.concat([good, Buffer.alloc(4)])
    message[at] = value
    return message.subarray(0, length)
  })
  let sent = 0
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.oneof(noise, bent), fc.integer({ min: 0, max: 5 }), (message, subtype) => {
        pair.inject(pair.extension(subtype, message))
        pair.advance(100_000)
        pair.send(`packet ${sent++}`)
        return pair.payloads.at(-1) === `packet ${sent - 1}`
      }),
      { numRuns: 2000 },
    ),
  )
  t.strictSame(pair.failures, [])
})

/** Simulation with new keys every few hundred packets. */
async function simulateEncrypted(seed: number, link: LinkOptions, keyBytes: 16 | 24 | 32 = 16) {
  const keyEncryptionKey = await deriveKey(PASSPHRASE, createRandom(seed).bytes(16), keyBytes)
  return simulate({
    seed,
    link,
    latencyMs: 800,
    packets: 4000,
    intervalUs: 2000,
    initialSequenceNumber: 0x7fffffff - 2000,
    encryption: { keyEncryptionKey, refreshPackets: 400, preannouncePackets: 190 },
  })
}

t.test(
  'every packet arrives at 10 % loss, reordering and duplicates with a new key every 400 packets',
  async (t) => {
    const link = { loss: 0.1, delayMs: 50, jitterMs: 5, reorder: 0.02, duplicate: 0.02 }
    for (const keyBytes of [16, 24, 32] as const) {
      const { pushed, gaps, violations, packetsByKey, receiver } = await simulateEncrypted(
        keyBytes,
        link,
        keyBytes,
      )
      t.strictSame({ pushed, gaps, violations }, { pushed: 4000, gaps: 0, violations: [] })
      const [clear, even, odd, both] = packetsByKey
      t.strictSame([clear, both], [0, 0])
      t.ok(even! > 1500 && odd! > 1500, `${even} and ${odd}`)
      t.equal(receiver!.pktRcvUndecryptTotal, 0, 'no key was used before it was known')
    }
  },
)

t.test('every packet is decrypted correctly or counted as dropped, on any link', async (t) => {
  const seeds = Array.from({ length: rounds(15, 1000) }, (_, index) => FIRST_SEED + index)
  let connected = 0
  let changed = 0
  for (const seed of seeds) {
    const random = createRandom(seed * 7919)
    const link = {
      loss: random.next() * 0.25,
      delayMs: random.next() * 150,
      jitterMs: random.next() * 40,
      reorder: random.next() * 0.1,
      reorderMs: 1 + random.next() * 50,
      duplicate: random.next() * 0.1,
    }
    const { violations, pushed, gaps, packetsByKey } = await simulateEncrypted(seed, link)
    if (violations.length === 1 && violations[0]!.startsWith('no SRT peer answered')) continue
    connected++
    if (packetsByKey[2]! > 0) changed++
    if (violations.length > 0 || pushed + gaps > 4000) t.fail(`seed ${seed}`, { violations })
  }
  t.equal(changed, connected, 'each connection changed its key')
  t.ok(connected > seeds.length * 0.9, `${connected} callers connected`)
})

/** Listener on a real socket with given decisions, and the outcomes for its callers. */
async function listen(
  t: Test,
  decision: Partial<AcceptDecision & { passphrase: string }> = {},
  passphrase?: string,
) {
  const refusals: SrtError[] = []
  const warnings: string[] = []
  const payloads: string[] = []
  const listener = await createListener({
    host: HOST,
    port: 0,
    latencyMs: 20,
    ...(passphrase !== undefined && { passphrase }),
    onWarning: (message) => warnings.push(message),
    accept: async () => ({
      sink: {
        open: () => {},
        push: (payload) => payloads.push(payload.toString()),
        gap: () => {},
        end: () => {},
      },
      onRefused: (error) => refusals.push(error),
      ...decision,
    }),
  })
  t.teardown(() => listener.close())
  const call = async (theirs?: string) => {
    const { port } = listener.address()
    const caller = await connect({
      host: HOST,
      port,
      latencyMs: 20,
      ...(theirs !== undefined && { passphrase: theirs }),
    })
    t.teardown(() => caller.close())
    return caller
  }
  return { listener, call, refusals, warnings, payloads }
}

t.test(
  'rejects a caller unless both sides have the same passphrase or neither has one (6.1.3)',
  async (t) => {
    const other = 'another passphrase'
    for (const [ours, theirs, code] of [
      [undefined, undefined, undefined],
      [PASSPHRASE, PASSPHRASE, undefined],
      [PASSPHRASE, other, 'PASSPHRASE_WRONG'],
      [PASSPHRASE, undefined, 'ENCRYPTION_MISSING'],
      [undefined, PASSPHRASE, 'ENCRYPTION_UNEXPECTED'],
    ] as const) {
      const { listener, call, refusals, payloads, warnings } = await listen(t, {}, ours)
      const name = `${ours ?? 'nothing'} required, ${theirs ?? 'nothing'} offered`
      if (code === undefined) {
        const caller = await call(theirs)
        caller.send(Buffer.from('hello'))
        await until('a payload', () => payloads.length === 1)
        t.strictSame(payloads, ['hello'], name)
        t.strictSame(refusals, [])
      } else {
        const reject = code === 'PASSPHRASE_WRONG' ? RejectCode.BADSECRET : RejectCode.UNSECURE
        const message = new RegExp(`${reject}`)
        await t.rejects(call(theirs), { code: 'SRT_REJECTED', message }, name)
        t.match(refusals, [{ code, rejectCode: reject }])
        t.strictSame(listener.stats().rejects, { [reject]: 1 })
        t.equal(listener.connectionCount, 0)
      }
      const said = JSON.stringify([warnings, refusals.map(({ message }) => message)])
      t.notOk(said.includes(PASSPHRASE) || said.includes(other), 'no passphrase in any message')
    }
  },
)

t.test('the accept hook may require a passphrase for one caller', async (t) => {
  const own = 'of this stream alone'
  const { call, refusals } = await listen(t, { passphrase: own }, PASSPHRASE)
  await call(own)
  await t.rejects(call(PASSPHRASE), { message: /1010/ })
  await t.rejects(call(), { message: /1011/ })
  t.match(refusals, [{ code: 'PASSPHRASE_WRONG' }, { code: 'ENCRYPTION_MISSING' }])
})

t.test('an invalid passphrase throws where it was set, without repeating it', async (t) => {
  const short = 'too short'
  await t.rejects(listen(t, {}, short), {
    name: 'RangeError',
    message: /has 9 bytes, SRT allows 10 to 80 bytes/,
  })
  const { call, warnings } = await listen(t, { passphrase: short })
  await t.rejects(call(PASSPHRASE), { message: /1006/ })
  const said = warnings.filter((warning) => warning.includes('10 to 80 bytes'))
  t.equal(said.length, 1)
  t.notOk(said[0]!.includes(short))
  await t.rejects(call(short), { name: 'RangeError', message: /10 to 80 bytes/ })
})

t.test('an exception of `onRefused` rejects the caller and affects no other', async (t) => {
  const { call, listener, warnings } = await listen(t, {
    passphrase: PASSPHRASE,
    onRefused: () => {
      throw new Error('in onRefused')
    },
  })
  await t.rejects(call('another passphrase'), { message: /1006/ })
  t.match(warnings.at(-1), /in onRefused/)
  await call(PASSPHRASE)
  t.equal(listener.connectionCount, 1)
})

t.test('an accept hook that throws on abort causes no warning', async (t) => {
  const warnings: string[] = []
  const listener = await createListener({
    host: HOST,
    port: 0,
    latencyMs: 20,
    acceptTimeoutMs: 1,
    onWarning: (message) => warnings.push(message),
    accept: (_request, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('given up')))
      }),
  })
  t.teardown(() => listener.close())
  const { port } = listener.address()
  await t.rejects(connect({ host: HOST, port }), { message: /1016 \(TIMEOUT\)/ })
  t.notMatch(warnings.join(), /accept hook/)
})

t.test('invalid encryption options of a caller throw before the first datagram', async (t) => {
  const at = { host: HOST, port: 9, passphrase: PASSPHRASE }
  for (const options of [
    { keyLengthBytes: 20 as 16 },
    { kmRefreshPackets: 100, kmPreannouncePackets: 50 },
    { kmRefreshPackets: 100, kmPreannouncePackets: 0 },
    { kmRefreshPackets: NaN },
    { passphrase: 'x'.repeat(81) },
  ]) {
    await t.rejects(connect({ ...at, ...options }), RangeError)
  }
})
