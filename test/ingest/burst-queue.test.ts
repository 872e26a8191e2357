import t from 'tap'
import { BurstQueue } from '../../src/ingest/burst-queue.ts'
import type { SrtConnection } from '../../src/srt/types.ts'
import type { Publication } from '../../src/stream/publication.ts'

/** A queue that is connected to a publication of these methods. */
function openQueue(
  publication: Pick<Publication, 'push' | 'gap' | 'end'>,
  defer: (act: () => void) => void,
): BurstQueue {
  const connect = () => publication as Publication
  const queue = new BurstQueue({ source: 'main', connect, disconnected: () => undefined }, defer)
  queue.open({} as SrtConnection)
  return queue
}

/** A queue whose turns of the event loop are taken by hand, and all it handed on. */
function setUp() {
  const handedOn: (number | string)[] = []
  const deferred: (() => void)[] = []
  const queue = openQueue(
    {
      push: (payload) => void handedOn.push(payload[0]!),
      gap: (lostPackets) => void handedOn.push(`gap ${lostPackets}`),
      end: (reason) => void handedOn.push(reason),
    },
    (act) => void deferred.push(act),
  )
  const turn = (): void => {
    for (const act of deferred.splice(0)) act()
  }
  const pushAll = (from: number, to: number): void => {
    for (let number = from; number < to; number++) queue.push(Buffer.from([number]))
  }
  return { queue, handedOn, turn, pushAll }
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index)

t.test('passes a burst on in turns of 64, in order, with its gaps and its end', async (t) => {
  const { queue, handedOn, turn, pushAll } = setUp()
  pushAll(0, 100)
  queue.gap(7)
  pushAll(100, 150)
  queue.end('shutdown')
  t.same(handedOn, numbers(64))
  turn()
  t.same(handedOn, [...numbers(100), 'gap 7', ...numbers(128).slice(100)])
  turn()
  const all = [...numbers(100), 'gap 7', ...numbers(150).slice(100), 'shutdown']
  t.same(handedOn, all)
  turn()
  t.same(handedOn, all, 'one end')
})

t.test('passes single payloads on at once', async (t) => {
  const { queue, handedOn, turn, pushAll } = setUp()
  for (let piece = 0; piece < 6; piece++) {
    pushAll(piece * 40, piece * 40 + 40)
    t.same(handedOn, numbers(piece * 40 + 40))
    turn()
  }
  queue.end('timeout')
  t.equal(handedOn.at(-1), 'timeout')
})

t.test('discards waiting payloads when the stream stops', async (t) => {
  const { queue, handedOn, turn, pushAll } = setUp()
  pushAll(0, 200)
  queue.end('closed')
  t.same(handedOn, [...numbers(64), 'stopped'])
  turn()
  t.same(handedOn, [...numbers(64), 'stopped'])
})

t.test('ends once where a payload stops the stream', async (t) => {
  const handedOn: string[] = []
  const queue: BurstQueue = openQueue(
    {
      push: () => {
        handedOn.push('payload')
        if (handedOn.length === 70) queue.end('closed')
      },
      gap: () => undefined,
      end: (reason) => void handedOn.push(reason),
    },
    (act) => void deferred.push(act),
  )
  const deferred: (() => void)[] = []
  for (let number = 0; number < 200; number++) queue.push(Buffer.alloc(1))
  while (deferred.length > 0) deferred.shift()!()
  t.same(handedOn.slice(70), ['stopped'])
})
