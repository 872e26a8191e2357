import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2'
import { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { GuardedSession } from '../../../src/http/guard/guarded-session.ts'
import { TurnQueue } from '../../../src/http/turn-queue.ts'

t.test('begins one request of each connection in a turn, however many it has', async (t) => {
  const turns = new TurnQueue(16)
  const [many, one] = [openSession(turns), openSession(turns)]
  const begun: string[] = []
  for (let at = 0; at < 20; at++) many.add(openStream(), () => void begun.push(`many ${at}`))
  one.add(openStream(), () => void begun.push('one'))
  t.strictSame(begun, [], 'none while frames are read')
  await turn()
  t.strictSame(begun, ['many 0', 'one'])
  await turn()
  t.strictSame(begun, ['many 0', 'one', 'many 1'])
})

t.test('begins no request of a stream that has closed, and waits for none', async (t) => {
  const session = openSession(new TurnQueue(16))
  const begun: number[] = []
  const streams = Array.from({ length: 5 }, openStream)
  for (const [at, stream] of streams.entries()) session.add(stream, () => void begun.push(at))
  for (const stream of streams.slice(0, 3)) session.remove(stream)
  await turn()
  t.strictSame(begun, [3])
})

function openSession(turns: TurnQueue): GuardedSession {
  return new GuardedSession({} as ServerHttp2Session, new Socket(), turns, 0)
}

function openStream(): ServerHttp2Stream {
  return { destroyed: false, closed: false } as ServerHttp2Stream
}
