/**
 * Status and log about an encoder's connection over a relay that simulates a bad network.
 */
import { statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { addToSequence } from '../../src/srt/wire/counters.ts'
import { publishDemo } from '../support/demo-encoder.ts'
import { isControl, isRetransmitted, sequenceNumber } from '../../src/srt/wire/packet.ts'
import { startService } from '../support/service.ts'
import { startRelay, type Direction, type RelayOptions } from '../support/udp-relay.ts'
import { until } from '../support/until.ts'

/** Clip of 8 s. */
const CLIP = fileURLToPath(new URL('../../fixtures/demo.mpegts', import.meta.url))
const CLIP_BYTES = statSync(CLIP).size

interface LogLine {
  readonly code?: string
  readonly msg: string
}

/** Stream whose encoders connect through a relay. */
async function openStudio(
  t: Test,
  link: Omit<RelayOptions, 'targetPort'>,
  { encryption = false } = {},
) {
  const lines: string[] = []
  const logger = pino({}, { write: (line: string) => void lines.push(line) })
  const service = await startService(t, { logger })
  const relay = startRelay({ ...link, targetPort: service.server.srtPort })
  t.teardown(() => relay.close())
  const reply = await service.api('start-stream', { stream_id: 'studio', encryption })
  const srtUrl = String(reply.body.data['srt_url'])
  const status = async () =>
    (await service.api('status', { stream_id: 'studio' })).body.data as {
      publisher: Record<string, number> | null
      warnings: { code: string; message: string }[]
    }
  return {
    relay,
    status,
    url: srtUrl.replace(`:${service.server.srtPort}?`, `:${relay.port}?`),
    warning: async (code: string) => (await status()).warnings.find((each) => each.code === code),
    /** Messages of such log lines. */
    logged: (code: string) =>
      lines
        .map((line) => JSON.parse(line) as LogLine)
        .filter((line) => line.code === code)
        .map(({ msg }) => msg),
  }
}

// At the same time: they wait for real time, not for the CPU.
t.test('the connection of an encoder', { jobs: 4 }, async (t) => {
  t.test(
    'warns of 120 ms latency at a round trip of 100 ms, and advises a sufficient one',
    async (t) => {
      const delay = { delayMs: 50 }
      const studio = await openStudio(t, { forward: delay, backward: delay })
      const logged = () => studio.logged('LATENCY_TOO_LOW')
      let latencyMs = 120
      /** Time that four round trips took at the warning before. */
      let toldMs = 0
      for (let connections = 1; ; connections++) {
        const encoder = publishDemo(t, `${studio.url}&latency=${latencyMs}`)
        const isAdvised = connections > 1
        await until(`a warning${isAdvised ? ', or 8 s of media' : ''}`, async () => {
          const { publisher } = await studio.status()
          const isJudged = isAdvised && (publisher?.['bytes_received'] ?? 0) > CLIP_BYTES
          return isJudged || logged().length === connections
        })
        const message = logged()[connections - 1]
        if (message === undefined) break
        t.comment(message)
        const [, neededMs, advisedMs] =
          /take (\d+)\. .* SRT_LATENCY_MS=(\d+)\.$/.exec(message) ?? []
        t.ok(Number(neededMs) >= 400, 'the relay holds each datagram for 50 ms at least')
        t.ok(Number(neededMs) > latencyMs, 'four round trips take longer')
        // After the advice was followed, only a machine that has become slower is a reason to warn again.
        if (!t.ok(Number(neededMs) > toldMs, 'longer than the warning before has told')) return
        toldMs = Number(neededMs)
        t.match(message, `Latency is ${latencyMs} ms, 4 round trips take ${neededMs}. `)
        t.match(message, `Set latency=${advisedMs}000 (ffmpeg, OBS: microseconds)`)
        if (!isAdvised) t.ok(await studio.warning('LATENCY_TOO_LOW'), 'the status has it too')
        encoder.stop()
        await encoder.end
        await until(
          'its end with the encoder',
          async () => !(await studio.warning('LATENCY_TOO_LOW')),
        )
        t.equal(logged().length, connections, 'the log says it once')
        latencyMs = Number(advisedMs)
      }
      t.match((await studio.status()).publisher, { latency_ms: latencyMs, rtt_ms: Number })
      t.equal(await studio.warning('LATENCY_TOO_LOW'), undefined)
    },
  )

  t.test("warns of a line that fails for longer than the encoder's send buffer", async (t) => {
    const studio = await openStudio(t, {})
    // Enough for the round trips of a busy machine, which would explain the losses.
    publishDemo(t, `${studio.url}&latency=2500`)
    await until('packets', async () => (await studio.status()).publisher?.['packets_received'])
    studio.relay.blackhole(4500)
    const { message } = await until('the warning', () => studio.warning('LOSSES_NOT_REPAIRED'))
    t.comment(message)
    t.match(message, / % not repaired \(latency 2500 ms, RTT \d+ ms\)\. /)
    const { publisher } = await studio.status()
    t.ok(publisher!['packets_dropped']! > 0)
    await until('its end', async () => !(await studio.warning('LOSSES_NOT_REPAIRED')))
    t.equal(studio.logged('LOSSES_NOT_REPAIRED').length, 1)
  })

  t.test('warns of packets with a key that never arrived', async (t) => {
    const studio = await openStudio(t, { alter: nameTheNextKey }, { encryption: true })
    publishDemo(t, studio.url)
    const { message } = await until('the warning', () => studio.warning('PACKETS_UNDECRYPTABLE'))
    t.comment(message)
    t.match(message, /^\d+ packets in 10 s could not be decrypted\. /)
    t.equal(studio.logged('PACKETS_UNDECRYPTABLE').length, 1)
  })

  t.test('warns of packets beyond the receive window', async (t) => {
    const studio = await openStudio(t, { alter: outrunWindow() })
    publishDemo(t, studio.url)
    const { message } = await until('the warning', () => studio.warning('WINDOW_OVERFLOW'))
    t.comment(message)
    t.match(message, /^\d+ packets in 10 s outran a missing one /)
    t.equal(studio.logged('WINDOW_OVERFLOW').length, 1)
  })
})

/** Data packets name the odd key (KK, draft-sharabayko-srt 3.1), which the encoder has not announced. */
function nameTheNextKey(direction: Direction, datagram: Buffer): boolean {
  if (direction === 'forward' && !isControl(datagram)) {
    datagram[4] = (datagram[4]! & ~0b11000) | 0b10000
  }
  return true
}

/** Encoder that ignores the flow window: it never sends one packet of 50, but others far ahead of it. */
function outrunWindow(): NonNullable<RelayOptions['alter']> {
  return (direction, datagram) => {
    if (direction === 'backward' || isControl(datagram)) return true
    const sequence = sequenceNumber(datagram)
    if (sequence % 50 === 2 && !isRetransmitted(datagram)) {
      datagram.writeInt32BE(addToSequence(sequence, 100_000), 0)
    }
    return sequence % 50 !== 0
  }
}
