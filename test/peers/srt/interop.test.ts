/**
 * srt-live-transmit with a packet filter, and the reasons that it prints.
 */
import { createSocket } from 'node:dgram'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import {
  createListener,
  type ConnectionRequest,
  type SrtConnection,
  type SrtStats,
} from '../../../src/srt/index.ts'
import { isControl, messageNumber } from '../../../src/srt/wire/packet.ts'
import { freePort } from '../../support/free-port.ts'
import { start } from '../../support/process.ts'
import { startRelay, type Direction } from '../../support/udp-relay.ts'
import { until } from '../../support/until.ts'
import { requireTool } from '../support/tools.ts'

const HOST = '127.0.0.1'
/** Clip of 8 s at 0.8 Mbit/s. */
const CLIP = fileURLToPath(new URL('../../../fixtures/demo.mpegts', import.meta.url))
const DATAGRAM_BYTES = 7 * 188

/** Listener that records one stream. */
async function receive(t: Test, latencyMs = 120) {
  const requests: ConnectionRequest[] = []
  const payloads: Buffer[] = []
  const observed = {
    connection: undefined as SrtConnection | undefined,
    gaps: 0,
    end: undefined as string | undefined,
  }
  const listener = await createListener({
    host: HOST,
    port: 0,
    latencyMs,
    accept: async (request) => {
      requests.push(request)
      return {
        sink: {
          open: (connection) => (observed.connection = connection),
          push: (payload) => payloads.push(payload),
          gap: (lostPackets) => (observed.gaps += lostPackets),
          end: (reason) => (observed.end = reason),
        },
      }
    },
  })
  t.teardown(() => listener.close())
  return {
    port: listener.address().port,
    requests,
    observed,
    bytes: () => Buffer.concat(payloads),
    stats: (): SrtStats => observed.connection!.stats(),
    connected: () => until('a connection', () => observed.connection),
    ended: () => until('the end of the stream', () => observed.end),
  }
}

/** Starts srt-live-transmit from a UDP port to `url`. */
async function startTransmitter(t: Test, url: string) {
  const udpPort = await freePort()
  const program = start(t, 'srt-live-transmit', ['-v', `udp://${HOST}:${udpPort}`, url])
  return { program, udpPort }
}

/** Sends the clip to the UDP port of srt-live-transmit, at twice its speed. */
async function play(t: Test, udpPort: number, clip: Buffer): Promise<void> {
  const socket = createSocket('udp4')
  t.teardown(() => void socket.close())
  for (let at = 0; at < clip.length; at += DATAGRAM_BYTES) {
    socket.send(clip.subarray(at, at + DATAGRAM_BYTES), udpPort, HOST)
    if (at % (16 * DATAGRAM_BYTES) === 0) await sleep(100)
  }
}

/** Publishes the clip with srt-live-transmit and the URL parameters `query`. */
async function transmit(
  t: Test,
  query: string,
  { latencyMs, via }: { latencyMs?: number; via?: (port: number) => number } = {},
) {
  const received = await receive(t, latencyMs)
  const port = via?.(received.port) ?? received.port
  const { program, udpPort } = await startTransmitter(t, `srt://${HOST}:${port}?${query}`)
  // It discards its input until it has received our response.
  await until('a connection', () => program.output().includes('SRT target connected'))
  const clip = readFileSync(CLIP)
  await play(t, udpPort, clip)
  return {
    ...received,
    clip,
    /** Waits for `bytes` received bytes, then ends the program. */
    finish: async (bytes: number) => {
      await until(`${bytes} bytes`, () => received.bytes().length >= bytes)
      program.kill('SIGINT')
      await received.ended()
      return received.bytes()
    },
  }
}

t.test('FEC packets of a caller with a packet filter replace no data packet', async (t) => {
  if (!requireTool(t, 'srt-live-transmit')) return
  let filterPackets = 0
  const via = (targetPort: number) => {
    const tap = (direction: Direction, datagram: Buffer) => {
      if (direction === 'backward' || isControl(datagram)) return
      if (messageNumber(datagram) === 0) filterPackets++
    }
    const relay = startRelay({ targetPort, tap })
    t.teardown(() => relay.close())
    return relay.port
  }
  const query = 'packetfilter=fec,cols:10,rows:5'
  const { clip, finish, observed, stats } = await transmit(t, query, { via })
  t.ok((await finish(clip.length)).equals(clip))
  t.ok(filterPackets > 100, `${filterPackets} packets of the filter`)
  t.equal(observed.gaps, 0)
  t.match(stats(), { pktRecvTotal: Math.ceil(clip.length / DATAGRAM_BYTES) })
})

t.test('srt-live-transmit prints the reason of each reject code', async (t) => {
  if (!requireTool(t, 'srt-live-transmit')) return
  for (const [query, code, text] of [
    ['streamid=x', 1010, 'Incorrect passphrase'],
    ['streamid=x', 2409, 'Application-defined rejection reason'],
    ['streamid=x', 1007, 'Socket is being closed'],
    ['passphrase=0123456789', 1011, 'Password required or unexpected'],
    ['transtype=file', 1012, 'MessageAPI'],
  ] as const) {
    const listener = await createListener({
      host: HOST,
      port: 0,
      latencyMs: 120,
      accept: async () => ({ reject: code }),
    })
    t.teardown(() => listener.close())
    const url = `srt://${HOST}:${listener.address().port}?${query}`
    const { program } = await startTransmitter(t, url)
    await until(`"${text}" from srt-live-transmit`, () => program.output().includes(text))
    t.ok(listener.stats().rejects[code], `${code}: ${text}`)
    program.kill('SIGINT')
    await program.exit
  }
})
