/**
 * Handshakes of foreign peers over a bad network (draft-sharabayko-srt 4.3.1): each side repeats its packets until the
 * other has received them, and no peer is accepted twice.
 */
import t from 'tap'
import { requireTool } from '../support/tools.ts'
import type { Direction } from '../../support/udp-relay.ts'
import { isConclusion } from './conclusion.ts'
import { PUBLISHERS, type Publisher } from './publishers.ts'
import { difference, play, receive } from './reception.ts'

/** Half a second of a stream: enough to see that the connection carries something. */
const PACKETS = 100

/** The CONCLUSIONs of each direction, in the order in which they reached the relay. */
class Conclusions {
  readonly forward: Buffer[] = []
  readonly backward: Buffer[] = []

  /** @returns how many of this direction there were with this one, or undefined where it is none */
  count(direction: Direction, datagram: Buffer): number | undefined {
    if (!isConclusion(datagram)) return undefined
    return this[direction].push(Buffer.from(datagram))
  }
}

t.jobs = 6

for (const [name, { tool, start }] of Object.entries(PUBLISHERS) as [string, Publisher][]) {
  for (const { title, direction, lost } of [
    { title: 'the first two CONCLUSIONs are lost', direction: 'forward', lost: 2 },
    { title: 'the first CONCLUSION answer is lost', direction: 'backward', lost: 1 },
    { title: 'the first three CONCLUSION answers are lost', direction: 'backward', lost: 3 },
  ] as const) {
    t.test(`${name} connects where ${title}`, { buffered: true }, async (t) => {
      if (tool !== undefined && !requireTool(t, tool)) return
      const conclusions = new Conclusions()
      const received = await receive(t, {
        latencyMs: 1000,
        alter: (towards, datagram) => {
          const count = conclusions.count(towards, datagram)
          return count === undefined || towards !== direction || count > lost
        },
      })
      const publication = start(t, received.call)
      const stream = await play(publication, PACKETS, (bytes) => received.bytes().length >= bytes)
      t.equal(difference(received.bytes(), stream), '', publication.output())
      t.equal(received.gaps(), 0)
      t.ok(conclusions[direction].length > lost)
      t.equal(received.listener.stats().accepted, 1)
      t.equal(received.listener.stats().badCookies, 0)
    })
  }

  t.test(
    `${name}, RTT 600 ms: repeated CONCLUSIONs get the same bytes`,
    { buffered: true },
    async (t) => {
      if (tool !== undefined && !requireTool(t, tool)) return
      const link = { delayMs: 300 }
      const conclusions = new Conclusions()
      const received = await receive(t, {
        latencyMs: 2000,
        forward: link,
        backward: link,
        tap: (direction, datagram) => conclusions.count(direction, datagram),
      })
      const publication = start(t, received.call)
      const stream = await play(publication, PACKETS, (bytes) => received.bytes().length >= bytes)
      t.equal(difference(received.bytes(), stream), '', publication.output())
      t.equal(received.connections.length, 1)
      // A CONCLUSION every 250 ms, for 600 ms.
      const [answer, ...repetitions] = conclusions.backward
      t.ok(repetitions.length >= 2, `${repetitions.length} repetitions`)
      for (const repetition of repetitions) t.ok(repetition.equals(answer!))
      t.equal(received.listener.stats().duplicateHandshakes, conclusions.forward.length - 1)
    },
  )
}
