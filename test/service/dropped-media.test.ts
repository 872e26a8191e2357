/**
 * Media that is dropped, as an operator finds it: a source for each reason, in the status and in the metrics.
 */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import type { DropReason } from '../../src/api/records.ts'
import { snakeCase } from '../../src/api/wire-names.ts'
import type { Server } from '../../src/service/server.ts'
import { systemClock } from '../../src/timing/clock.ts'
import { loas } from '../codec/latm-builder.ts'
import { COSTLY_STREAMS, payloadsOf } from '../hostile/attacks/costly-streams.ts'
import { spliceInsert } from '../mpegts/splice-builder.ts'
import { pesPacket, pmtSection, TsBuilder, tsPacket, type PmtStream } from '../mpegts/ts-builder.ts'
import { PUBLISHER_REPORT } from '../stream/publisher-report.ts'
import { adtsFrames, h264AccessUnit } from '../support/access-units.ts'
import { startService } from '../support/service.ts'

const PAYLOAD_BYTES = 1316
const TOKEN = randomBytes(32).toString('hex')

const VIDEO: PmtStream = { pid: 0x100, streamType: 0x1b }
const AUDIO: PmtStream = { pid: 0x101, streamType: 0x0f }
const FRENCH: PmtStream = {
  ...{ pid: 0x102, streamType: 0x0f },
  descriptors: Buffer.from('0a0466726100', 'hex'),
}
const LATM: PmtStream = { pid: 0x103, streamType: 0x11 }
const SPLICES: PmtStream = { pid: 0x104, streamType: 0x86 }
const ID3: PmtStream = {
  ...{ pid: 0x105, streamType: 0x15 },
  descriptors: Buffer.from('260dffff49443320ff49443320000f', 'hex'),
}
const PROGRAM = [VIDEO, AUDIO, FRENCH, LATM, SPLICES, ID3]

const SEC = 90_000
const FRAMES_PER_SEC = 30
const FRAME_TICKS = SEC / FRAMES_PER_SEC
const AAC_TICKS = 1920

const audioPes = (payload: Uint8Array, ticks: number, length: 'true' | 'none' = 'true') =>
  pesPacket(payload, { ptsTicks: SEC + ticks, streamId: 0xc0, length })

/** Adds frames of video, one of 30 a key frame, with the audio beside them. */
function play(ts: TsBuilder, from: number, to: number): void {
  let audio = Math.ceil((from * FRAME_TICKS) / AAC_TICKS)
  for (let frame = from; frame < to; frame++) {
    const unit = h264AccessUnit({ key: frame % FRAMES_PER_SEC === 0, sizeBytes: 1000 })
    ts.unit(VIDEO.pid, pesPacket(unit, { ptsTicks: SEC + frame * FRAME_TICKS }))
    for (; audio * AAC_TICKS < (frame + 1) * FRAME_TICKS; audio++)
      ts.unit(AUDIO.pid, audioPes(adtsFrames(1, 400), audio * AAC_TICKS))
  }
}

/** Two seconds of media with, in the middle, what `edit` adds to it. */
function live(edit: (ts: TsBuilder) => unknown = () => undefined): Buffer {
  const ts = new TsBuilder().program(PROGRAM)
  play(ts, 0, 30)
  edit(ts)
  play(ts, 30, 60)
  return ts.bytes
}

/** Time that the video of `live` does not reach. */
const LATER_TICKS = 5 * SEC

const SOURCES: Readonly<Record<DropReason, () => Iterable<Buffer>>> = {
  tooCostly: () => {
    const payloads = payloadsOf(COSTLY_STREAMS['NAL units of 3 bytes']!())
    return Array.from({ length: 2000 }, () => payloads.next().value)
  },
  syncLost: () => [live((ts) => ts.packets.push(Buffer.alloc(100)))],
  transportError: () => [live((ts) => ts.packet({ pid: VIDEO.pid, transportError: true }))],
  scrambled: () => [
    live((ts) => ts.packet({ pid: VIDEO.pid, scrambling: 2, payload: Buffer.alloc(184) })),
  ],
  malformedPacket: () => {
    const packet = tsPacket({ pid: VIDEO.pid, payload: Buffer.alloc(184) })
    packet[3]! &= 0x0f
    return [live((ts) => ts.packets.push(packet))]
  },
  duplicate: () => [live((ts) => ts.packets.push(ts.packets.at(-1)!))],
  orphan: () => [live((ts) => ts.packet({ pid: FRENCH.pid, payload: Buffer.alloc(184) }))],
  tableCrc: () => {
    const section = pmtSection(1, VIDEO.pid, PROGRAM)
    section[section.length - 1]! ^= 1
    return [live((ts) => ts.sections(0x1000, section))]
  },
  tableFlood: () => [
    live((ts) => {
      const streams = Array.from({ length: 30 }, (_, index) => ({ ...ID3, pid: 0x200 + index }))
      for (let change = 0; change < 300; change++)
        ts.sections(0x1000, pmtSection(1, 0x100 + change, streams))
    }),
  ],
  encryptedSplice: () => [
    live((ts) => ts.sections(SPLICES.pid, spliceInsert({ eventId: 1 }, { encrypted: true }))),
  ],
  malformedSplice: () => [
    live((ts) => ts.sections(SPLICES.pid, spliceInsert({ eventId: 1 }, { protocolVersion: 9 }))),
  ],
  malformedPes: () => [live((ts) => ts.unit(FRENCH.pid, Buffer.alloc(184, 7)))],
  unconfigured: () => [
    live((ts) => ts.unit(LATM.pid, audioPes(loas(undefined, Buffer.alloc(9)), SEC))),
  ],
  incompleteAudio: () => [
    live((ts) => ts.unit(FRENCH.pid, audioPes(adtsFrames(6).subarray(30), SEC))),
  ],
  oversize: () => [live((ts) => ts.unit(FRENCH.pid, audioPes(Buffer.alloc(140_000), SEC, 'none')))],
  damaged: () => [
    live((ts) => {
      ts.unit(AUDIO.pid, audioPes(adtsFrames(2, 400), SEC))
      ts.packets.splice(-2, 1)
    }),
  ],
  beforeKeyFrame: () => {
    const ts = new TsBuilder().program(PROGRAM)
    play(ts, 1, 60)
    return [ts.bytes]
  },
  audio: () => [live((ts) => ts.unit(AUDIO.pid, audioPes(adtsFrames(1), LATER_TICKS)))],
  data: () => [
    live((ts) => {
      const tag = Buffer.from('ID3\x04\0\0\0\0\0\x0a0123456789', 'latin1')
      ts.unit(ID3.pid, pesPacket(tag, { ptsTicks: SEC + LATER_TICKS, streamId: 0xbd }))
    }),
  ],
  otherRendition: () => {
    const ts = new TsBuilder().program(PROGRAM)
    for (const ticks of [0, LATER_TICKS]) ts.unit(FRENCH.pid, audioPes(adtsFrames(1), ticks))
    play(ts, 0, 60)
    return [ts.bytes]
  },
  cmaf: () => [live((ts) => ts.unit(AUDIO.pid, audioPes(adtsFrames(1), SEC - 10 * AAC_TICKS)))],
}

function publish(server: Server, streamId: string, source: Iterable<Buffer>): void {
  const publication = server.findStream(streamId)!.publish({
    get lastPacketUs() {
      return systemClock.nowUs()
    },
    report: () => PUBLISHER_REPORT,
    close: () => undefined,
  })
  for (const bytes of source)
    for (let at = 0; at < bytes.length; at += PAYLOAD_BYTES)
      publication.push(bytes.subarray(at, at + PAYLOAD_BYTES))
  publication.end('shutdown')
}

t.test('each reason for which media is dropped is in the status and in the metrics', async (t) => {
  const service = await startService(t, { metrics: { token: TOKEN } })
  const { server, url } = service
  for (const [reason, source] of Object.entries(SOURCES)) {
    await server.startStream({ streamId: reason })
    publish(server, reason, source())
  }
  const headers = { authorization: `Bearer ${TOKEN}` }
  const metrics = await (await fetch(`${url}/metrics`, { headers })).text()
  for (const streamId of Object.keys(SOURCES)) {
    const reason = snakeCase(streamId)
    const { body } = await service.api('status', { stream_id: streamId })
    const { dropped, packets_damaged } = body.data['totals']
    t.ok(dropped[reason] > 0, `${reason} in ${JSON.stringify(dropped)}`)
    const series = [
      `millrace_media_dropped_total{stream="${streamId}",reason="${reason}"} ${dropped[reason]}`,
      `millrace_media_packets_damaged_total{stream="${streamId}"} ${packets_damaged}`,
    ]
    for (const line of series) t.ok(metrics.includes(`\n${line}\n`), line)
    if (reason === 'damaged') t.equal(packets_damaged, 1)
  }
})

t.test('audio that a stream began without is counted as dropped', async (t) => {
  const service = await startService(t)
  await service.server.startStream({ streamId: 'studio' })
  const ts = new TsBuilder().program([VIDEO])
  play(ts, 0, 120)
  ts.program([VIDEO, AUDIO])
  play(ts, 120, 180)
  publish(service.server, 'studio', [ts.bytes])
  const { body } = await service.api('status', { stream_id: 'studio' })
  t.strictSame(body.data['totals'].dropped, { audio: 94 })
})

t.test('nothing is dropped of clean media, and counts outlive the encoder', async (t) => {
  const service = await startService(t)
  await service.server.startStream({ streamId: 'studio' })
  const dropped = async () => {
    const { body } = await service.api('status', { stream_id: 'studio' })
    return body.data['totals'].dropped
  }
  publish(service.server, 'studio', [live()])
  t.strictSame(await dropped(), {})
  for (const count of [1, 2]) {
    publish(service.server, 'studio', SOURCES.transportError())
    t.strictSame(await dropped(), { transport_error: count })
  }
})
