/**
 * Registration, lines and groups, by the packets that a receiver sends and passes on.
 */
import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import t from 'tap'
import { SrtlaReceiver } from '../../../src/srt/srtla/srtla-receiver.ts'
import { ControlType, writeControlHeader, writeDataHeader } from '../../../src/srt/wire/packet.ts'
import { createRandom } from '../../support/random.ts'
import { rounds } from '../../support/soak.ts'

const SEC = 1_000_000
const KEEPALIVE = Buffer.from('9000', 'hex')

function setUp() {
  const { bytes } = createRandom(1)
  const clock = { nowUs: 0 }
  const sent: { to: string; datagram: Buffer }[] = []
  const delivered: { from: string; datagram: Buffer }[] = []
  const inUse = new Set<string>()
  const receiver = new SrtlaReceiver({
    random: bytes,
    host: {
      send: (datagram, port, address) => sent.push({ to: `${address}:${port}`, datagram }),
      deliver: (datagram, port, address) =>
        delivered.push({ from: `${address}:${port}`, datagram }),
      isInUse: (port, address) => inUse.has(`${address}:${port}`),
    },
  })
  const hear = (from: string, datagram: Buffer) => {
    const [address = '', port] = from.split(':')
    receiver.handleDatagram(datagram, Number(port), address, clock.nowUs)
    return sent.splice(0)
  }
  const request = (from: string, half = bytes(256)) =>
    hear(from, Buffer.concat([Buffer.from([0x92, 0x00]), half])).map(({ datagram }) =>
      datagram.subarray(2),
    )[0]
  /** @returns types of the replies */
  const join = (from: string, id: Buffer) =>
    hear(from, Buffer.concat([Buffer.from([0x92, 0x01]), id])).map(({ datagram }) =>
      datagram.toString('hex'),
    )
  /** @returns id of a group with this line */
  const register = (from: string) => {
    const id = request(from)!
    return { id, replies: join(from, id) }
  }
  const wait = (us: number, keep: readonly string[] = []) => {
    for (const untilUs = clock.nowUs + us; clock.nowUs < untilUs;) {
      clock.nowUs += SEC / 4
      for (const line of keep) hear(line, KEEPALIVE)
      receiver.tick(clock.nowUs)
    }
  }
  return { receiver, clock, bytes, delivered, inUse, sent, hear, request, join, register, wait }
}

function data(sequence: number): Buffer {
  const datagram = Buffer.alloc(20)
  writeDataHeader(datagram, { sequence, message: 1, timestampUs: 0, socketId: 5 })
  return datagram
}

function control(type: ControlType): Buffer {
  const datagram = Buffer.alloc(20)
  writeControlHeader(datagram, { type, information: 0, timestampUs: 0, socketId: 5 })
  return datagram
}

t.test('a REG1 gets the sender’s half and one of the receiver, and leaves no state', async (t) => {
  const { receiver, request, bytes } = setUp()
  const half = bytes(256)
  const id = request('192.0.2.1:1000', half)!
  t.equal(id.length, 256)
  t.same(id.subarray(0, 128), half.subarray(0, 128))
  t.notSame(id.subarray(128), half.subarray(128))
  t.match(receiver.stats, { groups: 0, lines: 0 })
  t.equal(receiver.busy, false)
})

t.test('any line may present the id first; the group has the address that asked', async (t) => {
  const { receiver, request, join, hear, delivered } = setUp()
  const id = request('192.0.2.1:1000')!
  t.same(join('198.51.100.7:2000', id), ['9202'])
  t.same(join('192.0.2.1:1000', id), ['9202'])
  t.same(join('192.0.2.1:1000', id), ['9202'], 'again')
  t.match(receiver.stats, { groups: 1, lines: 2, founded: 1 })
  const packet = data(1)
  t.same(hear('198.51.100.7:2000', packet), [])
  t.same(delivered, [{ from: '192.0.2.1:1000', datagram: packet }])
})

t.test('ids of nobody, altered, or older than a minute, are unknown', async (t) => {
  const { receiver, clock, request, join, bytes } = setUp()
  t.same(join('192.0.2.1:1000', bytes(256)), ['9211'])
  const id = request('192.0.2.1:1000')!
  for (const at of [0, 127, 128, 160, 164, 166, 170, 255]) {
    const altered = Buffer.from(id)
    altered[at]! ^= 1
    t.same(join('192.0.2.1:1000', altered), ['9211'], `byte ${at}`)
  }
  clock.nowUs += 60 * SEC
  t.same(join('192.0.2.1:1000', id), ['9211'])
  t.match(receiver.stats, { groups: 0, founded: 0 })
})

t.test('a KEEPALIVE is echoed on its line as it came', async (t) => {
  const { register, hear, clock } = setUp()
  register('192.0.2.1:1000')
  for (const length of [2, 10, 38, 200]) {
    const datagram = Buffer.alloc(length, 7)
    datagram.writeUInt16BE(0x9000)
    t.same(hear('192.0.2.1:1000', datagram), [{ to: '192.0.2.1:1000', datagram }])
  }
  const echoes = Array.from({ length: 1000 }, () => hear('192.0.2.1:1000', KEEPALIVE)).flat()
  t.equal(echoes.length, 16, 'a flood is echoed in part')
  clock.nowUs += SEC
  t.equal(hear('192.0.2.1:1000', KEEPALIVE).length, 1)
})

t.test('ten data packets of a line get an ACK there, whatever comes on others', async (t) => {
  const { register, join, hear } = setUp()
  const { id } = register('192.0.2.1:1000')
  join('192.0.2.2:1000', id)
  for (let number = 1; number < 10; number++) {
    t.same(hear('192.0.2.1:1000', data(number * 2)), [])
    t.same(hear('192.0.2.2:1000', data(number * 2 + 1)), [])
    t.same(hear('192.0.2.1:1000', control(ControlType.KEEPALIVE)), [])
  }
  const [ack, ...others] = hear('192.0.2.1:1000', data(20))
  t.same(others, [])
  t.equal(ack!.to, '192.0.2.1:1000')
  const words = Array.from({ length: 10 }, (_, index) => ack!.datagram.readUInt32BE(4 + index * 4))
  t.same(words, [2, 4, 6, 8, 10, 12, 14, 16, 18, 20])
})

t.test('ACKs of SRT go to all lines, all else to the line of the latest packet', async (t) => {
  const { receiver, register, join, hear, sent } = setUp()
  const { id } = register('192.0.2.1:1000')
  for (const line of ['192.0.2.2:1000', '192.0.2.3:1000']) join(line, id)
  const transmit = (datagram: Buffer) => {
    receiver.transmit(datagram, 1000, '192.0.2.1')
    return sent.splice(0).map(({ to }) => to)
  }
  t.same(transmit(control(ControlType.HANDSHAKE)), ['192.0.2.1:1000'])
  hear('192.0.2.3:1000', data(1))
  hear('192.0.2.2:1000', KEEPALIVE)
  for (const type of [ControlType.NAK, ControlType.KEEPALIVE, ControlType.SHUTDOWN]) {
    t.same(transmit(control(type)), ['192.0.2.3:1000'])
  }
  t.same(transmit(control(ControlType.ACK)), ['192.0.2.1:1000', '192.0.2.2:1000', '192.0.2.3:1000'])
  receiver.transmit(control(ControlType.ACK), 1001, '192.0.2.1')
  t.same(sent, [], 'no group there')
})

t.test('a line is gone after 10 s of silence, a group 10 s after its last line', async (t) => {
  const { receiver, register, join, hear, wait, sent } = setUp()
  const { id } = register('192.0.2.1:1000')
  join('192.0.2.2:1000', id)
  hear('192.0.2.2:1000', data(1))
  wait(10 * SEC, ['192.0.2.1:1000'])
  t.match(receiver.stats, { groups: 1, lines: 1 })
  receiver.transmit(control(ControlType.NAK), 1000, '192.0.2.1')
  t.match(sent.splice(0), [{ to: '192.0.2.1:1000' }])
  t.same(hear('192.0.2.2:1000', KEEPALIVE), [], 'no echo')
  t.same(join('192.0.2.2:1000', id), ['9202'], 'it comes back')
  wait(19 * SEC)
  t.match(receiver.stats, { groups: 1, lines: 0 })
  t.same(join('192.0.2.9:4000', id), ['9202'], 'as the only line')
  wait(20 * SEC)
  t.match(receiver.stats, { groups: 0, lines: 0 })
  t.equal(receiver.busy, false)
})

t.test('a line with a new port joins as another one, and is known by number', async (t) => {
  const { receiver, register, join, hear } = setUp()
  const { id } = register('192.0.2.1:1000')
  join('192.0.2.2:1000', id)
  join('192.0.2.2:1999', id)
  hear('192.0.2.2:1999', data(1))
  t.match(receiver.linesOf(1000, '192.0.2.1'), [
    { line: 1, remotePort: 1000, pktRecvTotal: 0 },
    { line: 2, remotePort: 1000, pktRecvTotal: 0 },
    { line: 3, remotePort: 1999, pktRecvTotal: 1, byteRecvTotal: 20 },
  ])
  t.same(receiver.linesOf(1, '192.0.2.1'), [])
})

t.test('a group has eight lines, and an address one group', async (t) => {
  const { receiver, register, join } = setUp()
  const { id } = register('192.0.2.1:1000')
  for (let port = 1001; port < 1008; port++) t.same(join(`192.0.2.1:${port}`, id), ['9202'])
  t.same(join('192.0.2.1:1008', id), ['9210'])
  t.match(register('192.0.2.1:1000').replies, ['9210'])
  t.match(receiver.stats, { lines: 8, refused: 2 })
})

t.test('two groups of one founding address have ports of their own', async (t) => {
  const { receiver, request, join, hear, delivered } = setUp()
  const ids = [request('192.0.2.1:65535')!, request('192.0.2.1:65535')!]
  t.same(join('192.0.2.2:1', ids[0]!), ['9202'])
  t.same(join('192.0.2.3:1', ids[1]!), ['9202'])
  hear('192.0.2.3:1', data(1))
  t.match(delivered, [{ from: '192.0.2.1:1' }])
  t.equal(receiver.stats.groups, 2)
})

t.test('groups that nobody uses make room for newcomers, others do not', async (t) => {
  const { receiver, register, wait, inUse, clock } = setUp()
  const lines: string[] = []
  for (let number = 0; number < 200; number++) {
    const line = `10.0.${number}.1:1000`
    clock.nowUs += SEC / 100
    t.same(register(line).replies, ['9202'])
    lines.push(line)
  }
  lines.slice(0, 5).forEach((line) => inUse.add(line))
  t.same(register('203.0.113.1:1000').replies, ['9202'])
  t.equal(receiver.stats.groups, 200)
  t.equal(receiver.linesOf(1000, '10.0.0.1').length, 1)
  t.equal(receiver.linesOf(1000, '10.0.5.1').length, 0, 'the oldest unused')
  lines.forEach((line) => inUse.add(line))
  inUse.add('203.0.113.1:1000')
  clock.nowUs += SEC
  t.same(register('203.0.113.2:1000').replies, ['9210'])
  wait(20 * SEC)
  t.equal(receiver.stats.groups, 0)
})

t.test('an address founds 16 groups at once, then two a second', async (t) => {
  const { register, clock } = setUp()
  const found = (count: number, from: number) =>
    Array.from({ length: count }, (_, port) => register(`192.0.2.1:${from + port}`).replies[0])
  t.equal(found(30, 1000).filter((reply) => reply === '9202').length, 16)
  clock.nowUs += SEC
  t.equal(found(30, 2000).filter((reply) => reply === '9202').length, 2)
  t.same(register('198.51.100.1:1000').replies, ['9202'], 'other networks are not affected')
})

t.test('all networks together leave a sender that registers a second to connect', async (t) => {
  const { receiver, register, clock } = setUp()
  register('192.0.2.1:1000')
  for (let round = 0; round < 100; round++) {
    for (let network = 0; network < 20; network++) register(`10.${round}.${network}.1:1000`)
    t.equal(receiver.linesOf(1000, '192.0.2.1').length, 1, `after ${round} hundredths`)
    clock.nowUs += SEC / 100
  }
  t.equal(receiver.stats.groups, 199)
})

t.test('floods from strangers get no reply but one of their length, in part', async (t) => {
  const { receiver, hear, bytes } = setUp()
  const reg1 = Buffer.concat([Buffer.from([0x92, 0x00]), bytes(256)])
  const replies = Array.from({ length: 20_000 }, (_, port) =>
    hear(`192.0.2.1:${port + 1}`, reg1),
  ).flat()
  t.equal(replies.length, 1000)
  t.ok(replies.every(({ datagram }) => datagram.length === reg1.length))
  for (const datagram of [KEEPALIVE, data(1), control(ControlType.ACK), Buffer.alloc(0)]) {
    t.same(hear('192.0.2.1:9', datagram), [])
  }
  t.same(hear('192.0.2.1:9', reg1.subarray(0, 200)), [])
  t.same(hear('198.51.100.1:0', reg1), [], 'port 0')
  t.match(receiver.stats, { groups: 0, unregistered: 4, malformed: 2, limited: 19_000 })
})

/** What a receiver is to do, for any order of datagrams: groups by id, lines by address. */
t.test('any order of datagrams has the result of a naive model', async () => {
  const ADDRESSES = ['192.0.2.1:1', '192.0.2.1:2', '198.51.100.1:1', '203.0.113.1:7']
  const steps = fc.oneof(
    fc.record({ act: fc.constant('request'), from: fc.constantFrom(...ADDRESSES) }),
    fc.record({
      act: fc.constantFrom('join', 'join', 'keep', 'data', 'garbage'),
      from: fc.constantFrom(...ADDRESSES),
      pick: fc.nat(9),
    }),
    fc.record({ act: fc.constant('wait'), from: fc.constant(''), pick: fc.nat(12) }),
  )
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 60 }), (acts) => {
      const { receiver, clock, bytes, request, join, hear, delivered, wait } = setUp()
      const issued: { id: Buffer; atUs: number; founder: string }[] = []
      const groups = new Map<number, { peer: string; livedUs: number }>()
      const lines = new Map<string, { group: number; heardUs: number; packets: number }>()
      for (const step of acts) {
        const { act, from } = step
        const pick = 'pick' in step ? step.pick : 0
        const line = lines.get(from)
        if (act === 'request') {
          issued.push({ id: request(from)!, atUs: clock.nowUs, founder: from })
        } else if (act === 'join' && issued.length > 0) {
          const index = pick % issued.length
          const { id, atUs, founder } = issued[index]!
          const slots = Math.floor(clock.nowUs / 3e7) - Math.floor(atUs / 3e7)
          const [reply] = join(from, id)
          if (!groups.has(index) && slots <= 1) {
            const taken = [...groups.values()].map(({ peer }) => peer)
            let [address, port] = founder.split(':') as [string, string]
            while (taken.includes(`${address}:${port}`)) port = String(Number(port) + 1)
            groups.set(index, { peer: `${address}:${port}`, livedUs: clock.nowUs })
          }
          const isFree = line === undefined || line.group === index
          assert.equal(reply, groups.has(index) ? (isFree ? '9202' : '9210') : '9211')
          if (reply === '9202')
            lines.set(from, { packets: 0, ...line, group: index, heardUs: clock.nowUs })
        } else if (act === 'keep') {
          assert.equal(hear(from, KEEPALIVE).length, line === undefined ? 0 : 1)
          if (line) line.heardUs = clock.nowUs
        } else if (act === 'data') {
          const replies = hear(from, data(pick))
          if (line) {
            line.heardUs = clock.nowUs
            line.packets++
          }
          assert.equal(replies.length, line !== undefined && line.packets % 10 === 0 ? 1 : 0)
          const expected = line && [groups.get(line.group)!.peer]
          assert.deepEqual(
            delivered.splice(0).map((each) => each.from),
            expected ?? [],
          )
        } else if (act === 'garbage')
          hear(from, Buffer.concat([Buffer.from([0x9f]), bytes(pick * 30)]))
        else if (act === 'wait') {
          for (let second = 0; second < pick; second++) {
            wait(SEC)
            for (const { group } of lines.values()) groups.get(group)!.livedUs = clock.nowUs
            for (const [key, { heardUs }] of lines)
              if (clock.nowUs - heardUs >= 10 * SEC) lines.delete(key)
            for (const [index, { livedUs }] of groups)
              if (clock.nowUs - livedUs >= 10 * SEC) groups.delete(index)
          }
        }
        const { groups: groupCount, lines: lineCount } = receiver.stats
        assert.deepEqual([groupCount, lineCount], [groups.size, lines.size])
      }
    }),
    { numRuns: rounds(100, 5000) },
  )
})
