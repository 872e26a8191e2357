/**
 * Socket groups: two lines over relays that simulate a bad network publish as one encoder, while each of them dies and calls
 * anew.
 */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { GroupType } from '../../src/srt/wire/extension.ts'
import { publishAsGroup } from '../support/group-encoder.ts'
import { startService } from '../support/service.ts'
import { readPackets } from '../support/ts-reader.ts'
import { startRelay } from '../support/udp-relay.ts'
import { until } from '../support/until.ts'
import { record } from '../support/viewer.ts'

const TOKEN = randomBytes(32).toString('hex')
const VIDEO_PID = 256

/** Long enough for repairs on a busy machine. */
const LATENCY_MS = 3000

// Most of the time they wait for lines that fall silent.
t.jobs = 2

for (const [mode, type] of Object.entries(GroupType)) {
  t.test(`${mode}: what viewers get is whole, while each line dies and calls anew`, async (t) => {
    const { server, url, api } = await startService(t, { metrics: { token: TOKEN } })
    const relays = [20, 80].map((delayMs, index) => {
      const link = { loss: 0.05, delayMs }
      return startRelay({
        ...{ targetPort: server.srtPort, seed: index * 10, forward: link, backward: link },
      })
    })
    for (const relay of relays) t.teardown(() => relay.close())
    const { streamKey, playlistUrl } = await server.startStream({ streamId: 'field' })
    const watched = new AbortController()
    const recorded = record(playlistUrl, watched.signal)
    const encoder = publishAsGroup(t, {
      ...{ type, streamKey, latencyMs: LATENCY_MS },
      ports: relays.map(({ port }) => port),
    })
    const report = () => server.status('field').publisher
    const lines = () => report()?.lines ?? []
    const { sender } = encoder
    await until('both lines are up', () => lines().length === 2)
    await until('media comes', () => (report()?.packetsReceived ?? 0) > 200)

    for (const [index, relay] of relays.entries()) {
      const { socketId } = sender.lines[index]!
      relay.blackhole(Infinity)
      await until('the line is gone', () => lines().length === 1)
      relay.blackhole(0)
      await until('it is back', () => {
        const line = sender.lines[index]!
        return line.isConnected && line.socketId !== socketId && lines().length === 2
      })
      // A line that joins a broadcast group does not send what the other one lost shortly before.
      const { length } = encoder.payloads
      await until('losses are repaired', () => encoder.payloads.length > length + 200)
    }
    const headers = { authorization: `Bearer ${TOKEN}` }
    const metrics = await (await fetch(`${url}/metrics`, { headers })).text()
    t.match(metrics, /^millrace_srt_line_received_bytes_total\{stream="field",line="2"\} \d+$/m)
    encoder.pause()
    const sent = encoder.payloads.length
    await until('all has arrived, each packet once', () => report()?.packetsReceived === sent)
    t.match(report(), { packetsDropped: 0, lines: [{ rttMs: Number }, { rttMs: Number }] })
    await api('stop-stream', { stream_id: 'field' })
    watched.abort()
    const { segments, failures } = await recorded
    t.strictSame(failures, [])
    t.ok(segments.size > 3)
    const video = videoOf(Buffer.concat([...segments.values()]))
    t.ok(videoOf(Buffer.concat(encoder.payloads)).includes(video), 'the video is as it was sent')
  })
}

function videoOf(bytes: Buffer): Buffer {
  const packets = readPackets(bytes).filter(({ pid }) => pid === VIDEO_PID)
  return Buffer.concat(packets.map(({ payload }) => payload))
}
