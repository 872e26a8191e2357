/**
 * Foreign peers, from Debian: ffmpeg (libsrt with GnuTLS), srt-live-transmit (with GnuTLS as well), GStreamer.
 */
import { createSocket } from 'node:dgram'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import {
  connect,
  createListener,
  type ConnectionRequest,
  type SrtConnection,
  type SrtStats,
} from '../../../src/srt/index.ts'
import { isControl, messageNumber } from '../../../src/srt/wire/packet.ts'
import { listen, RECEIVERS, type ForeignListener } from '../interop/receivers.ts'
import { freePort } from '../../support/free-port.ts'
import { countMedia, decodeErrors } from '../support/media.ts'
import { start } from '../../support/process.ts'
import { requireTool } from '../support/tools.ts'
import { startRelay, type Direction } from '../../support/udp-relay.ts'
import { until } from '../../support/until.ts'

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

t.test('ffmpeg publishes: every frame arrives', async (t) => {
  if (!requireTool(t, 'ffmpeg', 'ffprobe')) return
  const { port, requests, observed, bytes, stats, ended } = await receive(t)
  const streamId = 'mode=publish,rid=demo,token=a.b.c'
  const url = `srt://${HOST}:${port}?streamid=${streamId}&latency=350000&linger=2`
  const ffmpeg = start(t, 'ffmpeg', `-v error -re -i ${CLIP} -c copy -f mpegts ${url}`.split(' '))
  t.equal(await ffmpeg.exit, 0, ffmpeg.output())
  await ended()
  t.match(requests, [{ remoteAddress: HOST, streamId, peerVersion: /^1\.[45]\.\d$/ }])
  t.match(observed, { connection: { latencyMs: 350 }, gaps: 0, end: 'shutdown' })
  t.match(stats(), { pktRcvDropTotal: 0, pktRcvDuplicateTotal: 0, msRcvTsbPdDelay: 350 })
  const file = join(t.testdir(), 'received.mpegts')
  writeFileSync(file, bytes())
  t.strictSame(await countMedia(file), await countMedia(CLIP))
  t.equal(await decodeErrors(file), '')
})

t.test('GStreamer publishes: every byte that it sends arrives', async (t) => {
  if (!requireTool(t, 'gst-launch-1.0')) return
  const { port, requests, observed, bytes, ended } = await receive(t)
  const sink = `srtsink uri=srt://${HOST}:${port}?streamid=hello latency=200`
  const pipeline = `-q filesrc location=${CLIP} ! tsparse set-timestamps=true ! ${sink}`
  const gst = start(t, 'gst-launch-1.0', pipeline.split(' '))
  t.equal(await gst.exit, 0, gst.output())
  await ended()
  t.match(requests, [{ streamId: 'hello' }])
  t.match(observed, { connection: { latencyMs: 200 }, gaps: 0, end: 'shutdown' })
  // srtsink closes without waiting for its last packets to be acknowledged.
  const received = bytes()
  const clip = readFileSync(CLIP)
  t.ok(received.equals(clip.subarray(0, received.length)))
  t.ok(received.length > clip.length - 100_000)
})

t.test('srt-live-transmit publishes: every byte arrives', async (t) => {
  if (!requireTool(t, 'srt-live-transmit')) return
  const { clip, finish, requests, observed, stats } = await transmit(
    t,
    'streamid=#!::r=a,m=publish',
  )
  t.ok((await finish(clip.length)).equals(clip))
  t.match(requests, [{ streamId: '#!::r=a,m=publish' }])
  t.match(observed, { connection: { latencyMs: 120 }, gaps: 0, end: 'shutdown' })
  t.match(stats(), { pktRcvDropTotal: 0, pktRcvDuplicateTotal: 0 })
})

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

t.test('srt-live-transmit publishes over a bad link: every byte arrives', async (t) => {
  if (!requireTool(t, 'srt-live-transmit')) return
  const link = { loss: 0.05, delayMs: 20, jitterMs: 5, reorder: 0.01, duplicate: 0.01 }
  const via = (targetPort: number) => {
    const relay = startRelay({ targetPort, seed: 3, forward: link, backward: link })
    t.teardown(() => relay.close())
    return relay.port
  }
  const { clip, finish, observed, stats } = await transmit(t, 'latency=4000', {
    latencyMs: 4000,
    via,
  })
  // A loss of the very last packets is invisible: libsrt sends nothing after them.
  const received = await finish(clip.length - 3 * DATAGRAM_BYTES)
  t.equal(observed.gaps, 0)
  t.ok(received.equals(clip.subarray(0, received.length)))
  t.ok(stats().pktRcvLossTotal > 10, 'the link was bad')
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

/** Plays the clip to a foreign listener until it exits. */
async function callAndPlay({ port, exit }: ForeignListener): Promise<Buffer> {
  const caller = await connect({ host: HOST, port, latencyMs: 2000, connectTimeoutMs: 15_000 })
  const clip = readFileSync(CLIP)
  for (let at = 0; at < clip.length; at += DATAGRAM_BYTES) {
    caller.send(clip.subarray(at, at + DATAGRAM_BYTES))
    if (at % (16 * DATAGRAM_BYTES) === 0) await sleep(100)
  }
  await caller.close()
  await exit
  return clip
}

t.test('our caller publishes to srt-live-transmit: every byte arrives', async (t) => {
  if (!requireTool(t, 'srt-live-transmit')) return
  const listener = await listen(t, RECEIVERS['srt-live-transmit'])
  const clip = await callAndPlay(listener)
  t.ok(listener.bytes().equals(clip))
})

t.test('our caller publishes to ffmpeg: every frame arrives', async (t) => {
  if (!requireTool(t, 'ffmpeg', 'ffprobe')) return
  const file = join(t.testdir(), 'received.mpegts')
  const listener = await listen(t, {
    command: (port) =>
      `ffmpeg -v error -i srt://${HOST}:${port}?mode=listener -c copy -f mpegts ${file}`,
  })
  await callAndPlay(listener)
  const { videoFrames, audioFrames } = await countMedia(CLIP)
  t.match(await countMedia(file), { videoFrames, audioFrames })
})

t.test('a listener with a passphrase rejects a caller without one with 1011', async (t) => {
  if (!requireTool(t, 'srt-live-transmit')) return
  const { port } = await listen(t, RECEIVERS['srt-live-transmit'], 'passphrase=0123456789')
  await t.rejects(connect({ host: HOST, port, connectTimeoutMs: 15_000 }), {
    code: 'SRT_REJECTED',
    message: /1011 \(UNSECURE\)/,
  })
})
