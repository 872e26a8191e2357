/**
 * Our listener behind a bad network, and a stream to compare its output with.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createListener, type Listener, type SrtConnection } from '../../../src/srt/index.ts'
import { createRandom } from '../../support/random.ts'
import { startRelay, type RelayOptions, type UdpRelay } from '../../support/udp-relay.ts'
import { until } from '../../support/until.ts'
import { PAYLOAD_BYTES, type Call, type Publication, type Test } from './publishers.ts'

export interface Reception {
  readonly listener: Listener
  readonly relay: UdpRelay
  /** Address of the relay in front of the listener. */
  readonly call: Call
  readonly bytes: () => Buffer
  readonly gaps: () => number
  readonly connections: readonly SrtConnection[]
}

export interface ReceptionOptions extends Omit<RelayOptions, 'targetPort'> {
  readonly latencyMs: number
  /** Passphrase of callers; undefined for no encryption. */
  readonly passphrase?: string
}

/** Listener that records its input. */
export async function receive(t: Test, options: ReceptionOptions): Promise<Reception> {
  const { host = '127.0.0.1', latencyMs, passphrase } = options
  const payloads: Buffer[] = []
  const connections: SrtConnection[] = []
  let gaps = 0
  const listener = await createListener({
    host,
    port: 0,
    latencyMs: 120,
    maxLatencyMs: latencyMs,
    ...(passphrase !== undefined && { passphrase }),
    accept: async () => ({
      sink: {
        open: (connection) => connections.push(connection),
        push: (payload) => payloads.push(payload),
        gap: (lostPackets) => (gaps += lostPackets),
        end: () => {},
      },
    }),
  })
  t.teardown(() => listener.close())
  const relay = startRelay({ ...options, targetPort: listener.address().port })
  t.teardown(() => relay.close())
  return {
    listener,
    relay,
    call: { host, port: relay.port, latencyMs },
    bytes: () => Buffer.concat(payloads),
    gaps: () => gaps,
    connections,
  }
}

const PACE = { packets: 10, everyMs: 50 }

/**
 * Plays so many random payloads at 2.1 Mbit/s, and something behind them until all have arrived: a loss at the very end
 * shows to no receiver before another packet comes.
 *
 * @param mayWrite  whether a packet may follow those before: without it a busy machine, which holds one end up, makes bursts
 * @returns what was played
 */
export async function play(
  { write, ready }: Publication,
  packets: number,
  arrived: (bytes: number) => boolean,
  mayWrite: (packet: number) => boolean = () => true,
): Promise<Buffer> {
  await ready()
  const stream = createRandom(packets).bytes(packets * PAYLOAD_BYTES)
  for (let packet = 0; packet < packets; packet++) {
    await until(`room for packet ${packet}`, () => mayWrite(packet))
    write(stream.subarray(packet * PAYLOAD_BYTES, (packet + 1) * PAYLOAD_BYTES))
    if (packet % PACE.packets === 0) await sleep(PACE.everyMs)
  }
  const padding = Buffer.alloc(PAYLOAD_BYTES, 0xff)
  const complete = () => {
    write(padding)
    return arrived(stream.length)
  }
  await until(`${stream.length} bytes`, complete, { everyMs: 50 })
  return stream
}

/** @returns empty where `received` begins with all of the stream, and else which of its packets are not where they belong */
export function difference(received: Buffer, stream: Buffer): string {
  if (received.subarray(0, stream.length).equals(stream)) return ''
  const packets = stream.length / PAYLOAD_BYTES
  const missing = Array.from({ length: packets }, (_, packet) => packet).filter(
    (packet) =>
      !received.includes(stream.subarray(packet * PAYLOAD_BYTES, (packet + 1) * PAYLOAD_BYTES)),
  )
  return missing.length > 0 ? `without packets ${missing.join(', ')} of ${packets}` : 'out of order'
}
