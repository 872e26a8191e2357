/** SCTE-35 and ID3 from an encoder's transport stream to playlists and segments. */
import t from 'tap'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import type { Segment } from '../../src/hls/store/segment.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import { spliceInsert, timeSignal } from '../mpegts/splice-builder.ts'
import { pesPacket, TsBuilder } from '../mpegts/ts-builder.ts'
import { adtsFrames, h264AccessUnit } from '../support/access-units.ts'
import { checkPlaylists } from '../support/check-playlists.ts'
import { parseM3u8 } from '../support/m3u8.ts'
import { transmux } from '../support/transmuxer.ts'
import { readPackets, readPmt } from '../support/ts-reader.ts'
import { PUBLISHER_REPORT } from './publisher-report.ts'

const SEC = 90_000
/** Start close to the wrap of 33-bit timestamps. */
const START_TICKS = 2 ** 33 - 5 * SEC
const WALL_MS = Date.UTC(2026, 0, 1)

/** metadata_descriptor of ID3 (Timed Metadata for HTTP Live Streaming, section 2). */
const METADATA = Buffer.from('260dffff49443320ff49443320000f', 'hex')

const PIDS = { video: 0x100, audio: 0x101, id3: 0x102, splices: 0x1f0 }
const TRACKS = [
  { pid: PIDS.video, streamType: 0x1b },
  { pid: PIDS.audio, streamType: 0x0f },
  { pid: PIDS.id3, streamType: 0x15, descriptors: METADATA },
  { pid: PIDS.splices, streamType: 0x86, descriptors: Buffer.from('0504CUEI') },
]

/** An ID3v2.4 tag with one private frame. */
function id3Tag(owner: string): Buffer {
  const frame = Buffer.concat([Buffer.from('PRIV'), Buffer.alloc(6), Buffer.from(`${owner}\0data`)])
  frame[7] = frame.length - 10
  return Buffer.concat([Buffer.from('ID3\x04\0\0\0\0\0'), Buffer.from([frame.length]), frame])
}

/** Seconds since the start, as sent. */
const at = (sec: number) => (START_TICKS + Math.round(sec * SEC)) % 2 ** 33

const OUT = { eventId: 41, break: { durationTicks: 4 * SEC, autoReturn: false } }
/** Splices by the second in which they are sent, each three times, as encoders do. */
const SPLICES: Readonly<Record<number, Buffer>> = Object.fromEntries([
  ...[3, 3.5, 4].map((sec) => [sec, spliceInsert({ ...OUT, ptsTicks: at(6.6) })]),
  ...[8, 8.5, 9].map((sec) => [sec, spliceInsert({ eventId: 41, out: false, ptsTicks: at(10.4) })]),
  [12, timeSignal(at(13), [{ eventId: 9, typeId: 0x10 }])],
])

/** 25 frames a second; key frames every 2 s and at each splice point. */
function encode(seconds: number): Buffer {
  const ts = new TsBuilder()
  for (let frame = 0; frame < seconds * 25; frame++) {
    const sec = frame / 25
    if (frame % 25 === 0) ts.program(TRACKS)
    const section = SPLICES[sec]
    if (section !== undefined) ts.sections(PIDS.splices, section)
    const key = frame % 50 === 0 || sec === 6.6 || sec === 10.4
    const accessUnit = h264AccessUnit({ key, sizeBytes: 600 })
    ts.unit(PIDS.video, pesPacket(accessUnit, { ptsTicks: at(sec), length: 'none' }))
    if (frame % 4 === 0) {
      ts.unit(PIDS.audio, pesPacket(adtsFrames(7), { ptsTicks: at(sec), streamId: 0xc0 }))
    }
    // Ahead of its time by 0.8 s.
    if (frame % 25 === 0) {
      const ptsTicks = at(sec + 0.8)
      ts.unit(PIDS.id3, pesPacket(id3Tag(`tag-${sec}`), { ptsTicks, streamId: 0xbd }))
    }
  }
  return ts.bytes
}

/** Publishes in pieces of an SRT packet. */
function publish(bytes: Buffer) {
  let nowUs = 0
  const clock = { nowUs: () => nowUs, wallMs: () => WALL_MS + nowUs / 1000 }
  const cache = new SegmentCache({ maxBytes: 64 * 1024 * 1024 })
  const stream = new LiveStream('studio', {
    ...{ clock, cache, epoch: 'e', segmentSec: 2, maxSegmentSec: 10, playlistSegments: 20 },
    ...{ lingerSec: 60, reconnectGraceSec: 120 },
  })
  const segments: Segment[] = []
  const warnings: string[] = []
  stream.on('segment', (segment) => segments.push(segment))
  stream.on('warning', ({ code }) => warnings.push(code))
  const playlists: string[] = []
  const encoder = { lastPacketUs: 0, report: () => PUBLISHER_REPORT, close: () => undefined }
  const publication = stream.publish(encoder)
  const look = () => {
    const text = stream.files.get('playlist.m3u8')?.chunks.join('')
    if (text !== undefined && text !== playlists.at(-1)) playlists.push(text)
  }
  for (let from = 0; from < bytes.length; from += 1316) {
    nowUs += (1316 / bytes.length) * 16_000_000
    publication.push(bytes.subarray(from, from + 1316))
    look()
  }
  publication.end('shutdown')
  stream.stop('api')
  look()
  return { segments, warnings, playlists }
}

t.test('SCTE-35 and ID3 through a whole stream', async (t) => {
  const { segments, warnings, playlists } = publish(encode(16))
  t.same(warnings, [], 'nothing is left out that ought to be there')
  t.same(checkPlaylists(playlists), [], 'every version of the playlist keeps the rules')

  t.test('segments start at the splice points', async (t) => {
    const starts = segments.map(({ startTicks }) => (startTicks - START_TICKS) / SEC)
    t.same(starts, [0, 2, 4, 6, 6.6, 8, 10, 10.4, 12, 14])
  })

  t.test('the playlist has their date ranges (RFC 8216bis 4.4.5.1.1)', async (t) => {
    const { manifest, complaints } = parseM3u8(playlists.at(-1)!)
    t.same(complaints, [])
    const [first] = segments
    // Compared as text, since `t.match` accepts any date for another.
    const dateOf = (sec: number) => new Date(first!.programDateTimeMs + sec * 1000).toISOString()
    const hex = (section: Buffer | undefined) => `0x${section?.toString('hex').toUpperCase()}`
    const { dateRanges = [] } = manifest
    t.equal(dateRanges.length, 2)
    t.match(dateRanges, [
      {
        id: /^splice-41-\d+$/,
        startDate: dateOf(6.6),
        ...{ plannedDuration: 4, duration: 3.8 },
        ...{ scte35Out: hex(SPLICES[3]), scte35In: hex(SPLICES[8]) },
      },
      { id: /^segmentation-9-16-\d+$/, startDate: dateOf(13), scte35Cmd: hex(SPLICES[12]) },
    ])
  })

  t.test('each ID3 tag is in the segment of its time', async (t) => {
    const tags = segments.map(({ bytes }) => bytes.toString('latin1').match(/tag-\d+/g) ?? [])
    const expected = segments.map(({ startTicks, endTicks }, index) =>
      Array.from({ length: 16 }, (_, sec) => sec)
        .filter((sec) => {
          const ticks = START_TICKS + (sec + 0.8) * SEC
          return ticks >= startTicks && (ticks < endTicks || index === segments.length - 1)
        })
        .map((sec) => `tag-${sec}`),
    )
    t.same(tags, expected)
  })

  t.test('the PMT describes ID3 for the program and on its track', async (t) => {
    const [, pmt] = readPackets(segments[0]!.bytes)
    t.same(readPmt(pmt!).streams[2], {
      ...{ streamType: 0x15, pid: PIDS.id3, descriptors: METADATA.toString('hex') },
    })
    t.equal(readPmt(pmt!).streams.length, 3, 'no track of splices, which are in the playlist')
    t.ok(segments[0]!.bytes.includes(Buffer.from('250fffff49443320ff49443320001f0001', 'hex')))
  })

  t.test('hls.js finds every tag, and all video and audio', async (t) => {
    const all = transmux(segments)
    t.match(all, { id3Samples: 16, videoFrames: 16 * 25, complaints: [] })
    const alone = segments.map((segment) => transmux([segment]).id3Samples)
    t.equal(
      alone.reduce((sum, count) => sum + count, 0),
      16,
    )
  })
})
