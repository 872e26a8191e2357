/**
 * Our caller publishes to foreign listeners, over networks of several kinds. They hold everything back for the latency,
 * so each of these takes that long more than the stream.
 */
import t from 'tap'
import { requireTool } from '../support/tools.ts'
import { startRelay } from '../support/udp-relay.ts'
import { publishWith } from './publishers.ts'
import { listen, RECEIVERS, type Receiver } from './receivers.ts'
import { play } from './reception.ts'

/** 3 s of 2.1 Mbit/s. */
const PACKETS = 600

interface Cell {
  readonly receiver: keyof typeof RECEIVERS
  /** In both directions. */
  readonly lossPercent: number
  readonly rttMs: number
  /** The first packet lies shortly before the end of both counters (draft-sharabayko-srt 3). */
  readonly wraps?: boolean
}

const CELLS: readonly Cell[] = [
  { receiver: 'srt-live-transmit', lossPercent: 0, rttMs: 600 },
  { receiver: 'srt-live-transmit', lossPercent: 10, rttMs: 100 },
  { receiver: 'srt-live-transmit', lossPercent: 1, rttMs: 1, wraps: true },
  { receiver: 'ffmpeg', lossPercent: 0, rttMs: 1 },
  { receiver: 'ffmpeg', lossPercent: 5, rttMs: 300 },
  { receiver: 'ffmpeg', lossPercent: 5, rttMs: 100, wraps: true },
  { receiver: 'GStreamer', lossPercent: 10, rttMs: 1 },
  { receiver: 'GStreamer', lossPercent: 1, rttMs: 100 },
]

const BEFORE_WRAP = {
  initialSequenceNumber: 2 ** 31 - 200,
  startTimestampUs: 2 ** 32 - 1_500_000,
}

t.jobs = 8

for (const [index, { receiver, lossPercent, rttMs, wraps = false }] of CELLS.entries()) {
  const title = `to ${receiver}, loss ${lossPercent} %, RTT ${rttMs} ms`
  t.test(
    `${title}${wraps ? ', across the ends of the counters' : ''}: every byte arrives`,
    { buffered: true },
    async (t) => {
      const peer: Receiver = RECEIVERS[receiver]
      if (!requireTool(t, peer.tool)) return
      const listener = await listen(t, peer)
      // These programs stop listening when they have accepted: if their answer is lost, nobody repeats it.
      const link = { loss: lossPercent / 100, delayMs: rttMs / 2, sparesHandshakes: true }
      const relay = startRelay({
        targetPort: listener.port,
        seed: index,
        forward: link,
        backward: link,
      })
      t.teardown(() => relay.close())
      const publication = publishWith(t, {
        host: '127.0.0.1',
        port: relay.port,
        latencyMs: 8 * rttMs + 1000,
        ...(wraps ? BEFORE_WRAP : {}),
      })
      const stream = await play(publication, PACKETS, (bytes) => listener.bytes().length >= bytes)
      t.ok(listener.bytes().subarray(0, stream.length).equals(stream))
      t.equal(publication.output(), '')
      if (lossPercent > 0) t.ok(relay.counters('forward').lost > 0)
    },
  )
}
