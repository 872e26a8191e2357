/**
 * One stream through a bad network, from each sender to each receiver: what never arrives, and what the repairs cost.
 *
 *   sender ─► relay (seeded loss, delay, jitter) ─► receiver ─► tally
 *
 * @module
 */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { ControlType, controlType, isControl, isRetransmitted } from '../../src/srt/wire/packet.ts'
import { freePort } from '../../test/support/free-port.ts'
import type { LinkOptions } from '../../test/support/impairment.ts'
import { startRelay, type Direction } from '../../test/support/udp-relay.ts'
import { stopProgram } from '../support/programs.ts'
import { RECEIVERS, SENDERS, type PeerName } from './peers.ts'
import { payloadOf, PAYLOAD_BYTES, Tally } from './stream.ts'

export interface Scenario {
  readonly name: string
  readonly latencyMs: number
  /** In both directions. */
  readonly link: LinkOptions
}

/** RTT 100 ms. */
const DELAY_MS = 50

export const SCENARIOS: readonly Scenario[] = [
  { name: '5 % loss', latencyMs: 500, link: { loss: 0.05 } },
  { name: '10 % loss', latencyMs: 800, link: { loss: 0.1 } },
  // 5 % in all, in bursts of 5 packets on average.
  {
    name: '5 % loss in bursts of 5',
    latencyMs: 500,
    link: { burst: { enter: 0.0105, leave: 0.2 } },
  },
  {
    name: '20 ms jitter, 1 % reordering',
    latencyMs: 500,
    link: { jitterMs: 20, reorder: 0.01, reorderMs: 10 },
  },
]

export interface LossLoad {
  readonly bitsPerSecond: number
  readonly seconds: number
  readonly seed: number
}

export interface LossResult {
  readonly sender: PeerName
  readonly receiver: PeerName
  readonly sent: number
  /** Data packets that the network lost, retransmissions among them. */
  readonly lostOnTheWay: number
  /** Payloads that the receiver never handed on. */
  readonly lost: number
  readonly retransmissions: number
  readonly naks: number
  /** Datagrams of the receiver. */
  readonly feedback: number
}

const NAMES = ['millrace', 'srt-live-transmit'] as const

/** Each sender to each receiver, all at the same time. */
export function measureScenario(scenario: Scenario, load: LossLoad): Promise<LossResult[]> {
  const pairs = NAMES.flatMap((sender) => NAMES.map((receiver) => ({ sender, receiver })))
  return Promise.all(pairs.map((pair) => measure(scenario, load, pair)))
}

async function measure(
  { latencyMs, link }: Scenario,
  load: LossLoad,
  { sender, receiver }: { readonly sender: PeerName; readonly receiver: PeerName },
): Promise<LossResult> {
  const packetsPerSec = load.bitsPerSecond / 8 / PAYLOAD_BYTES
  const sent = Math.round(packetsPerSec * load.seconds)
  const tally = new Tally(sent)
  const seen = { retransmissions: 0, naks: 0, feedback: 0 }
  const tap = (direction: Direction, datagram: Buffer) => {
    if (direction === 'backward') {
      seen.feedback++
      if (isControl(datagram) && controlType(datagram) === ControlType.NAK) seen.naks++
    } else if (!isControl(datagram) && isRetransmitted(datagram)) seen.retransmissions++
  }
  const port = await freePort()
  const receiving = RECEIVERS[receiver](port, latencyMs)
  receiving.stdout!.on('data', (chunk: Buffer) => tally.push(chunk))
  // It does not say when it listens.
  await sleep(1000)
  const oneWay = { delayMs: DELAY_MS, sparesHandshakes: true, ...link }
  const relay = startRelay({
    targetPort: port,
    seed: load.seed,
    forward: oneWay,
    backward: oneWay,
    tap,
  })
  const sending = SENDERS[sender](relay.port, latencyMs)
  try {
    await connected(sending.stderr!)
    const stdin = sending.stdin!
    stdin.on('error', () => undefined)
    await pace(packetsPerSec, sent, (number) => void stdin.write(payloadOf(number)))
    const { lost, lostInBurst } = relay.counters('forward')
    const result = { sent, lostOnTheWay: lost + lostInBurst, ...seen }
    // A loss of the last packets shows when others follow.
    const seconds = latencyMs / 1000 + 1
    await pace(
      packetsPerSec,
      packetsPerSec * seconds,
      (number) => void stdin.write(payloadOf(sent + number)),
    )
    return { sender, receiver, ...result, lost: tally.lost }
  } finally {
    await Promise.all([stopProgram(sending, 'SIGKILL'), stopProgram(receiving, 'SIGKILL')])
    await relay.close()
  }
}

async function connected(stderr: NodeJS.ReadableStream): Promise<void> {
  let said = ''
  const signal = AbortSignal.timeout(20_000)
  while (!said.includes('connected')) {
    const [chunk] = (await once(stderr, 'data', { signal })) as [Buffer]
    said += chunk.toString()
  }
  stderr.resume()
}

/** Calls `act` with 0, 1, 2 … evenly in time; a pause of the process is made up for. */
async function pace(perSecond: number, count: number, act: (number: number) => void) {
  const startMs = performance.now()
  for (let number = 0; number < count;) {
    const due = Math.min(count, ((performance.now() - startMs) / 1000) * perSecond)
    while (number < due) act(number++)
    await sleep(2)
  }
}
