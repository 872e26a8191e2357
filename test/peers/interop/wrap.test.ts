/**
 * Streams across the ends of the counters: sequence numbers have 31 bits, timestamps 32, which is 71 min 35 s
 * (draft-sharabayko-srt 3). The link loses packets, so that gaps and their deadlines lie across the ends as well.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { isControl, sequenceNumber, timestampUs } from '../../../src/srt/wire/packet.ts'
import { requireFile, requireTool } from '../support/tools.ts'
import {
  connectOptions,
  PUBLISHERS,
  publishWith,
  run,
  type Call,
  type Publication,
} from './publishers.ts'
import { difference, play, receive } from './reception.ts'

/** 2.5 s of 2.1 Mbit/s. */
const PACKETS = 500

const FORCED_SEQUENCE_NUMBER = 2 ** 31 - 200
const TIMESTAMP_SHIFT_US = 2 ** 32 - 1_500_000

/** The sequence number is part of each packet's counter block. */
const ENCRYPTION = { passphrase: 'what-both-sides-know', keyBytes: 32 } as const

const LINK = { loss: 0.05, delayMs: 20 }
const LATENCY_MS = 2000

const LIBSRT_HEADER = '/usr/include/srt/srt.h'
const compile = promisify(execFile)

/** A publisher over libsrt whose first packet bears `FORCED_SEQUENCE_NUMBER`. The only peer here that has OpenSSL. */
async function publishWithLibsrt(t: Test, call: Call): Promise<Publication> {
  const source = fileURLToPath(new URL('isn-publisher.c', import.meta.url))
  const program = join(t.testdir(), 'isn-publisher')
  await compile('gcc', ['-Wall', '-Werror', '-o', program, source, '-lsrt'])
  const passphrase = call.encryption === undefined ? '' : ` ${call.encryption.passphrase}`
  return run(t, `${program} ${call.port} ${FORCED_SEQUENCE_NUMBER} ${call.latencyMs}${passphrase}`)
}

/** Which halves of the ranges the publisher's counters have been in. */
class Halves {
  readonly sequence = new Set<'lower' | 'upper'>()
  readonly timestamp = new Set<'lower' | 'upper'>()

  see(datagram: Buffer): void {
    if (!isControl(datagram)) {
      this.sequence.add(sequenceNumber(datagram) < 2 ** 30 ? 'lower' : 'upper')
    }
    this.timestamp.add(timestampUs(datagram) < 2 ** 31 ? 'lower' : 'upper')
  }
}

const BOTH = new Set(['upper', 'lower'])

/** @param shiftUs  a middle adds so much to the timestamps of both sides, as if their clocks began elsewhere */
async function check(
  t: Test,
  { shiftUs = 0, passphrase }: { shiftUs?: number; passphrase?: string },
  start: (call: Call) => Publication | Promise<Publication>,
): Promise<Halves> {
  const halves = new Halves()
  const received = await receive(t, {
    latencyMs: LATENCY_MS,
    ...(passphrase !== undefined && { passphrase }),
    forward: LINK,
    backward: LINK,
    alter: (direction, datagram) => {
      datagram.writeUInt32BE((timestampUs(datagram) + shiftUs) % 2 ** 32, 8)
      if (direction === 'forward') halves.see(datagram)
      return true
    },
  })
  const publication = await start(received.call)
  const stream = await play(publication, PACKETS, (bytes) => received.bytes().length >= bytes)
  t.equal(difference(received.bytes(), stream), '', publication.output())
  t.equal(received.gaps(), 0)
  t.ok(received.relay.counters('forward').lost > 0)
  return halves
}

t.jobs = 6

t.test('libsrt publishes across the wrap of sequence numbers', { buffered: true }, async (t) => {
  if (!requireTool(t, 'gcc') || !requireFile(t, LIBSRT_HEADER)) return
  const { sequence } = await check(t, {}, (call) => publishWithLibsrt(t, call))
  t.strictSame(sequence, BOTH)
})

t.test(
  'our caller publishes across the wrap of sequence numbers and timestamps, encrypted',
  { buffered: true },
  async (t) => {
    const halves = await check(t, { passphrase: ENCRYPTION.passphrase }, (call) =>
      publishWith(t, {
        ...call,
        ...connectOptions(ENCRYPTION),
        initialSequenceNumber: FORCED_SEQUENCE_NUMBER,
        startTimestampUs: TIMESTAMP_SHIFT_US,
      }),
    )
    t.match(halves, { sequence: BOTH, timestamp: BOTH })
  },
)

t.test(
  'libsrt publishes across the wrap of sequence numbers and timestamps at once, encrypted',
  { buffered: true },
  async (t) => {
    if (!requireTool(t, 'gcc') || !requireFile(t, LIBSRT_HEADER)) return
    const { passphrase } = ENCRYPTION
    const halves = await check(t, { shiftUs: TIMESTAMP_SHIFT_US, passphrase }, (call) =>
      publishWithLibsrt(t, { ...call, encryption: ENCRYPTION }),
    )
    t.match(halves, { sequence: BOTH, timestamp: BOTH })
  },
)

for (const name of ['ffmpeg', 'srt-live-transmit', 'GStreamer'] as const) {
  t.test(`${name} publishes across the end of timestamps`, { buffered: true }, async (t) => {
    const { tool, start } = PUBLISHERS[name]
    if (!requireTool(t, tool)) return
    const { timestamp } = await check(t, { shiftUs: TIMESTAMP_SHIFT_US }, (call) => start(t, call))
    t.strictSame(timestamp, BOTH)
  })
}
