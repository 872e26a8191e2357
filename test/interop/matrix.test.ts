/**
 * The interop matrix: every kind of publisher into our listener, over networks of every kind. docs/interop.md tells
 * what was seen.
 */
import t from 'tap'
import { requireTool } from '../support/tools.ts'
import { PUBLISHERS, type Publisher, type PublisherName } from './publishers.ts'
import { play, receive } from './reception.ts'

/** 4 s of 2.1 Mbit/s. */
const PACKETS = 800

interface Cell {
  readonly publisher: PublisherName
  readonly family: 'IPv4' | 'IPv6'
  /** In both directions. */
  readonly lossPercent: number
  readonly rttMs: number
}

const cell = (
  publisher: PublisherName,
  family: Cell['family'],
  lossPercent: number,
  rttMs: number,
): Cell => ({ publisher, family, lossPercent, rttMs })

const CELLS: readonly Cell[] = [
  cell('ffmpeg', 'IPv4', 0, 1),
  cell('ffmpeg', 'IPv6', 1, 300),
  cell('ffmpeg', 'IPv4', 5, 600),
  cell('ffmpeg', 'IPv6', 10, 100),
  cell('srt-live-transmit', 'IPv4', 1, 100),
  cell('srt-live-transmit', 'IPv6', 0, 600),
  cell('srt-live-transmit', 'IPv4', 10, 300),
  cell('srt-live-transmit', 'IPv6', 5, 1),
  cell('GStreamer', 'IPv6', 5, 300),
  cell('GStreamer', 'IPv4', 10, 1),
  cell('GStreamer', 'IPv6', 0, 100),
  cell('GStreamer', 'IPv4', 1, 600),
  cell('our caller', 'IPv6', 10, 600),
  cell('our caller', 'IPv4', 5, 100),
  cell('our caller', 'IPv6', 1, 1),
  cell('our caller', 'IPv4', 0, 300),
]

t.jobs = 8

for (const [index, { publisher, family, lossPercent, rttMs }] of CELLS.entries()) {
  const title = `${publisher}, ${family}, loss ${lossPercent} %, RTT ${rttMs} ms`
  t.test(`${title}: every byte arrives`, { buffered: true }, async (t) => {
    const { tool, start }: Publisher = PUBLISHERS[publisher]
    if (tool !== undefined && !requireTool(t, tool)) return
    const link = { loss: lossPercent / 100, delayMs: rttMs / 2 }
    const received = await receive(t, {
      host: family === 'IPv4' ? '127.0.0.1' : '::1',
      // Room for eight attempts to repair a loss, and for a busy machine.
      latencyMs: 8 * rttMs + 1000,
      seed: index,
      forward: link,
      backward: link,
    })
    const publication = start(t, received.call)
    const stream = await play(publication, PACKETS, (bytes) => received.bytes().length >= bytes)
    t.ok(received.bytes().subarray(0, stream.length).equals(stream), publication.output())
    t.equal(received.gaps(), 0)
    t.equal(received.connections.length, 1)
    if (lossPercent > 0) t.ok(received.relay.counters('forward').lost > 0)
  })
}
