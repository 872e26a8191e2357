/**
 * Socket groups: handshakes as libsrt sends them, the life of a group, and what its members deliver together.
 */
import t from 'tap'
import { Endpoint } from '../../../src/srt/connection/endpoint.ts'
import { SocketGroups } from '../../../src/srt/connection/socket-group.ts'
import type { Attempt } from '../../../src/srt/handshake/attempt.ts'
import type { SrtConnection } from '../../../src/srt/types.ts'
import { addToSequence } from '../../../src/srt/wire/counters.ts'
import { decodeAck } from '../../../src/srt/wire/ack.ts'
import { decodeExtensions, GroupType } from '../../../src/srt/wire/extension.ts'
import { decodeHandshake } from '../../../src/srt/wire/handshake.ts'
import {
  ControlType,
  controlType,
  HEADER_BYTES,
  writeControlHeader,
  writeDataHeader,
} from '../../../src/srt/wire/packet.ts'
import { createRandom } from '../../support/random.ts'
import { FIRST_SEED, rounds } from '../../support/soak.ts'
import { simulateGroup, type SimulatedLine } from '../group-simulator.ts'
import { ENDPOINT_OPTIONS } from '../endpoint-options.ts'
import { wholeDatagram } from '../whole-datagram.ts'

/** Handshakes of a member of a broadcast group, as libsrt 1.5.5 sends them; the cookie is at 44. */
const INDUCTION =
  '80000000000000000000006c000000000000000400000002' +
  '5050937d000005dc00002000000000010b21c5e1000000000100007f000000000000000000000000'
const CONCLUSION =
  '800000000000000000000c20000000000000000500000005' +
  '5050937d000005dc00002000ffffffff0b21c5e129eb1ecc0100007f000000000000000000000000' +
  '000100030001050' +
  '5000000bf00780078' +
  '0005000100636261' +
  '000800024b21c5e20100000a'
const FIRST = 0x5050937d
const COOKIE_AT = 44
const SOCKET_ID_AT = 40
const STREAM_ID_AT = 84
const GROUP_AT = 92

interface Member {
  /** Also the last byte of its socket id. */
  port: number
  groupId?: number
  type?: number
  streamId?: string
}

function createListening({
  groups = new SocketGroups(createRandom(2).bytes),
  localPort = 10_080,
  isShared = false,
} = {}) {
  const sent: { datagram: Buffer; port: number }[] = []
  const attempts: Attempt[] = []
  const failures: unknown[] = []
  const log: unknown[] = []
  let group: SrtConnection | undefined
  const endpoint = new Endpoint({
    ...ENDPOINT_OPTIONS,
    random: createRandom(1).bytes,
    nowUs: 0,
    ...(!isShared && { groups: { registry: groups, localPort } }),
    host: {
      transmit: (datagram, port) => sent.push({ datagram: wholeDatagram(datagram), port }),
      request: (attempt) => attempts.push(attempt),
      expire: () => undefined,
      fail: (error) => failures.push(error),
    },
  })
  const receive = (datagram: Buffer, port: number, nowUs = 0) =>
    endpoint.handleDatagram(datagram, port, '192.0.2.1', nowUs)
  const sink = {
    open: (connection: SrtConnection) => {
      group = connection
      log.push('open')
    },
    push: (payload: Buffer) => void log.push(payload.readUInt32BE()),
    gap: (lostPackets: number) => void log.push(`gap ${lostPackets}`),
    end: (reason: string) => void log.push(reason),
  }
  return {
    endpoint,
    failures,
    receive,
    /** Calls of the sink since the last call. */
    takeLog: () => log.splice(0),
    take: () => sent.splice(0),
    group: () => group!,
    /** @returns the response to the conclusion of a member */
    join(member: Member, { nowUs = 0, accepting = sink } = {}) {
      const { port } = member
      const name = (bytes: Buffer) => {
        bytes[SOCKET_ID_AT + 3] = port
        return bytes
      }
      receive(name(Buffer.from(INDUCTION, 'hex')), port, nowUs)
      const { cookie } = decodeHandshake(sent.splice(0).at(-1)!.datagram)!
      const conclusion = name(Buffer.from(CONCLUSION, 'hex'))
      conclusion.writeInt32BE(cookie, COOKIE_AT)
      if (member.groupId !== undefined) conclusion.writeUInt32BE(member.groupId, GROUP_AT)
      if (member.type !== undefined) conclusion[GROUP_AT + 4] = member.type
      if (member.streamId !== undefined)
        conclusion.set(Buffer.from(member.streamId, 'latin1').toReversed(), STREAM_ID_AT + 1)
      receive(conclusion, port, nowUs)
      const [attempt] = attempts.splice(0)
      if (attempt !== undefined) endpoint.decide(attempt, { sink: accepting }, nowUs)
      const { datagram } = sent.splice(0).at(-1)!
      const { type, socketId } = decodeHandshake(datagram)!
      return { type, socketId, port, datagram, extension: decodeExtensions(datagram)?.group }
    },
    /** A data packet with its number as payload arrives on a member's line, sent as the last one due for delivery. */
    arrive({ socketId, port }: { socketId: number; port: number }, number: number, nowUs = 0) {
      const datagram = Buffer.alloc(HEADER_BYTES + 4)
      const sequence = addToSequence(FIRST, number)
      writeDataHeader(datagram, { sequence, message: 1, timestampUs: 0xc20 + nowUs, socketId })
      datagram.writeUInt32BE(number, HEADER_BYTES)
      receive(datagram, port, nowUs)
    },
    control(type: ControlType, { socketId, port }: { socketId: number; port: number }, nowUs = 0) {
      const datagram = Buffer.alloc(HEADER_BYTES + 4)
      writeControlHeader(datagram, { type, information: 0, timestampUs: nowUs, socketId })
      receive(datagram, port, nowUs)
    },
    dropRequest(
      { socketId, port }: { socketId: number; port: number },
      first: number,
      last: number,
    ) {
      const datagram = Buffer.alloc(HEADER_BYTES + 8)
      const header = { type: ControlType.DROPREQ, information: 0, timestampUs: 0, socketId }
      writeControlHeader(datagram, header)
      datagram.writeUInt32BE(FIRST + first, HEADER_BYTES)
      datagram.writeUInt32BE(FIRST + last, HEADER_BYTES + 4)
      receive(datagram, port)
    },
    /** Ticks every 10 ms. */
    wait(fromUs: number, untilUs: number) {
      for (let nowUs = fromUs; nowUs <= untilUs; nowUs += 10_000) endpoint.tick(nowUs)
    },
  }
}

t.test(
  'answers members of libsrt with one id for their group, of the same type and weight',
  async (t) => {
    const { join } = createListening()
    const first = join({ port: 1 })
    t.equal(first.type, -1)
    t.match(first.extension, { type: 1, weight: 10 })
    const { groupId } = first.extension!
    t.equal(groupId >>> 30, 1, 'the bit of groups, in 31 bits')
    t.match(first.datagram.toString('hex'), /00020003.{24}00080002[4-7].{7}0100000a$/)
    t.match(join({ port: 2 }), { type: -1, extension: { groupId } })
    t.notSame(join({ port: 3, groupId: 0x40000001 }).extension, first.extension, 'another group')
  },
)

t.test('a group has the same id again after its end: libsrt refuses another', async (t) => {
  const { join, control, takeLog } = createListening()
  const first = join({ port: 1 })
  control(ControlType.SHUTDOWN, first)
  t.strictSame(takeLog(), ['open', 'shutdown'])
  t.strictSame(join({ port: 2 }).extension, first.extension)
  t.strictSame(takeLog(), ['open'], 'and begins anew')
})

t.test(
  'rejects groups of unknown types, ids that are of no group, and groups on shared ports',
  async (t) => {
    for (const type of [0, 3, 255]) t.equal(createListening().join({ port: 1, type }).type, 1015)
    t.equal(createListening().join({ port: 1, groupId: 0x0b21c5e2 }).type, 1004)
    t.equal(createListening({ isShared: true }).join({ port: 1 }).type, 1015)
  },
)

t.test(
  'members are one connection to the sink: it opens with the first, and ends with the last',
  async (t) => {
    const { join, arrive, control, takeLog, group } = createListening()
    const [a, b] = [join({ port: 1 }), join({ port: 2 })]
    arrive(a, 0)
    arrive(b, 0)
    arrive(b, 1)
    control(ControlType.SHUTDOWN, a)
    arrive(b, 2)
    t.strictSame(takeLog(), ['open', 0, 1, 2])
    t.strictSame(group().remotePort, 2, 'the line that is left')
    control(ControlType.SHUTDOWN, b)
    t.strictSame(takeLog(), ['shutdown'])
  },
)

t.test(
  'a member of another stream id, or of a group with another id, is another connection',
  async (t) => {
    const { join, takeLog } = createListening()
    join({ port: 1 })
    join({ port: 2, streamId: 'xyz' })
    join({ port: 3, groupId: 0x40000001 })
    t.strictSame(takeLog(), ['open', 'open', 'open'])
  },
)

t.test(
  'members may call several addresses and ports; without a stream id, the port tells streams apart',
  async (t) => {
    for (const [streamId, opened] of [
      ['abc', ['open']],
      ['\0\0\0', ['open', 'open']],
    ] as const) {
      const groups = new SocketGroups(createRandom(2).bytes)
      const one = createListening({ groups })
      const other = createListening({ groups, localPort: 10_081 })
      const a = one.join({ port: 1, streamId })
      const b = other.join({ port: 2, streamId })
      t.strictSame([...one.takeLog(), ...other.takeLog()], opened)
      one.arrive(a, 0)
      other.arrive(b, 0)
      other.arrive(b, 1)
      const delivered = [one.takeLog(), other.takeLog()]
      t.strictSame(delivered, streamId === 'abc' ? [[0, 1], []] : [[0], [0, 1]])
    }
  },
)

t.test('a packet that is missing on one line and came on another is not reported', async (t) => {
  const { join, arrive, take, takeLog, wait } = createListening()
  const [a, b] = [join({ port: 1 }), join({ port: 2 })]
  for (const number of [0, 1, 2]) arrive(a, number)
  for (const number of [0, 2]) arrive(b, number)
  wait(0, 100_000)
  const answers = take()
  t.strictSame(
    answers.filter(({ datagram }) => controlType(datagram) === ControlType.NAK),
    [],
  )
  const acked = answers
    .filter(({ datagram }) => controlType(datagram) === ControlType.ACK)
    .map(({ datagram, port }) => [port, decodeAck(datagram)!.nextExpected - FIRST])
  t.strictSame(acked, [[1, 3], [2, 3]], 'but acknowledged on both') // prettier-ignore
  t.strictSame(takeLog(), ['open', 0, 1, 2])
})

t.test('no line acknowledges or reports what was sent over others only', async (t) => {
  const { join, arrive, take, control, wait } = createListening()
  const [a, b, idle] = [join({ port: 1 }), join({ port: 2 }), join({ port: 3 })]
  arrive(b, 0)
  for (const number of [0, 1, 3]) arrive(a, number)
  control(ControlType.KEEPALIVE, idle)
  wait(0, 100_000)
  const answers = take().map(({ datagram, port }) => [port, controlType(datagram)])
  const { ACK, NAK } = ControlType
  t.ok(answers.some(([port, type]) => port === a.port && type === NAK))
  t.notOk(answers.some(([port, type]) => port === b.port && type === NAK))
  t.ok(answers.some(([port, type]) => port === b.port && type === ACK))
  t.notOk(answers.some(([port]) => port === idle.port))
})

t.test(
  'what a line cannot send again, another may bring; what none brings is dropped in time',
  async (t) => {
    const { join, arrive, take, takeLog, dropRequest, wait } = createListening()
    const [a, b] = [join({ port: 1 }), join({ port: 2 })]
    arrive(a, 2)
    dropRequest(a, 0, 1)
    take()
    wait(0, 100_000)
    t.notOk(take().some(({ datagram }) => controlType(datagram) === ControlType.NAK))
    t.strictSame(takeLog(), ['open'])
    arrive(b, 0, 100_000)
    arrive(b, 1, 100_000)
    t.strictSame(takeLog(), [0, 1, 2])
    arrive(a, 5, 110_000)
    dropRequest(a, 3, 4)
    wait(110_000, 240_000)
    t.strictSame(takeLog(), ['gap 2', 5])
  },
)

t.test(
  'what a line could not send again is forgotten before sequence numbers come round',
  async (t) => {
    const { join, arrive, take, dropRequest, wait } = createListening()
    const [a, b] = [join({ port: 1 }), join({ port: 2 })]
    arrive(a, 2)
    dropRequest(a, 0, 1)
    arrive(b, 0)
    arrive(b, 1)
    wait(0, 10_000)
    // The receiver follows jumps: to more than half of all numbers later.
    for (const jump of [0.4, 0.8]) {
      const number = jump * 0x7fffffff
      arrive(a, Math.floor(number), 10_000)
      arrive(a, Math.floor(number) + 1, 10_000)
      wait(20_000, 200_000)
    }
    const early = take().filter(
      ({ datagram, port }) => port === b.port && controlType(datagram) === ControlType.NAK,
    )
    t.strictSame(early, [], 'nor is a line that fell behind asked for what it has not sent')
    arrive(a, Math.floor(0.8 * 0x7fffffff) + 3, 200_000)
    t.ok(take().some(({ datagram }) => controlType(datagram) === ControlType.NAK))
  },
)

t.test('a silent line ends, and the group goes on; its line number is free again', async (t) => {
  const { join, arrive, take, takeLog, group, endpoint } = createListening()
  const [, b] = [join({ port: 1 }), join({ port: 2 })]
  for (let nowUs = 0; nowUs <= 6_000_000; nowUs += 250_000) {
    arrive(b, nowUs / 250_000, nowUs)
    endpoint.tick(nowUs)
  }
  t.strictSame(group().stats().lines?.map(({ line }) => line), [2]) // prettier-ignore
  t.ok(take().some(({ port, datagram }) => port === 1 && controlType(datagram) === ControlType.SHUTDOWN)) // prettier-ignore
  join({ port: 3 }, { nowUs: 6_000_000 })
  t.strictSame(group().stats().lines?.map(({ line, remotePort }) => [line, remotePort]), [[2, 2], [1, 3]]) // prettier-ignore
  t.notMatch(takeLog(), ['timeout'])
})

t.test('counts a packet once, and on each line what came and what was missing there', async (t) => {
  const { join, arrive, control, group, endpoint } = createListening()
  const [a, b] = [join({ port: 1 }), join({ port: 2 })]
  for (const number of [0, 1, 2, 5, 4, 3]) arrive(a, number)
  for (const number of [0, 3, 3]) arrive(b, number)
  t.match(group().stats(), {
    pktRecvTotal: 6,
    byteRecvTotal: 24,
    pktRcvLossTotal: 2,
    pktRcvDuplicateTotal: 1,
    lines: [
      { line: 1, remotePort: 1, pktRecvTotal: 6, pktRcvLossTotal: 2, byteRecvTotal: 120 },
      { line: 2, remotePort: 2, pktRecvTotal: 3, pktRcvLossTotal: 2, byteRecvTotal: 60 },
    ],
  })
  control(ControlType.KEEPALIVE, b)
  arrive(b, 6)
  t.match(group().stats().lines, [{}, { pktRcvLossTotal: 2 }], 'what a line has not been sent')
  endpoint.tick(10_000)
  const acks = group().stats().pktSentACKTotal
  t.equal(acks, 2)
  control(ControlType.SHUTDOWN, a)
  t.equal(group().stats().pktSentACKTotal, acks, 'counts of lines that ended stay')
})

t.test('a sink that throws ends all members', async (t) => {
  const { join, arrive, failures, take } = createListening()
  const error = new Error('a sink that throws')
  const ends: unknown[] = []
  const sink = {
    open: () => undefined,
    push: () => {
      throw error
    },
    gap: () => undefined,
    end: (reason: string) => void ends.push(reason),
  }
  const a = join({ port: 1 }, { accepting: sink })
  join({ port: 2 }, { accepting: sink })
  take()
  arrive(a, 0)
  t.strictSame(failures, [error])
  t.strictSame(ends, ['closed'])
  const closed = take().filter(({ datagram }) => controlType(datagram) === ControlType.SHUTDOWN)
  t.strictSame(new Set(closed.map(({ port }) => port)), new Set([1, 2]))
})

t.test(
  'acknowledges to a backup group within 60 ms: libsrt takes a slower line for unstable',
  async (t) => {
    for (const type of [1, 2]) {
      const { join, arrive, take, endpoint } = createListening()
      const line = join({ port: 1, type })
      const ackedUs: number[] = []
      for (let nowUs = 0; nowUs < 1_000_000; nowUs += 10_000) {
        arrive(line, nowUs / 10_000, nowUs)
        endpoint.tick(nowUs)
        if (take().some(({ datagram }) => controlType(datagram) === ControlType.ACK)) ackedUs.push(nowUs) // prettier-ignore
      }
      const longestUs = Math.max(...ackedUs.map((us, i) => us - (ackedUs[i - 1] ?? 0)))
      if (type === 1) t.ok(longestUs > 60_000, 'a broadcast group needs no more ACKs than a caller')
      else t.ok(longestUs < 50_000, `${longestUs} µs`)
    }
  },
)

/** Lines of the matrix: RTT 40 and 200 ms, 5 % loss. */
const NEAR = { loss: 0.05, delayMs: 20 }
const FAR = { loss: 0.05, delayMs: 100 }

for (const [mode, type] of Object.entries(GroupType)) {
  t.test(
    `${mode}: over two and three lossy lines, nothing is lost while lines die and come back`,
    async (t) => {
      const cases: Record<string, readonly SimulatedLine[]> = {
        'two lines': [{ link: NEAR }, { link: FAR }],
        'three lines': [
          { link: NEAR },
          { link: FAR },
          { link: { ...FAR, jitterMs: 20, reorder: 0.02 } },
        ],
        'the near line dies': [{ link: NEAR, darkUs: [1e6, 60e6] }, { link: FAR }],
        'the far line stalls, and a third one joins': [
          { link: NEAR },
          { link: FAR, darkUs: [1e6, 4e6] },
          { link: FAR, callsUs: 2e6 },
        ],
        'one line dies after another has come': [
          { link: NEAR, darkUs: [4e6, 60e6] },
          { link: FAR, callsUs: 2e6 },
        ],
        'a line dies, calls anew, and carries on when the other one dies': [
          { link: NEAR, darkUs: [1e6, 8e6] },
          { link: FAR, darkUs: [11e6, 60e6] },
        ],
      }
      for (const [name, lines] of Object.entries(cases)) {
        const packets = lines.some(({ darkUs = [0] }) => darkUs[0] > 5e6) ? 7500 : 3000
        for (let seed = FIRST_SEED; seed < FIRST_SEED + rounds(2, 50); seed++) {
          const { violations, ...outcome } = simulateGroup({
            ...{ seed, type, lines, latencyMs: 1200, packets, intervalUs: 2000 },
            initialSequenceNumber: seed % 2 === 0 ? 0x7ffffc00 : 0,
          })
          t.strictSame(violations, [], `${name}, seed ${seed}`)
          t.match(outcome, { pushed: packets, gaps: 0, opened: 1 }, `${name}, seed ${seed}`)
        }
      }
    },
  )

  t.test(`${mode}: over any lines, a packet is lost only if none brought it in time`, async (t) => {
    let delivered = 0
    const seeds = Array.from({ length: rounds(60, 10_000) }, (_, index) => FIRST_SEED + index)
    for (const seed of seeds) {
      const { violations, ...outcome } = simulateGroup({ ...randomGroup(seed), type })
      delivered += outcome.pushed
      const isOk = violations.length === 0 && outcome.opened === 1
      if (!isOk) t.fail(`seed ${seed}`, { violations, ...outcome })
    }
    t.ok(delivered > seeds.length * 500, `${delivered} packets delivered`)
  })
}

/** Two or three lines of which one works throughout; the others may be away at any time. */
function randomGroup(seed: number) {
  const random = createRandom(seed * 7919)
  const upTo = (limit: number) => (random.chance(0.3) ? 0 : random.next() * limit)
  const packets = 600
  const intervalUs = 500 + random.below(random.chance(0.3) ? 20_000 : 4000)
  const spanUs = packets * intervalUs
  const count = 2 + random.below(2)
  const steady = random.below(count)
  const lines = Array.from({ length: count }, (_, index): SimulatedLine => {
    const burst = random.chance(0.3) ? { enter: 0.01, leave: 0.1 + random.next() * 0.5 } : undefined
    const link = {
      loss: upTo(0.2),
      delayMs: upTo(150),
      jitterMs: upTo(60),
      ...{ reorder: upTo(0.1), reorderMs: 1 + upTo(50), duplicate: upTo(0.1) },
      ...(burst && { burst }),
    }
    if (index === steady) return { link }
    const fromUs = random.next() * spanUs
    const darkUs = [fromUs, fromUs + random.next() * spanUs] as const
    const callsUs = random.next() * spanUs
    return { link, darkUs, ...(random.chance(0.3) && { callsUs }) }
  })
  return {
    ...{ seed, lines, packets, intervalUs, latencyMs: 50 + random.below(1500) },
    initialSequenceNumber: random.chance(0.5) ? 0x7fffffff - random.below(600) : random.below(1e9),
  }
}
