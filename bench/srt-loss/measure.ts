/**
 * One stream through a bad network, from one sender to each receiver: what never arrives, and what the repairs cost.
 *
 *   payloads ─► sender ─► relay (seeded loss, delay, jitter) ─► receiver ─► tally
 *
 * @module
 */
import { ControlType, controlType, isControl, isRetransmitted } from '../../src/srt/wire/packet.ts'
import { freePort } from '../../test/support/free-port.ts'
import type { LinkOptions } from '../../test/support/impairment.ts'
import { startRelay, type Direction } from '../../test/support/udp-relay.ts'
import { pace } from '../support/pace.ts'
import { stopProgram } from '../support/programs.ts'
import { PEERS, startReceiver, startSender, type PeerName } from './peers.ts'
import { payloadOf, PAYLOAD_BYTES, Tally } from './stream.ts'

export interface Network {
  readonly name: string
  readonly title: string
  readonly latencyMs: number
  /** In both directions. */
  readonly link: LinkOptions
}

/** RTT 100 ms. */
const DELAY_MS = 50

export const NETWORKS: readonly Network[] = [
  { name: 'loss-5', title: '5 % loss', latencyMs: 500, link: { loss: 0.05 } },
  { name: 'loss-10', title: '10 % loss', latencyMs: 800, link: { loss: 0.1 } },
  {
    name: 'bursts',
    title: '5 % loss in bursts of 5',
    latencyMs: 500,
    // Bad for 5 datagrams on average, every 95 or so.
    link: { burst: { enter: 0.0105, leave: 0.2 } },
  },
  {
    name: 'jitter',
    title: '20 ms jitter, 1 % reordering',
    latencyMs: 500,
    link: { jitterMs: 20, reorder: 0.01, reorderMs: 10 },
  },
]

export interface LossLoad {
  readonly sender: PeerName
  readonly bitsPerSecond: number
  readonly seconds: number
  readonly seed: number
}

export interface LossResult {
  readonly receiver: PeerName
  readonly sent: number
  /** Datagrams to the receiver that the network lost, retransmissions and control packets among them. */
  readonly lostOnTheWay: number
  /** Payloads that the receiver never handed on. */
  readonly lost: number
  readonly retransmissions: number
  readonly naks: number
  /** Datagrams of the receiver. */
  readonly feedback: number
}

/** The same payloads to both receivers, at the same time, each through a relay with the same seed. */
export function measureLoss(network: Network, load: LossLoad): Promise<LossResult[]> {
  return Promise.all(PEERS.map((receiver) => measure(network, load, receiver)))
}

async function measure(
  { latencyMs, link }: Network,
  load: LossLoad,
  receiver: PeerName,
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
  const receiving = await startReceiver(receiver, port, latencyMs)
  receiving.stdout!.on('data', (chunk: Buffer) => tally.push(chunk))
  const oneWay = { delayMs: DELAY_MS, sparesHandshakes: true, ...link }
  const relay = startRelay({
    targetPort: port,
    seed: load.seed,
    forward: oneWay,
    backward: oneWay,
    tap,
  })
  const sending = await startSender(load.sender, relay.port, latencyMs)
  const write = (number: number) => void sending.stdin!.write(payloadOf(number))
  try {
    await pace(packetsPerSec, write, (number) => number < sent)
    const { lost, lostInBurst } = relay.counters('forward')
    const result = { receiver, sent, lostOnTheWay: lost + lostInBurst, ...seen }
    // A loss of the last packets shows when others follow.
    const more = packetsPerSec * (latencyMs / 1000 + 1)
    await pace(
      packetsPerSec,
      (number) => write(sent + number),
      (number) => number < more,
    )
    return { ...result, lost: tally.lost }
  } finally {
    await Promise.all([stopProgram(sending, 'SIGKILL'), stopProgram(receiving, 'SIGKILL')])
    await relay.close()
  }
}
