import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { systemClock, type Clock } from '../../../src/timing/clock.ts'
import { RejectCode } from '../../../src/srt/wire/reject-code.ts'
import { publish, type PublishOptions } from '../../../src/cli/publisher/publisher.ts'
import { createListener, type AcceptDecision, type SrtConnection } from '../../../src/srt/index.ts'
import { startRelay } from '../../support/udp-relay.ts'
import { until } from '../../support/until.ts'

const DEMO = new URL('../../../fixtures/demo.mpegts', import.meta.url)
const demo = await readFile(DEMO)
/** The first second or so: whole packets. */
const CLIP = demo.subarray(0, 188 * 500)

/** Eight times as fast as the real one, so that a clip of 8 s is published in one. */
const HASTY: Clock = {
  nowUs: () => performance.now() * 8000,
  wallMs: () => Date.now(),
}

interface Test {
  teardown(close: () => unknown): unknown
}

interface Station {
  readonly port: number
  readonly url: string
  /** Payload bytes of all connections, in order. */
  bytes(): Buffer
  readonly streamIds: string[]
  readonly connections: SrtConnection[]
  readonly ends: string[]
  /** Lost packets of each gap. */
  readonly gaps: number[]
}

/** A listener that keeps what it gets; `decide` may refuse the n-th caller, counted from 1. */
async function openStation(
  t: Test,
  decide?: (caller: number) => number | undefined,
): Promise<Station> {
  const payloads: Buffer[] = []
  const streamIds: string[] = []
  const connections: SrtConnection[] = []
  const ends: string[] = []
  const gaps: number[] = []
  const listener = await createListener({
    host: '127.0.0.1',
    port: 0,
    latencyMs: 120,
    accept: async ({ streamId }): Promise<AcceptDecision> => {
      streamIds.push(streamId)
      const reject = decide?.(streamIds.length)
      if (reject !== undefined) return { reject }
      return {
        sink: {
          open: (connection) => connections.push(connection),
          push: (payload) => payloads.push(payload),
          gap: (lostPackets) => gaps.push(lostPackets),
          end: (reason) => ends.push(reason),
        },
      }
    },
  })
  t.teardown(() => listener.close())
  const { port } = listener.address()
  return {
    port,
    url: `srt://127.0.0.1:${port}?streamid=mode=publish,rid=demo,token=hushhush&latency=200`,
    bytes: () => Buffer.concat(payloads),
    streamIds,
    connections,
    ends,
    gaps,
  }
}

async function bindUdp(): Promise<Socket> {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return socket
}

/** Publishes until the end or the test's. */
function launch(t: Test, options: PublishOptions) {
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const events: string[] = []
  const done = publish({
    clock: HASTY,
    signal: stop.signal,
    onEvent: (sentence) => events.push(sentence),
    ...options,
  })
  // Awaited later; until then Node must not report an unhandled rejection.
  done.catch(() => undefined)
  return { done, events, stop: () => stop.abort() }
}

t.test('a file arrives complete and in order, then SHUTDOWN', async (t) => {
  const station = await openStation(t)
  const { done, events } = launch(t, { file: DEMO, url: station.url })
  const report = await done
  await until('the end', () => station.ends.length === 1)
  t.ok(station.bytes().equals(demo))
  t.same(station.ends, ['shutdown'])
  t.same(station.streamIds, ['mode=publish,rid=demo,token=hushhush'])
  t.match(report, { connections: 1, datagrams: Math.ceil(demo.length / 1316), dropped: 0 })
  t.same(events, [`publishing to 127.0.0.1:${station.port}`])
})

t.test('publishing takes as long as the clip lasts', async (t) => {
  const station = await openStation(t)
  let nowUs = 0
  // A clock that only advances when it is read: 8 s of media take at least 8 s of it.
  const clock: Clock = { nowUs: () => (nowUs += 20_000), wallMs: () => 0 }
  await launch(t, { file: demo, url: station.url, clock }).done
  t.ok(nowUs > 7.8e6, `${nowUs / 1e6} s on its clock`)
})

t.test('a loop continues until the signal, which closes the connection', async (t) => {
  const station = await openStation(t)
  const { done, stop } = launch(t, { file: CLIP, url: station.url, loop: true })
  await until('two passes', () => station.bytes().length > 2 * CLIP.length)
  stop()
  await done
  await until('the end', () => station.ends.length === 1)
  t.same(station.ends, ['shutdown'])
  t.ok(station.bytes().subarray(0, CLIP.length).equals(CLIP))
  t.equal(station.bytes().length % 188, 0)
})

t.test('a rejection of the first call is final and has its code', async (t) => {
  const station = await openStation(t, () => RejectCode.BADSECRET)
  const { done } = launch(t, { file: CLIP, url: station.url })
  await t.rejects(done, { name: 'MillraceError', code: 'SRT_REJECTED', message: /1010/ })
  t.equal(station.streamIds.length, 1)
  await done.catch((error: Error) => t.notMatch(error.message, /hushhush/))
})

t.test('a rejected call is repeated with `retry`', async (t) => {
  const station = await openStation(t, (caller) => (caller === 1 ? RejectCode.CONFLICT : undefined))
  const { done, events } = launch(t, { file: CLIP, url: station.url, retry: true })
  await done
  await until('everything', () => station.bytes().equals(CLIP))
  t.equal(station.streamIds.length, 2)
  t.match(events, [/2409.*again in 1 s/, /publishing to/])
})

t.test('calls again after a lost connection, and continues the file', async (t) => {
  const station = await openStation(t)
  const { done, events } = launch(t, { file: CLIP, url: station.url, loop: true })
  await until('some packets', () => station.bytes().length > 188 * 100)
  const before = station.bytes().length
  station.connections[0]!.close()
  await until('a second connection', () => station.connections.length === 2)
  await until('more packets', () => station.bytes().length > before + CLIP.length)
  t.match(events, [/publishing/, /lost \(shutdown\); calling again in 1 s/, /publishing/])
  t.notMatch(events.join(), /hushhush/)
  void done
})

t.test('calls again where the listener rejects after a lost connection', async (t) => {
  const station = await openStation(t, (caller) => (caller === 2 ? RejectCode.CLOSE : undefined))
  const { events } = launch(t, { file: CLIP, url: station.url, loop: true })
  await until('a connection', () => station.connections.length === 1)
  station.connections[0]!.close()
  await until('a second connection', () => station.connections.length === 2)
  // The listener is connected before the caller has its answer.
  await until('the news of it', () => events.length === 4)
  t.match(events, [/publishing/, /again in 1 s/, /1007 \(CLOSE\); .* again in 2 s/, /publishing/])
})

t.test('stops after two minutes of rejections following a lost connection', async (t) => {
  const station = await openStation(t, (caller) => (caller > 1 ? RejectCode.BADSECRET : undefined))
  let aheadUs = 0
  const clock: Clock = { ...HASTY, nowUs: () => HASTY.nowUs() + aheadUs }
  const { done, events } = launch(t, { file: CLIP, url: station.url, loop: true, clock })
  await until('a connection', () => station.connections.length === 1)
  station.connections[0]!.close()
  await until('a loss', () => events.length === 2)
  aheadUs = 120_000_000
  await t.rejects(done, { code: 'SRT_REJECTED', message: /1010/ })
  t.equal(station.streamIds.length, 2)
})

t.test('throws where nothing listens, and stops calling on the signal', async (t) => {
  const mute = await bindUdp()
  t.teardown(() => mute.close())
  const silent = `srt://127.0.0.1:${mute.address().port}`
  await t.rejects(launch(t, { file: CLIP, url: silent }).done, {
    code: 'SRT_TIMEOUT',
    message: /127\.0\.0\.1/,
  })
  const { done, stop } = launch(t, { file: CLIP, url: silent, retry: true })
  stop()
  t.match(await done, { connections: 0, datagrams: 0 })
})

t.test('an invalid file throws before the first call', async (t) => {
  const station = await openStation(t)
  const folder = await mkdtemp(join(tmpdir(), 'millrace-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const text = join(folder, 'notes.txt')
  await writeFile(text, 'no transport stream '.repeat(100_000))
  const wrong = [
    { file: join(folder, 'absent.mpegts'), message: /cannot be read: ENOENT/ },
    { file: folder, message: /cannot be read: EISDIR/ },
    { file: text, message: /no MPEG transport stream: no packets in its first \d+ bytes/ },
    { file: Buffer.alloc(0), message: /no packets in its first 0 bytes/ },
  ]
  for (const { file, message } of wrong) {
    for (const loop of [false, true]) {
      await t.rejects(launch(t, { file, url: station.url, loop }).done, {
        code: 'MEDIA_INVALID',
        message,
      })
    }
  }
  t.equal(station.streamIds.length, 0)
})

t.test('every byte arrives in order through a bad network', async (t) => {
  const station = await openStation(t)
  const link = { loss: 0.1, delayMs: 50, reorder: 0.02, duplicate: 0.01 }
  const relay = startRelay({
    targetPort: station.port,
    seed: 10,
    forward: link,
    backward: link,
  })
  t.teardown(() => relay.close())
  // Room for 25 attempts to repair a loss, each of which fails with a probability of 0.19.
  const url = `srt://127.0.0.1:${relay.port}?streamid=x&latency=3000`
  // Retransmissions take real time, so the clip does too.
  await launch(t, { file: demo.subarray(0, 188 * 2000), url, clock: systemClock }).done
  await until('the end', () => station.ends.length === 1)
  t.ok(station.bytes().equals(demo.subarray(0, 188 * 2000)))
  t.same(station.gaps, [])
  t.ok(relay.counters('forward').lost > 20, 'although many datagrams were lost')
})
