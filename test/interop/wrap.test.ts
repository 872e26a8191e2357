/**
 * Streams across the ends of the counters: sequence numbers have 31 bits, timestamps 32, which is 71 min 35 s
 * (draft-sharabayko-srt 3). The link loses packets, so that gaps and their deadlines lie across the ends as well.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { sequenceDistance } from '../../src/binary/sequence-number.ts'
import { isControl, sequenceNumber, timestampUs } from '../../src/srt/wire/packet.ts'
import { requireFile, requireTool } from '../support/tools.ts'
import type { Direction } from '../support/udp-relay.ts'
import { PUBLISHERS, publishWith, run, type Call, type Publication } from './publishers.ts'
import { play, receive } from './reception.ts'

/** 2.5 s of 2.1 Mbit/s. */
const PACKETS = 500

const FORCED_SEQUENCE_NUMBER = 2 ** 31 - 200
const TIMESTAMP_SHIFT_US = 2 ** 32 - 1_500_000

const LINK = { loss: 0.05, delayMs: 20 }
const LATENCY_MS = 2000

const LIBSRT_HEADER = '/usr/include/srt/srt.h'
const compile = promisify(execFile)

/** A publisher over libsrt whose first packet bears `FORCED_SEQUENCE_NUMBER`. */
async function publishWithLibsrt(t: Test, call: Call): Promise<Publication> {
  const source = fileURLToPath(new URL('isn-publisher.c', import.meta.url))
  const program = join(t.testdir(), 'isn-publisher')
  await compile('gcc', ['-Wall', '-Werror', '-o', program, source, '-lsrt'])
  return run(t, `${program} ${call.port} ${FORCED_SEQUENCE_NUMBER} ${call.latencyMs}`)
}

/** Whether a counter passed its end: what was the largest value, and then a small one. */
class WrapWatch {
  sequence = false
  timestamp = false
  #sequence = -1
  #timestamp = -1

  see(direction: Direction, datagram: Buffer): void {
    if (direction === 'backward' || isControl(datagram)) return
    const sequence = sequenceNumber(datagram)
    const timestamp = timestampUs(datagram)
    if (this.#sequence >= 0 && sequenceDistance(this.#sequence, sequence) < 0) return
    if (sequence < this.#sequence) this.sequence = true
    if (timestamp < this.#timestamp) this.timestamp = true
    this.#sequence = sequence
    this.#timestamp = timestamp
  }
}

/** @param shiftUs  a middle adds so much to the timestamps of both sides, as if their clocks began elsewhere */
async function check(
  t: Test,
  shiftUs: number,
  start: (call: Call) => Publication | Promise<Publication>,
): Promise<WrapWatch> {
  const watch = new WrapWatch()
  const received = await receive(t, {
    latencyMs: LATENCY_MS,
    forward: LINK,
    backward: LINK,
    alter: (direction, datagram) => {
      datagram.writeUInt32BE((timestampUs(datagram) + shiftUs) % 2 ** 32, 8)
      watch.see(direction, datagram)
      return true
    },
  })
  const publication = await start(received.call)
  const stream = await play(publication, PACKETS, (bytes) => received.bytes().length >= bytes)
  t.ok(received.bytes().subarray(0, stream.length).equals(stream), publication.output())
  t.equal(received.gaps(), 0)
  t.ok(received.relay.counters('forward').lost > 0)
  return watch
}

t.jobs = 6

t.test('libsrt publishes across the end of sequence numbers', { buffered: true }, async (t) => {
  if (!requireTool(t, 'gcc') || !requireFile(t, LIBSRT_HEADER)) return
  const wrapped = await check(t, 0, (call) => publishWithLibsrt(t, call))
  t.ok(wrapped.sequence)
})

t.test('our caller publishes across both ends', { buffered: true }, async (t) => {
  const wrapped = await check(t, 0, (call) =>
    publishWith(t, {
      ...call,
      initialSequenceNumber: FORCED_SEQUENCE_NUMBER,
      startTimestampUs: TIMESTAMP_SHIFT_US,
    }),
  )
  t.match(wrapped, { sequence: true, timestamp: true })
})

t.test('libsrt publishes across both ends at once', { buffered: true }, async (t) => {
  if (!requireTool(t, 'gcc') || !requireFile(t, LIBSRT_HEADER)) return
  const wrapped = await check(t, TIMESTAMP_SHIFT_US, (call) => publishWithLibsrt(t, call))
  t.match(wrapped, { sequence: true, timestamp: true })
})

for (const name of ['ffmpeg', 'srt-live-transmit', 'GStreamer'] as const) {
  t.test(`${name} publishes across the end of timestamps`, { buffered: true }, async (t) => {
    const { tool, start } = PUBLISHERS[name]
    if (!requireTool(t, tool)) return
    const wrapped = await check(t, TIMESTAMP_SHIFT_US, (call) => start(t, call))
    t.ok(wrapped.timestamp)
  })
}
