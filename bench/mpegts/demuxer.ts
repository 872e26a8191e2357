/**
 * Transport stream packets a second through the demuxer, on one core.
 *
 * The streams are built, not encoded: 50 frames a second of the given size, each frame's packets interleaved with
 * sound as a multiplexer does, pushed as SRT payloads of 1316 bytes that each lie in a buffer of their own.
 *
 * @module
 */
import { Demuxer } from '../../src/mpegts/demuxer.ts'
import { pesPacket, TsBuilder } from '../../test/mpegts/ts-builder.ts'

const PACKET_BYTES = 188
const PAYLOAD_BYTES = 7 * PACKET_BYTES
const FRAMES = 500
const GOP_FRAMES = 50
const RUN_MS = 2000

const SPS = Buffer.from('6742c02ada01e0089f97011000003e90001d4c00f1832a', 'hex')
const IDR_HEAD = Buffer.concat([
  Buffer.from([0, 0, 0, 1]),
  SPS,
  Buffer.from([0, 0, 0, 1, 0x68, 0xce, 0x38, 0x80, 0, 0, 1, 0x65, 0x88, 0x84]),
])
const P_HEAD = Buffer.from([0, 0, 0, 1, 0x09, 0xf0, 0, 0, 1, 0x41, 0x9a, 0x24])

/** @param mbps  of video at 50 frames a second */
function buildPayloads(mbps: number): Buffer[] {
  const ts = new TsBuilder()
  const frameBytes = Math.round((mbps * 1e6) / 8 / 50)
  const filling = Buffer.alloc(frameBytes * 3, 0x5a)
  for (let frame = 0; frame < FRAMES; frame++) {
    const ptsTicks = frame * 1800
    if (frame % 5 === 0) {
      ts.program([
        { pid: 0x100, streamType: 0x1b },
        { pid: 0x101, streamType: 0x0f },
      ])
    }
    const key = frame % GOP_FRAMES === 0
    const head = key ? IDR_HEAD : P_HEAD
    const video = Buffer.concat([head, filling.subarray(0, key ? frameBytes * 3 : frameBytes)])
    ts.unit(0x100, pesPacket(video, { ptsTicks, length: 'none' }))
    ts.unit(0x101, pesPacket(Buffer.alloc(340, 0x21), { ptsTicks, streamId: 0xc0 }))
  }
  const bytes = ts.bytes
  // Copies, as a socket hands them out, whole payloads only: the stream is repeated.
  return Array.from({ length: Math.floor(bytes.length / PAYLOAD_BYTES) }, (_, i) =>
    Buffer.from(bytes.subarray(i * PAYLOAD_BYTES, (i + 1) * PAYLOAD_BYTES)),
  )
}

/** Runs the stream through one demuxer after another for a while. */
function measure(payloads: readonly Buffer[]) {
  let packets = 0
  let units = 0
  const before = process.cpuUsage()
  const until = performance.now() + RUN_MS
  while (performance.now() < until) {
    const demuxer = new Demuxer()
    for (const payload of payloads) demuxer.push(payload)
    demuxer.end()
    packets += demuxer.stats.packets
    units += demuxer.stats.units
  }
  const { user, system } = process.cpuUsage(before)
  return { packets, units, cpuSec: (user + system) / 1e6 }
}

const rows = [2, 5, 20, 80].map((mbps) => {
  const payloads = buildPayloads(mbps)
  measure(payloads.slice(0, payloads.length / 10))
  const { packets, units, cpuSec } = measure(payloads)
  return {
    'Mbit/s': mbps,
    'ns a packet': Math.round((cpuSec / packets) * 1e9),
    'us a unit': Number(((cpuSec / units) * 1e6).toFixed(1)),
    'Gbit/s a core': Number(((packets * PACKET_BYTES * 8) / cpuSec / 1e9).toFixed(1)),
  }
})
console.table(rows)
