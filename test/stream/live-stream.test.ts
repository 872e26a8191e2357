import { readFileSync } from 'node:fs'
import t from 'tap'
import { SegmentCache } from '../../src/hls/store/segment-cache.ts'
import { LiveStream } from '../../src/stream/live-stream.ts'
import type { Encoder } from '../../src/stream/publication.ts'
import { demux, payloadOf, unitsOf } from '../mpegts/demux.ts'
import { patSection, pesPacket, pmtSection, TsBuilder } from '../mpegts/ts-builder.ts'
import { PUBLISHER_REPORT } from './publisher-report.ts'

/** H.264 with a key frame each second and AAC, 8 s. */
const CLIP = readFileSync(new URL('../../fixtures/demo.mpegts', import.meta.url))

/** ISO/IEC 13818-1 2.4.3.3: stuffing. */
const NULL_PACKETS = Buffer.concat(
  Array.from({ length: 70 }, () => {
    const packet = Buffer.alloc(188, 0xff)
    packet.set([0x47, 0x1f, 0xff, 0x10])
    return packet
  }),
)

const SEC = 1_000_000

function fakeClock() {
  let nowUs = 0
  return {
    nowUs: () => nowUs,
    wallMs: () => Date.UTC(2026, 0, 1) + nowUs / 1000,
    advanceSec: (sec: number) => void (nowUs += sec * SEC),
  }
}

function fakeEncoder(): Encoder & { closed: boolean } {
  return {
    closed: false,
    lastPacketUs: 0,
    report: () => PUBLISHER_REPORT,
    close() {
      this.closed = true
    },
  }
}

function setUp() {
  const clock = fakeClock()
  const options = {
    clock,
    cache: new SegmentCache({ maxBytes: 64 * 1024 * 1024 }),
    segmentSec: 1,
    maxSegmentSec: 10,
    playlistSegments: 3,
    lingerSec: 60,
    reconnectGraceSec: 120,
  }
  const stream = new LiveStream('studio', { ...options, epoch: 'e' })
  const events: string[] = []
  stream.on('publish', () => events.push('publish'))
  stream.on('live', () => events.push('live'))
  stream.on('interrupted', ({ reason }) => events.push(`interrupted: ${reason}`))
  stream.on('warning', ({ code }) => events.push(`warning: ${code}`))
  stream.on('end', ({ reason }) => events.push(`end: ${reason}`))
  return { clock, options, stream, events }
}

const playlist = (stream: LiveStream) => stream.files.get('playlist.m3u8')?.chunks.join('')

t.test(
  'READY -> STREAMING -> live with the first segment -> INTERRUPTED -> STREAMING',
  async (t) => {
    const { stream, events, clock } = setUp()
    stream.renewKey(clock.wallMs() + 7_200_000)
    t.equal(stream.status, 'READY')
    t.equal(playlist(stream), undefined, 'no playlist yet')
    const first = stream.publish(fakeEncoder())
    t.match(stream, { status: 'STREAMING', live: false })
    first.push(CLIP)
    t.equal(stream.live, true)
    t.match(stream.report(), {
      status: 'STREAMING',
      publisher: { remote: '192.0.2.1:5000' },
      tracks: [{ codec: 'h264', width: 640, height: 360 }, { codec: 'aac' }],
    })
    first.end('timeout')
    t.match(stream, { status: 'INTERRUPTED', live: false, encoder: undefined })
    t.ok(playlist(stream), 'the playlist stays')
    t.equal(stream.report().totals.durationSec, 8, 'what had begun was flushed')

    const second = stream.publish(fakeEncoder())
    second.push(CLIP)
    t.match(stream, { status: 'STREAMING', live: true })
    t.match(playlist(stream), /#EXT-X-MEDIA-SEQUENCE:[1-9]/, 'numbers go on')
    t.strictSame(events, ['publish', 'live', 'interrupted: timeout', 'publish', 'live'])
  },
)

t.test('a stream whose encoder leaves before the first segment is never live', async (t) => {
  const { stream, events } = setUp()
  const publication = stream.publish(fakeEncoder())
  publication.push(CLIP.subarray(0, CLIP.length / 20))
  publication.end('shutdown')
  t.strictSame(events, ['publish', 'interrupted: shutdown'])
  t.equal(playlist(stream), undefined, 'the encoder may come back')
  stream.stop('api')
  t.match(playlist(stream), /e-0\.ts/, 'what it sent can be fetched')
})

t.test('the frame within which an encoder was cut off is left out', async (t) => {
  const framesOf = (bytes: Buffer) =>
    unitsOf(demux(bytes), 0x100).map((unit) => payloadOf(unit).toString('latin1'))
  const whole = framesOf(CLIP)
  for (let packets = 100; packets < 130; packets++) {
    const { stream } = setUp()
    const publication = stream.publish(fakeEncoder())
    publication.push(CLIP.subarray(0, packets * 188))
    publication.end('timeout')
    stream.stop('api')
    const frames = framesOf(Buffer.concat(stream.files.get('e-0.ts')!.chunks))
    t.strictSame(frames, whole.slice(0, frames.length), `${packets} packets`)
    t.ok(frames.length > 0)
    const { damaged = 0 } = stream.report().totals.dropped
    t.equal(damaged, framesOf(CLIP.subarray(0, packets * 188)).length - frames.length)
  }
})

t.test('a lost encoder has the grace to come back, then the stream stops', async (t) => {
  const { stream, events, clock } = setUp()
  const publication = stream.publish(fakeEncoder())
  publication.push(CLIP)
  publication.end('shutdown')
  clock.advanceSec(119.9)
  stream.tick()
  t.equal(stream.status, 'INTERRUPTED')
  clock.advanceSec(0.1)
  stream.tick()
  t.equal(stream.status, 'STOPPED')
  t.match(playlist(stream), /#EXT-X-ENDLIST\n$/)
  t.equal(events.at(-1), 'end: grace-expired')
})

t.test('a key issued while the encoder is gone starts the grace anew', async (t) => {
  const { stream, clock } = setUp()
  stream.publish(fakeEncoder()).end('shutdown')
  clock.advanceSec(119)
  stream.renewKey(clock.wallMs() + 7_200_000)
  clock.advanceSec(119.9)
  stream.tick()
  t.equal(stream.status, 'INTERRUPTED')
  clock.advanceSec(0.2)
  stream.tick()
  t.equal(stream.status, 'STOPPED')
})

t.test('READY stops when its last key expires, STREAMING does not', async (t) => {
  const { stream, events, clock } = setUp()
  stream.renewKey(clock.wallMs() + 10_000)
  stream.renewKey(clock.wallMs() + 5000)
  clock.advanceSec(9.9)
  stream.tick()
  t.equal(stream.status, 'READY', 'the later key counts')
  clock.advanceSec(0.2)
  stream.tick()
  t.strictSame(events, ['end: key-expired'])

  const other = setUp()
  other.stream.renewKey(other.clock.wallMs() + 10_000)
  other.stream.publish(fakeEncoder())
  other.clock.advanceSec(20)
  other.stream.tick()
  t.equal(other.stream.status, 'STREAMING')
})

t.test('another encoder replaces the first, whose later payloads are ignored', async (t) => {
  const { stream, events } = setUp()
  const old = fakeEncoder()
  const first = stream.publish(old)
  first.push(CLIP.subarray(0, CLIP.length / 2))
  const second = stream.publish(fakeEncoder())
  t.equal(old.closed, true)
  const { segments } = stream.report().totals
  first.push(CLIP)
  first.end('closed' as 'stopped')
  t.match(stream, { status: 'STREAMING' }, 'the end of the old one ends nothing')
  t.equal(stream.report().totals.segments, segments)
  second.push(CLIP)
  t.match(playlist(stream), /#EXT-X-DISCONTINUITY-SEQUENCE:1/)
  t.strictSame(events, ['publish', 'live', 'publish', 'live'])
})

t.test(
  'stop disconnects the encoder, flushes and ends the playlist; the linger removes all files',
  async (t) => {
    const { stream, events, clock } = setUp()
    const encoder = fakeEncoder()
    const uris: string[] = []
    stream.on('segment', ({ uri }) => uris.push(uri))
    stream.publish(encoder).push(CLIP)
    stream.stop('api')
    stream.stop('api')
    t.equal(encoder.closed, true)
    t.match(stream, { status: 'STOPPED', live: false, forgotten: false })
    t.match(playlist(stream), /#EXT-X-ENDLIST\n$/)
    t.strictSame(events, ['publish', 'live', 'end: api'], 'one end, and no interruption')
    clock.advanceSec(59.9)
    t.ok(stream.files.get(uris.at(-1)!), 'still there for those who watch')
    clock.advanceSec(0.2)
    stream.tick()
    t.equal(stream.forgotten, true)
    t.equal(stream.files.get(uris.at(-1)!), undefined)
    t.equal(playlist(stream), undefined)
  },
)

t.test('a listener may stop the stream: no segment comes after the end', async (t) => {
  const { stream, events } = setUp()
  stream.on('segment', ({ mediaSequence }) => {
    if (mediaSequence === 1) stream.stop('api')
  })
  const second: number[] = []
  stream.on('segment', ({ mediaSequence }) => second.push(mediaSequence))
  stream.publish(fakeEncoder()).push(CLIP)
  t.equal(events.at(-1), 'end: api', 'the last event')
  t.strictSame(
    second,
    second.map((_, index) => index),
    'each listener receives all segments in order',
  )
  const listed = playlist(stream)!.match(/^e-.*$/gm)
  t.equal(listed?.at(-1), `e-${second.at(-1)}.ts`)
  t.equal(stream.report().totals.segments, second.length)
})

t.test(
  'a listener that throws does not damage the stream, and later events are emitted',
  async (t) => {
    const { stream, events, clock } = setUp()
    const encoder = fakeEncoder()
    stream.publish(encoder).push(CLIP)
    stream.once('segment', () => {
      throw new Error('bucket is full')
    })
    t.throws(() => stream.stop('api'), /bucket is full/)
    t.equal(encoder.closed, true)
    t.match(stream, { status: 'STOPPED', live: false, forgotten: false })
    t.match(playlist(stream), /#EXT-X-ENDLIST\n$/)
    clock.advanceSec(0.25)
    stream.tick()
    t.equal(events.at(-1), 'end: api')
  },
)

/** @returns function that advances clock and stream in the steps of the stream timer */
function passer({ clock, stream }: ReturnType<typeof setUp>) {
  return (sec: number) => {
    for (let tick = 0; tick < sec * 4; tick++) {
      clock.advanceSec(0.25)
      stream.tick()
    }
  }
}

t.test('NO_PAT begins 3 s after the first data and ends with a PAT', async (t) => {
  const setting = setUp()
  const { stream, events } = setting
  const pass = passer(setting)
  const publication = stream.publish(fakeEncoder())
  publication.push(Buffer.alloc(188 * 7, 0x55))
  pass(3)
  t.strictSame(stream.report().warnings, [])
  pass(3)
  t.match(stream.report().warnings, [{ code: 'NO_PAT', message: /MPEG-TS/ }])
  t.strictSame(events, ['publish', 'warning: NO_PAT'], 'warned once')
  publication.push(CLIP)
  pass(1)
  t.notMatch(stream.report().warnings, [{ code: 'NO_PAT' }])
})

t.test('NO_MEDIA begins after 5 s without video and audio, and ends with either', async (t) => {
  const setting = setUp()
  const { stream, events } = setting
  const pass = passer(setting)
  const publication = stream.publish(fakeEncoder())
  const tables = new TsBuilder().program([{ pid: 0x100, streamType: 0x1b }]).bytes
  for (let turn = 0; turn < 5; turn++) publication.push(tables)
  pass(4.5)
  t.strictSame(stream.report().warnings, [])
  pass(1.5)
  t.match(stream.report().warnings, [
    { code: 'NO_MEDIA', message: /^No video and no audio for 5 s/ },
  ])
  publication.push(CLIP)
  pass(1)
  t.strictSame(stream.report().warnings, [])
  pass(6)
  t.match(stream.report().warnings, [{ code: 'NO_MEDIA' }], 'also in mid-stream')
  t.strictSame(
    events.filter((event) => event.startsWith('warning')),
    ['warning: NO_MEDIA', 'warning: NO_MEDIA'],
  )
})

t.test('CACHE_TOO_SMALL says how much memory all streams need', async (t) => {
  const setting = setUp()
  const options = { ...setting.options, epoch: 'e', playlistSegments: 6 }
  const cache = new SegmentCache({ maxBytes: CLIP.length })
  const stream = new LiveStream('studio', { ...options, cache })
  const pass = passer({ ...setting, stream })
  const publication = stream.publish(fakeEncoder())
  publication.push(CLIP)
  pass(1)
  const [warning] = stream.report().warnings
  t.match(warning, {
    code: 'CACHE_TOO_SMALL',
    message: /^Memory is short: [345] of 6 segments listed, .* Set CACHE_MAX_MIB to \d+\.$/,
  })
  t.match(stream.report().playlist, { listedSegments: /^[345]$/, wantedSegments: 6, gaps: 0 })
})

t.test('the program that the encoder names goes before that of the service', async (t) => {
  const { options } = setUp()
  const stream = new LiveStream('studio', { ...options, epoch: 'e', program: 2 })
  const ts = new TsBuilder().sections(0, patSection([[1, 0x1001], [2, 0x1002]])) // prettier-ignore
  for (const number of [1, 2]) {
    const track = { pid: 0x100 * number, streamType: 0x1b }
    ts.sections(0x1000 + number, pmtSection(number, track.pid, [track]))
  }
  const publish = (encoder: Encoder) => {
    stream.publish(encoder).push(Buffer.concat([ts.bytes, ts.bytes]))
    return stream.report().tracks.map(({ pid }) => pid)
  }
  t.strictSame(publish(fakeEncoder()), [0x200])
  t.strictSame(publish({ ...fakeEncoder(), program: 1 }), [0x100])
  t.strictSame(publish({ ...fakeEncoder(), program: 'all' }), [0x100, 0x200])
})

t.test('warns once of the link, until the encoder ends', async (t) => {
  const { stream, events, clock } = setUp()
  const encoder = fakeEncoder()
  let packetsReceived = 0
  encoder.report = () => ({ ...PUBLISHER_REPORT, rttMs: 100, packetsReceived: packetsReceived++ })
  const publication = stream.publish(encoder)
  publication.push(CLIP)
  const run = () => {
    for (let tick = 0; tick < 32; tick++) {
      clock.advanceSec(0.25)
      publication.push(CLIP.subarray(-188))
      stream.tick()
    }
    return stream.report().warnings.filter(({ code }) => code === 'LATENCY_TOO_LOW')
  }
  t.match(run(), [{ message: /SRT_LATENCY_MS=450/ }])
  t.equal(run().length, 1)
  publication.end('shutdown')
  t.strictSame(run(), [])
  stream.publish(encoder)
  t.equal(run().length, 1, 'another connection has warnings of its own')
  t.equal(events.filter((event) => event === 'warning: LATENCY_TOO_LOW').length, 2)
})

t.test(
  'an encoder without media for 10 s interrupts the stream, and its media resumes it',
  async (t) => {
    const setting = setUp()
    const { stream, events } = setting
    const pass = passer(setting)
    const encoder = fakeEncoder()
    const publication = stream.publish(encoder)
    publication.push(CLIP)
    pass(9.5)
    t.match(stream, { status: 'STREAMING', live: true })
    publication.push(Buffer.alloc(188 * 7, 0x55))
    publication.push(NULL_PACKETS)
    publication.push(new TsBuilder().program([{ pid: 0x100, streamType: 0x1b }]).bytes)
    pass(1)
    t.match(stream, { status: 'INTERRUPTED', live: false, encoder }, 'noise is no media')
    t.equal(encoder.closed, false, 'its connection stands')
    publication.push(NULL_PACKETS)
    pass(20)
    t.equal(stream.status, 'INTERRUPTED')
    publication.push(CLIP)
    t.match(stream, { status: 'STREAMING', live: true })
    t.match(playlist(stream), /#EXT-X-DISCONTINUITY-SEQUENCE:1\n/)
    pass(1)
    t.strictSame(
      events.filter((event) => !event.startsWith('warning')),
      ['publish', 'live', 'interrupted: no-media', 'live'],
    )
  },
)

t.test('frames whose time stands still are no media', async (t) => {
  const setting = setUp()
  const { stream } = setting
  const publication = stream.publish(fakeEncoder())
  const ts = new TsBuilder().program([{ pid: 0x100, streamType: 0x81 }])
  const frame = pesPacket(Buffer.alloc(100), { ptsTicks: 90_000 })
  for (let unit = 0; unit < 20; unit++) ts.unit(0x100, frame)
  for (const packet of ts.packets) {
    publication.push(packet)
    passer(setting)(1)
  }
  t.equal(stream.status, 'INTERRUPTED')
})

t.test('an encoder that stays without media stops the stream after the grace', async (t) => {
  const setting = setUp()
  const { stream, events } = setting
  const encoder = fakeEncoder()
  stream.publish(encoder).push(CLIP)
  passer(setting)(131)
  t.match(stream, { status: 'STOPPED' })
  t.equal(encoder.closed, true)
  t.equal(events.at(-1), 'end: grace-expired')
})

t.test(
  'another encoder replaces one without media, whose later payloads are ignored',
  async (t) => {
    const setting = setUp()
    const { stream, events } = setting
    const silent = fakeEncoder()
    const first = stream.publish(silent)
    first.push(CLIP)
    passer(setting)(11)
    const second = stream.publish(fakeEncoder())
    t.match(stream, { status: 'STREAMING', live: false })
    t.equal(silent.closed, true)
    first.push(CLIP)
    t.equal(stream.live, false)
    second.push(CLIP)
    t.equal(stream.live, true)
    t.strictSame(
      events.filter((event) => !event.startsWith('warning')),
      ['publish', 'live', 'interrupted: no-media', 'publish', 'live'],
    )
  },
)

t.test('tells that the encoder of an earlier process has gone, until one is here', async (t) => {
  const { stream, events } = setUp()
  stream.reportInterruption()
  t.strictSame(events, ['interrupted: timeout'])
  stream.publish(fakeEncoder())
  stream.reportInterruption()
  t.strictSame(events.slice(1), ['publish'])
  stream.stop('api')
  stream.reportInterruption()
  t.strictSame(events.slice(2), ['end: api'])
})

t.test(
  'an encoder above the limit of the bitrate is warned at 80 %, then disconnected',
  async (t) => {
    const { clock, options } = setUp()
    const stream = new LiveStream('studio', { ...options, epoch: 'e', maxBitrateBps: 10e6 })
    const events: string[] = []
    stream.on('warning', ({ code }) => events.push(code))
    stream.on('interrupted', ({ reason }) => events.push(reason))
    const encoder = fakeEncoder()
    let bytesReceived = 0
    encoder.report = () => ({ ...PUBLISHER_REPORT, bytesReceived })
    const publication = stream.publish(encoder)
    const ts = new TsBuilder().program([{ pid: 0x100, streamType: 0x81 }])
    const send = (megabits: number, sec: number) => {
      for (let tick = 0; tick < sec * 4; tick++) {
        clock.advanceSec(0.25)
        bytesReceived += (megabits * 1e6) / 8 / 4
        ts.unit(0x100, pesPacket(Buffer.alloc(100), { ptsTicks: clock.nowUs() * 0.09 }))
        publication.push(Buffer.concat(ts.packets.splice(0)))
        stream.tick()
      }
      return stream.report().warnings.filter(({ code }) => code.startsWith('BITRATE'))
    }
    t.strictSame(send(7.9, 20), [])
    t.match(send(9, 20), [{ code: 'BITRATE_HIGH', message: /9 Mbit\/s \(limit 10\)/ }])
    t.strictSame(send(7, 10), [])
    send(20, 1)
    t.equal(stream.status, 'STREAMING', 'a burst is no offense')
    send(7, 10)
    t.match(send(11, 7), [{ code: 'BITRATE_EXCEEDED' }], 'stays in status')
    t.equal(encoder.closed, true)
    t.equal(stream.status, 'INTERRUPTED')
    t.strictSame(events.filter((event) => /BITRATE|bitrate/.test(event)).slice(-2), [
      'BITRATE_EXCEEDED',
      'bitrate-exceeded',
    ])
  },
)

t.test('a warning about segments ends 30 s after its cause, or with its encoder', async (t) => {
  const setting = setUp()
  const { stream, events } = setting
  const publish = () => {
    // The clip again: its timestamps go back.
    const publication = stream.publish(fakeEncoder())
    for (let turn = 0; turn < 2; turn++) publication.push(CLIP)
  }
  const jumps = () => stream.report().warnings.filter(({ code }) => code === 'TIMESTAMP_JUMP')
  publish()
  passer(setting)(29)
  t.match(jumps(), [{ message: /^Timestamps jumped \d.* s back\. / }])
  passer(setting)(1)
  t.strictSame(jumps(), [])
  publish()
  t.equal(jumps().length, 1)
  stream.publish(fakeEncoder())
  t.strictSame(jumps(), [])
  t.equal(events.filter((event) => event === 'warning: TIMESTAMP_JUMP').length, 2, 'warned twice')
})

t.test('warnings about tracks end with their encoder', async (t) => {
  const setting = setUp()
  const { stream, events } = setting
  // E-AC-3 (stream type 87) beside the video of the clip: dropped, with a warning.
  const first = stream.publish(fakeEncoder())
  const tables = new TsBuilder().program([
    { pid: 0x100, streamType: 0x1b },
    { pid: 0x101, streamType: 0x87 },
    { pid: 0x102, streamType: 0x06 },
  ]).bytes
  for (let turn = 0; turn < 5; turn++) first.push(tables)
  passer(setting)(1)
  const countWarnings = () =>
    events.filter((event) => event.startsWith('warning: TRACKS_LEFT_OUT')).length
  t.equal(countWarnings(), 1)
  stream.publish(fakeEncoder())
  passer(setting)(1)
  t.equal(countWarnings(), 1, 'before its first PMT')
  t.strictSame(stream.report().warnings, [])
})

t.test('a stopped stream has no warnings', async (t) => {
  const setting = setUp()
  const { stream } = setting
  const publication = stream.publish(fakeEncoder())
  for (let turn = 0; turn < 2; turn++) publication.push(CLIP)
  t.match(stream.report().warnings, [{ code: 'TIMESTAMP_JUMP' }])
  stream.stop('api')
  t.strictSame(stream.report().warnings, [])
})

t.test(
  'a stream without an encoder gives its memory first, however its encoder left',
  async (t) => {
    for (const leave of ['closed', 'silent, then closed']) {
      const setting = setUp()
      const { options, clock } = setting
      const cache = new SegmentCache({ maxBytes: CLIP.length })
      const [idle, live] = ['idle', 'live'].map(
        (id) => new LiveStream(id, { ...options, cache, epoch: id, segmentSec: 1 }),
      ) as [LiveStream, LiveStream]
      const publication = idle.publish(fakeEncoder())
      publication.push(CLIP)
      if (leave !== 'closed') passer({ ...setting, stream: idle })(12)
      publication.end('timeout')
      const other = live.publish(fakeEncoder())
      for (let turn = 0; turn < 8; turn++) {
        other.push(CLIP)
        clock.advanceSec(8)
      }
      t.ok(cache.stats.yielded > 0, leave)
      t.match(cache.stats, { refused: 0 }, leave)
    }
  },
)

t.test(
  'queues of a stream count towards the memory for segments, and are in its report until its encoder leaves',
  async (t) => {
    const setting = setUp()
    const cache = new SegmentCache({ maxBytes: 1e9 })
    const stream = new LiveStream('studio', { ...setting.options, epoch: 'e', cache })
    const heldBytes = 95_000_000
    const publication = stream.publish({ ...fakeEncoder(), queuedBytes: heldBytes })
    stream.tick()
    t.equal(stream.report().queuedBytes, heldBytes, 'behind a missing packet')
    t.equal(cache.stats.queuedBytes, heldBytes)
    publication.push(CLIP.subarray(0, CLIP.length / 20))
    stream.tick()
    const { queuedBytes } = cache.stats
    t.ok(queuedBytes > heldBytes + CLIP.length / 40, 'the open segment and open PES packets')
    publication.end('timeout')
    t.equal(cache.stats.queuedBytes, 0)
    t.equal(stream.report().queuedBytes, 0)
  },
)
