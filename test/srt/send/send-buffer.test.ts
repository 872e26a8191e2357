/**
 * The ring of the sender against a model without ring and wrap.
 */
import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import t from 'tap'
import { addToSequence } from '../../../src/srt/wire/counters.ts'
import { SendBuffer } from '../../../src/srt/send/send-buffer.ts'

const CAPACITY = 16
const FIRST = 0x7ffffff0

interface Packet {
  readonly place: number
  readonly queuedUs: number
  isSent: boolean
  isRequested: boolean
}

/** Places count from 0 and never wrap. */
class Model {
  packets: Packet[] = []
  end = 0
  acknowledged = 0

  get first(): number {
    return this.packets[0]?.place ?? this.end
  }

  get sent(): Packet[] {
    return this.packets.filter(({ isSent }) => isSent)
  }

  get unsent(): number {
    return this.first + this.sent.length
  }

  get requested(): Packet[] {
    return this.packets.filter(({ isRequested }) => isRequested)
  }
}

const numberOf = (place: number) => addToSequence(FIRST, place)
const payloadOf = (place: number) => Buffer.from([place & 0xff])

function rangeOf(places: readonly number[]) {
  const [first] = places
  return first === undefined
    ? undefined
    : { first: numberOf(first), last: numberOf(first + places.length - 1) }
}

const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.constant('push' as const) },
    { weight: 3, arbitrary: fc.constant('send' as const) },
    { weight: 1, arbitrary: fc.constant('resend' as const) },
    { weight: 2, arbitrary: fc.record({ request: fc.nat(CAPACITY) }) },
    { weight: 1, arbitrary: fc.record({ acknowledge: fc.integer({ min: -3, max: CAPACITY }) }) },
    { weight: 1, arbitrary: fc.record({ giveUpAgeUs: fc.nat(40) }) },
    {
      weight: 2,
      arbitrary: fc.record({ ask: fc.integer({ min: -40, max: 30 }), more: fc.nat(60) }),
    },
  ),
  { maxLength: 150, size: 'max' },
)

t.test(
  'returns every packet once, and again for each request while it is in the buffer',
  async (t) => {
    fc.assert(
      fc.property(steps, (taken) => {
        const buffer = new SendBuffer(FIRST, CAPACITY)
        const model = new Model()
        let nowUs = 0
        for (const step of taken) {
          nowUs++
          if (step === 'push') {
            assert.equal(buffer.isFull, model.packets.length === CAPACITY)
            if (buffer.isFull) continue
            buffer.push(payloadOf(model.end), nowUs)
            model.packets.push({
              place: model.end++,
              queuedUs: nowUs,
              isSent: false,
              isRequested: false,
            })
          } else if (step === 'send') {
            const next = model.packets.find(({ isSent }) => !isSent)
            if (next === undefined) continue
            assert.deepEqual(buffer.takeUnsent(), payloadOf(next.place))
            next.isSent = true
          } else if (step === 'resend') {
            const [oldest] = model.requested
            if (oldest === undefined) continue
            assert.deepEqual(buffer.takeRequested(nowUs), payloadOf(oldest.place))
            assert.equal(buffer.retransmittedUs(numberOf(oldest.place)), nowUs)
            oldest.isRequested = false
          } else if ('request' in step) {
            const packet = model.sent[step.request]
            if (packet === undefined) continue
            assert.equal(buffer.request(numberOf(packet.place)), !packet.isRequested)
            packet.isRequested = true
          } else if ('acknowledge' in step) {
            const place = Math.min(model.first + step.acknowledge, model.unsent)
            const kept = model.packets.filter((packet) => packet.place >= place)
            assert.equal(buffer.acknowledge(numberOf(place)), model.packets.length - kept.length)
            model.packets = kept
            model.acknowledged = Math.max(model.acknowledged, place)
          } else if ('giveUpAgeUs' in step) {
            const untilUs = nowUs - step.giveUpAgeUs
            const kept = model.packets.filter(({ queuedUs }) => queuedUs > untilUs)
            assert.equal(buffer.drop(untilUs), model.packets.length - kept.length)
            model.packets = kept
            model.acknowledged = Math.max(model.acknowledged, model.first - (CAPACITY - 1))
          } else {
            const from = model.first + step.ask
            const requested = Array.from({ length: step.more + 1 }, (_, i) => from + i)
            const range = rangeOf(requested)!
            const { first, unsent, acknowledged } = model
            const inFlight = requested.filter((place) => place >= first && place < unsent)
            const givenUp = requested.filter((place) => place >= acknowledged && place < first)
            assert.deepEqual(buffer.findInFlight(range), rangeOf(inFlight))
            assert.deepEqual(buffer.findDropped(range), rangeOf(givenUp))
          }
          assert.equal(buffer.first, numberOf(model.first))
          assert.equal(buffer.unsent, numberOf(model.unsent))
          assert.equal(buffer.end, numberOf(model.end))
          assert.equal(buffer.flightPackets, model.sent.length)
          assert.equal(buffer.waitingPackets, model.packets.length - model.sent.length)
          assert.equal(buffer.requestedPackets, model.requested.length)
          const spanUs = (model.packets.at(-1)?.queuedUs ?? 0) - (model.packets[0]?.queuedUs ?? 0)
          assert.equal(buffer.spanUs, spanUs)
        }
      }),
      { numRuns: 200 },
    )
    t.pass()
  },
)

t.test('a packet does not inherit the request of an earlier one in its slot', async (t) => {
  const buffer = new SendBuffer(0, 4)
  for (const place of [0, 1, 2, 3]) {
    buffer.push(payloadOf(place), 0)
    buffer.takeUnsent()
  }
  buffer.request(0)
  buffer.request(2)
  buffer.acknowledge(1)
  buffer.push(payloadOf(4), 0)
  buffer.takeUnsent()
  buffer.request(4)
  t.strictSame(buffer.takeRequested(1), payloadOf(2))
  t.strictSame(buffer.takeRequested(1), payloadOf(4))
})
