/**
 * Readers of the transport stream, in simulated time.
 */
import t from 'tap'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { Demuxer } from '../../src/mpegts/demux/demuxer.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import type { Reader } from '../../src/stream/readers.ts'
import { editPes } from '../mpegts/edit.ts'
import { pesPacket } from '../mpegts/ts-builder.ts'
import { CLIP, ClipEncoder, VIDEO_PID } from '../support/clip-encoder.ts'

const STEP_US = 10_000
const TICK_US = 250_000

/** Collects payloads until it is full. */
class TestReader implements Reader {
  readonly payloads: Buffer[] = []
  capacity = Infinity
  closed = false

  send(payload: Buffer): boolean {
    if (this.payloads.length >= this.capacity) return false
    this.payloads.push(payload)
    return true
  }

  close(): void {
    this.closed = true
  }
}

/**
 * The clip with video that is not a frame in each PES packet.
 *
 * @param lateBytes  bytes of each frame that are in the next PES packet with the start of a frame
 * @param maxBytes  maximum size of a PES packet
 */
function cutAnew(lateBytes: number, maxBytes: number): Buffer {
  let late: Uint8Array = Buffer.alloc(0)
  return editPes({ bytes: CLIP, sec: 8 }, VIDEO_PID, ({ payload, ...header }) => {
    const bytes = Buffer.concat([late, payload.subarray(0, -lateBytes)])
    late = payload.subarray(-lateBytes)
    const count = Math.ceil(bytes.length / maxBytes)
    return Array.from({ length: count }, (_, index) =>
      pesPacket(bytes.subarray(index * maxBytes, (index + 1) * maxBytes), {
        ...(index === 0 ? header : {}),
        length: 'none',
      }),
    )
  }).bytes
}

function setUp(clip = CLIP) {
  let nowUs = 0
  const clock = { nowUs: () => nowUs, wallMs: () => Date.UTC(2026, 0, 1) + nowUs / 1000 }
  const stream = new LiveStream('studio', {
    clock,
    cache: new SegmentCache({ maxBytes: 256 * 1024 * 1024 }),
    ...{ segmentSec: 1, maxSegmentSec: 10, playlistSegments: 6 },
    ...{ lingerSec: 60, reconnectGraceSec: 120, epoch: 'e', partSec: undefined },
  })
  stream.renewKey(clock.wallMs() + 7_200_000)
  const encoders: ClipEncoder[] = []
  return {
    stream,
    /** @returns the encoder, and the payloads that it sends */
    connect(source: 'main' | 'backup') {
      const sent: Buffer[] = []
      const encoder = new ClipEncoder(source, nowUs, clip)
      const publication = stream.publish(encoder)
      const push = publication.push.bind(publication)
      publication.push = (payload) => {
        sent.push(payload)
        push(payload)
      }
      encoder.publication = publication
      encoders.push(encoder)
      return { encoder, sent }
    },
    read(reader = new TestReader()) {
      stream.read(reader)
      return reader
    },
    run(sec: number) {
      for (const endUs = nowUs + sec * 1e6; nowUs < endUs;) {
        nowUs += STEP_US
        for (const encoder of encoders) encoder.step(nowUs)
        if (nowUs % TICK_US === 0) stream.tick()
      }
    },
  }
}

/** Kinds of the video frames in the payloads: whether playback can start with each. */
function keyFrames(payloads: readonly Buffer[]): boolean[] {
  const demuxer = new Demuxer()
  return [...payloads.flatMap((payload) => demuxer.push(payload)), ...demuxer.end()].flatMap(
    (output) =>
      output.type === 'unit' && output.unit.track.pid === VIDEO_PID
        ? [output.unit.randomAccess]
        : [],
  )
}

t.test('a reader gets the payloads as they came, from the next key frame on', async (t) => {
  const { stream, connect, read, run } = setUp()
  const { sent } = connect('main')
  run(2.3)
  const reader = read()
  const before = sent.length
  run(3)
  const [first] = reader.payloads
  const at = sent.indexOf(first!)
  t.ok(at >= before - 1, 'nothing of the past')
  t.equal(reader.payloads.length, sent.length - at)
  t.ok(
    reader.payloads.every((payload, index) => payload === sent[at + index]),
    'the same buffers',
  )
  t.equal(keyFrames(reader.payloads)[0], true)
  t.equal(stream.report().totals.srtBytesSent, Buffer.concat(reader.payloads).length)
  stream.unread(reader)
  const { length } = reader.payloads
  run(1)
  t.equal(reader.payloads.length, length)
  t.equal(stream.readers, 0)
})

for (const [title, clip] of [
  ['begin within a frame', cutAnew(100, 1_000_000)],
  ['are smaller than frames', cutAnew(100, 1000)],
] as const) {
  t.test(`a reader begins at a key frame where PES packets ${title}`, async (t) => {
    const { connect, read, run } = setUp(clip)
    const { sent } = connect('main')
    run(2.3)
    const reader = read()
    run(3)
    t.ok(sent.length > 100 && reader.payloads.length > 0)
    t.strictSame(reader.payloads, sent.slice(sent.indexOf(reader.payloads[0]!)))
    t.equal(keyFrames(reader.payloads)[0], true)
  })

  t.test(`readers go on with the key frame of a backup whose PES packets ${title}`, async (t) => {
    const { connect, read, run } = setUp(clip)
    const main = connect('main')
    const backup = connect('backup')
    run(2.3)
    const reader = read()
    run(3)
    main.encoder.isPaused = true
    run(3)
    const at = reader.payloads.findIndex((payload) => backup.sent.includes(payload))
    t.ok(at > 100)
    const ofBackup = reader.payloads.slice(at)
    t.strictSame(ofBackup, backup.sent.slice(backup.sent.indexOf(ofBackup[0]!)))
    t.equal(keyFrames(ofBackup)[0], true)
  })
}

t.test('a reader that comes before the encoder waits for it', async (t) => {
  const { connect, read, run } = setUp()
  const reader = read()
  run(1)
  const { sent } = connect('main')
  run(3)
  t.ok(sent.length > 100)
  t.strictSame(reader.payloads, sent.slice(sent.indexOf(reader.payloads[0]!)))
  t.ok(sent.indexOf(reader.payloads[0]!) < 8, 'the clip begins with a key frame')
})

t.test('readers go on with the backup encoder from its latest key frame', async (t) => {
  const { connect, read, run } = setUp()
  const main = connect('main')
  const backup = connect('backup')
  run(0.4)
  const reader = read()
  run(4)
  main.encoder.isPaused = true
  run(3)
  const ofMain = reader.payloads.filter((payload) => main.sent.includes(payload))
  const ofBackup = reader.payloads.slice(ofMain.length)
  t.ok(ofMain.length > 100 && ofBackup.length > 100)
  t.equal(ofMain.at(-1), main.sent.at(-1))
  const at = backup.sent.indexOf(ofBackup[0]!)
  t.strictSame(ofBackup, backup.sent.slice(at), 'all that it has sent since')
  t.equal(keyFrames(ofBackup)[0], true)

  main.encoder.isPaused = false
  run(14)
  const back = reader.payloads.filter((payload) => main.sent.includes(payload)).slice(ofMain.length)
  t.strictSame(back, main.sent.slice(main.sent.indexOf(back[0]!)), 'and back')
  t.equal(keyFrames(back)[0], true)
})

t.test('what a full reader cannot take is missing there alone', async (t) => {
  const { stream, connect, read, run } = setUp()
  const [slow, fast] = [read(), read()]
  slow.capacity = 50
  const { sent } = connect('main')
  run(4)
  t.equal(slow.payloads.length, 50)
  t.strictSame(fast.payloads, sent.slice(-fast.payloads.length))
  const bytes = Buffer.concat([...slow.payloads, ...fast.payloads]).length
  t.equal(stream.report().totals.srtBytesSent, bytes)
})

t.test('without a key frame for 10 s, a reader gets what comes', async (t) => {
  const { connect, read, run } = setUp()
  const { encoder, sent } = connect('main')
  encoder.mutedPid = VIDEO_PID
  run(1)
  const reader = read()
  run(9)
  t.equal(reader.payloads.length, 0)
  run(2)
  t.ok(reader.payloads.length > 10)
  t.strictSame(reader.payloads, sent.slice(-reader.payloads.length))
})

t.test('the end of a stream disconnects its readers', async (t) => {
  for (const end of ['stop', 'leave'] as const) {
    const { stream, connect, read, run } = setUp()
    connect('main')
    const readers = [read(), read()]
    run(3)
    if (end === 'stop') stream.stop('api')
    else stream.leave()
    t.strictSame(
      readers.map(({ closed }) => closed),
      [true, true],
    )
    t.equal(stream.readers, 0)
  }
})

t.test('payloads are kept for readers alone', async (t) => {
  const { stream, connect, read, run } = setUp()
  connect('main')
  connect('backup')
  run(5)
  const { queuedBytes } = stream.report()
  const reader = read()
  run(4)
  t.ok(stream.report().queuedBytes > queuedBytes, 'those of the backup')
  stream.unread(reader)
  run(4)
  t.ok(stream.report().queuedBytes <= queuedBytes + 64 * 1024)
})
