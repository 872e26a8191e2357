/**
 * Half an hour of a stream, with `npm run soak` six hours, through demuxer, segmenter, playlist and cache: the encoder's
 * clock wraps, it comes back twice, and its clock drifts from the server's. On a simulated clock without sockets.
 * In a process of its own, whose memory it measures.
 */
import { readFileSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { TIME_MODULUS } from '../src/mpegts/timestamps.ts'
import { SegmentCache } from '../src/hls/store/segment-cache.ts'
import { PACKET_BYTES } from '../src/mpegts/packet.ts'
import { PacedStream, type PacedDatagram } from '../src/pace/paced-stream.ts'
import { movePcr, movePesTimes, readPesTimes } from '../src/pace/packet-times.ts'
import { LiveStream } from '../src/stream/live-stream.ts'
import { parseM3u8 } from './support/m3u8.ts'
import { StreamJudge } from './support/stream-judge.ts'
import { continuityFaults, readPackets } from './support/ts-reader.ts'
import { PUBLISHER_REPORT } from './stream/publisher-report.ts'
import { rounds } from './support/soak.ts'

/** H.264 with a key frame each second and AAC, 8 s, 0.8 Mbit/s. */
const CLIP = readFileSync(new URL('../fixtures/demo.mpegts', import.meta.url))

const FRAMES_PER_SEC = 30
const MINUTE_SEC = 60
const TICK_US = 250_000
const MEASURE_US = 5 * MINUTE_SEC * 1e6
const WALL_START_MS = Date.UTC(2026, 0, 1)

/** Drift of the server's clock against the encoder's: 4.3 s a day. */
const DRIFT_PPM = 50
const MAX_ERROR_MS = 15
const MOST_GROWTH_BYTES = 2 * 1024 * 1024

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Bytes in use, without garbage. */
async function heldBytes(): Promise<number> {
  for (let round = 0; round < 2; round++) {
    collectGarbage()
    // Buffers are freed after the garbage collection.
    await turn()
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** Connection of an encoder, which is lost after `CONNECTION_SEC`. */
interface Connection {
  /** Pause before the connection, in seconds. */
  readonly awaySec: number
  /** PTS of its first video frame. */
  readonly startTicks: number
}

const CONNECTION_SEC = rounds(10, 120) * MINUTE_SEC
const BEFORE_THE_WRAP = TIME_MODULUS - (CONNECTION_SEC / 2) * 90_000

const CONNECTIONS: readonly Connection[] = [
  { awaySec: 0, startTicks: BEFORE_THE_WRAP },
  { awaySec: 2, startTicks: 126_000 },
  { awaySec: 60, startTicks: BEFORE_THE_WRAP },
]

/** Endless repetition of the clip, from these timestamps on. */
function* encode(startTicks: number): Generator<PacedDatagram, never> {
  const clip = Buffer.from(CLIP)
  const shift = startTicks - readFirstPts(clip) + TIME_MODULUS
  for (let at = 0; at < clip.length; at += PACKET_BYTES) {
    movePcr(clip, at, shift)
    movePesTimes(clip, at, shift)
  }
  const stream = new PacedStream()
  for (;;) {
    yield* stream.push(clip)
    yield* stream.rewind()
  }
}

function readFirstPts(clip: Buffer): number {
  for (let at = 0; at < clip.length; at += PACKET_BYTES) {
    const times = readPesTimes(clip, at)
    if (times?.isVideo === true) return times.ptsTicks
  }
  throw new Error('the clip has no video')
}

/** Observations of the playlist during one connection. */
class Watch {
  readonly complaints: string[] = []
  /** PROGRAM-DATE-TIME minus capture time by the encoder's clock, for each segment; the constant part is the delay. */
  readonly sourceErrorsMs: number[] = []
  /** The same difference by the server's clock. */
  readonly serverErrorsMs: number[] = []
  durationSec = 0
  videoFrames = 0
  discontinuities = 0
}

t.test('two lost connections, a clock that wraps and drifts', async (t) => {
  let sourceUs = 0
  const toServerUs = (us: number) => us * (1 + DRIFT_PPM / 1e6)
  const clock = {
    nowUs: () => toServerUs(sourceUs),
    wallMs: () => WALL_START_MS + toServerUs(sourceUs) / 1000,
  }
  const cache = new SegmentCache({ maxBytes: 64 * 1024 * 1024 })
  const stream = new LiveStream('studio', {
    ...{ clock, cache, epoch: 'e', segmentSec: 2, maxSegmentSec: 10, playlistSegments: 6 },
    ...{ lingerSec: 60, reconnectGraceSec: 120 },
  })
  const judge = new StreamJudge({ isTimed: true })
  const watches: Watch[] = []
  const held: number[] = []
  let connectedUs = 0
  let nextSequence = 0
  let nextTicks = 0
  let before: Buffer = Buffer.alloc(0)

  stream.on('segment', (segment) => {
    const { bytes, mediaSequence, startTicks, discontinuity } = segment
    const watch = watches.at(-1)!
    const text = stream.files.get('playlist.m3u8')?.chunks.join('')
    if (text !== undefined) {
      const broken = judge.playlist('playlist.m3u8', text, clock.wallMs())
      watch.complaints.push(...broken, ...parseM3u8(text).complaints)
    } else if (mediaSequence >= 2) watch.complaints.push('no playlist')
    if (mediaSequence !== nextSequence) watch.complaints.push(`${mediaSequence} after a gap`)
    if (discontinuity) watch.discontinuities++
    else if (mediaSequence > 0 && startTicks !== nextTicks) {
      watch.complaints.push(`${mediaSequence} starts at ${startTicks}, not ${nextTicks}`)
    }
    // To read all segments would take longer than the rest of the test.
    if (mediaSequence % 50 === 0 || discontinuity) {
      watch.complaints.push(...continuityFaults(readPackets(Buffer.concat([before, bytes]))))
    }
    const sinceUs = (startTicks - CONNECTIONS[watches.length - 1]!.startTicks) / 0.09
    const atUs = connectedUs + sinceUs
    const dateTimeMs = segment.programDateTimeMs - WALL_START_MS
    watch.sourceErrorsMs.push(dateTimeMs - atUs / 1000)
    watch.serverErrorsMs.push(dateTimeMs - toServerUs(atUs) / 1000)
    watch.durationSec += segment.durationSec
    watch.videoFrames += segment.videoFrames
    nextSequence = mediaSequence + 1
    nextTicks = segment.endTicks
    before = bytes
  })

  let tickUs = 0
  let measureUs = MEASURE_US
  for (const { awaySec, startTicks } of CONNECTIONS) {
    sourceUs += awaySec * 1e6
    connectedUs = sourceUs
    watches.push(new Watch())
    const publication = stream.publish({
      lastPacketUs: 0,
      report: () => PUBLISHER_REPORT,
      close: () => undefined,
    })
    for (const { payload, dueUs } of encode(startTicks)) {
      if (dueUs >= CONNECTION_SEC * 1e6) break
      sourceUs = connectedUs + dueUs
      publication.push(payload)
      if (sourceUs < tickUs) continue
      tickUs = sourceUs + TICK_US
      stream.tick()
      if (sourceUs >= measureUs) {
        measureUs = sourceUs + MEASURE_US
        held.push(await heldBytes())
      }
    }
    publication.end('timeout')
  }
  stream.stop('api')

  const [first] = watches
  for (const [index, watch] of watches.entries()) {
    const isLate = (complaint: string) => complaint.startsWith('HOUSE_PACE')
    const complaints = watch.complaints.filter((complaint) => !isLate(complaint))
    t.strictSame(complaints, [], 'every version of the playlist keeps the rules')
    const late = watch.complaints.filter(isLate)
    t.equal(late.length, index === 0 ? 0 : 1, 'no segment is late but the one after the silence')
    t.equal(
      watch.discontinuities,
      index === 0 ? 0 : 1,
      'one discontinuity a reconnect, none at the wrap',
    )
    t.ok(Math.abs(watch.durationSec - CONNECTION_SEC) < 0.2, `${watch.durationSec} s are listed`)
    t.ok(
      Math.abs(watch.videoFrames / FRAMES_PER_SEC - CONNECTION_SEC) < 0.2,
      'with all video frames',
    )

    // Against one anchor for all three: what drifted in a connection is not left to the next.
    const [anchorMs] = first!.serverErrorsMs
    const offServer = Math.max(...watch.serverErrorsMs.map((each) => Math.abs(each - anchorMs!)))
    t.ok(offServer < MAX_ERROR_MS, `dates keep the server's time to ${offServer.toFixed(2)} ms`)
    const drifted = watch.sourceErrorsMs.at(-1)! - watch.sourceErrorsMs[0]!
    t.comment(`the last date is ${drifted.toFixed(0)} ms off the encoder's clock`)
  }
  t.strictSame(stream.report().warnings, [])
  const [start] = held
  const growth = Math.max(...held) - start!
  t.ok(growth < MOST_GROWTH_BYTES, `memory grew by ${Math.round(growth / 1024)} KiB`)
  t.comment(`MB held, every 5 minutes: ${held.map((each) => (each / 1e6).toFixed(1)).join(' ')}`)
})
