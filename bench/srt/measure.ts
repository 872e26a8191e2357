/**
 * What it costs to receive N streams over SRT and do nothing with them: our listener, a bare socket below it, and
 * srt-live-transmit beside it.
 *
 *   senders (processes of our callers) ─► receiver (one process, or one a stream)
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { PAYLOAD_BYTES } from '../srt-loss/stream.ts'
import { freePorts } from '../../test/support/free-port.ts'
import { isInstalled, startProgram, stopProgram } from '../support/programs.ts'
import { kernelDrops, machineCpuSec, usageOf, type Usage } from '../support/usage.ts'
import { startWorker, startWorkers, type Workers } from '../support/worker.ts'
import type { ReceiverAnswers, ReceiveTask } from './receive.ts'
import type { CounterAnswers } from './receive-datagrams.ts'
import type { SenderAnswers, SendTask, SentReport } from './send.ts'

const PASSPHRASE = 'correct-horse-battery-staple'

/** Until all senders have begun, and the code is optimized. */
const WARM_UP_MS = 6000

/** Behind the time that counts for CPU. */
const LOOP_DELAY_MS = 5000

/** Processes of srt-live-transmit that this bench starts at most. */
const MAX_PEERS = 100

export const RECEIVERS = ['dgram', 'millrace', 'srt-live-transmit'] as const

export type ReceiverName = (typeof RECEIVERS)[number]

export interface SrtLoad {
  readonly connections: number
  /** Each. */
  readonly bitsPerSecond: number
  readonly encrypted: boolean
  readonly seconds: number
  /** Processes that share the connections. */
  readonly senders: number
}

export interface SrtResult {
  readonly receiver: ReceiverName
  readonly load: SrtLoad
  readonly packetsPerSec: number
  readonly cpuUsPerPacket: number
  /** 1 is one core. */
  readonly cpuLoad: number
  readonly senderCpuLoad: number
  /** Of everything else on the machine, this bench's own process included: what is short of cores loses packets. */
  readonly otherCpuLoad: number
  /** From the first packet to the last, warm-up and all; without retransmissions. */
  readonly sent: number
  /** NaN where the receiver does not tell. */
  readonly received: number
  readonly retransmissions: number
  /** Given up by the senders: too late. */
  readonly senderDropped: number
  readonly kernelDrops: number
  /** NaN where the receiver is not Node. */
  readonly loopDelayP99Ms: number
  readonly rssBytes: number
}

/** Whether this receiver takes this load, on this machine. */
export function canReceive(name: ReceiverName, { connections, encrypted }: SrtLoad): boolean {
  if (name === 'srt-live-transmit') return connections <= MAX_PEERS && isInstalled(name)
  return name === 'millrace' || !encrypted
}

/** Something that receives. */
interface Receiver {
  /** One for all streams, or one each. */
  readonly ports: readonly number[]
  report(): Promise<{ readonly usage: Usage; readonly packets: number }>
  loopDelayP99Ms(): Promise<number>
  stop(): Promise<void>
}

export async function measureSrt(name: ReceiverName, load: SrtLoad): Promise<SrtResult> {
  const receiver = await startReceiver(name, load)
  const senders = await startSenders(name, receiver.ports, load)
  try {
    await Promise.race([sleep(WARM_UP_MS), senders.failure])
    const before = await snapshot(receiver, senders)
    await Promise.race([sleep(load.seconds * 1000), senders.failure])
    const after = await snapshot(receiver, senders)
    const loopDelayP99Ms = await receiver.loopDelayP99Ms()
    const total = sumOf(await senders.ask('finish'))
    const { packets: received } = await receiver.report()
    const packets = after.sent.packets - before.sent.packets
    const elapsedSec = (after.timeMs - before.timeMs) / 1000
    const cpuSec = after.usage.cpuSec - before.usage.cpuSec
    const senderCpuSec = after.senderUsage.cpuSec - before.senderUsage.cpuSec
    const machineSec = after.machineSec - before.machineSec
    return {
      receiver: name,
      load,
      packetsPerSec: packets / elapsedSec,
      cpuUsPerPacket: (cpuSec / packets) * 1e6,
      cpuLoad: cpuSec / elapsedSec,
      senderCpuLoad: senderCpuSec / elapsedSec,
      otherCpuLoad: Math.max(0, machineSec - cpuSec - senderCpuSec) / elapsedSec,
      sent: total.packets,
      received,
      retransmissions: total.retransmissions,
      senderDropped: total.dropped,
      kernelDrops: kernelDrops(receiver.ports),
      loopDelayP99Ms,
      rssBytes: after.usage.rssBytes,
    }
  } finally {
    await senders.stop()
    await receiver.stop()
  }
}

async function snapshot(receiver: Receiver, senders: Workers<SenderAnswers>) {
  const [{ usage }, sent] = await Promise.all([receiver.report(), senders.ask('report')])
  return {
    timeMs: performance.now(),
    usage,
    sent: sumOf(sent),
    senderUsage: usageOf(senders.pids),
    machineSec: machineCpuSec(),
  }
}

function startReceiver(name: ReceiverName, load: SrtLoad): Promise<Receiver> {
  return name === 'srt-live-transmit' ? startPeers(load) : startOurs(name, load)
}

async function startOurs(name: 'dgram' | 'millrace', { encrypted }: SrtLoad): Promise<Receiver> {
  const task: ReceiveTask = encrypted ? { passphrase: PASSPHRASE } : {}
  const worker =
    name === 'dgram'
      ? await startWorker<CounterAnswers>(new URL('receive-datagrams.js', import.meta.url), task)
      : await startWorker<ReceiverAnswers>(new URL('receive.js', import.meta.url), task)
  return {
    ports: [await worker.ask('port')],
    report: () => worker.ask('report'),
    loopDelayP99Ms: () => worker.ask('loopDelayP99Ms', LOOP_DELAY_MS),
    stop: () => worker.stop(),
  }
}

/** One process a stream, as this program is run. */
async function startPeers({ connections, encrypted }: SrtLoad): Promise<Receiver> {
  const ports = await freePorts(connections)
  const secret = encrypted ? `&passphrase=${PASSPHRASE}` : ''
  const programs = ports.map((port) =>
    startProgram('srt-live-transmit', [
      ...['-quiet', '-a:no', `srt://127.0.0.1:${port}?mode=listener${secret}`, 'file://con'],
    ]),
  )
  // They do not say when they listen.
  await sleep(1000)
  return {
    ports,
    report: async () => ({ usage: usageOf(programs.map(({ pid }) => pid!)), packets: NaN }),
    loopDelayP99Ms: async () => NaN,
    stop: async () => {
      await Promise.all(programs.map((program) => stopProgram(program, 'SIGKILL')))
    },
  }
}

function startSenders(
  name: ReceiverName,
  ports: readonly number[],
  load: SrtLoad,
): Promise<Workers<SenderAnswers>> {
  const program = new URL(name === 'dgram' ? 'send-datagrams.js' : 'send.js', import.meta.url)
  const calls = Array.from({ length: load.connections }, (_, index) => ({
    port: ports[index % ports.length]!,
    streamId: `bench-${index}`,
  }))
  const count = Math.min(load.senders, load.connections)
  const tasks = Array.from({ length: count }, (_, place): SendTask => ({
    calls: calls.filter((_call, index) => index % count === place),
    packetsPerSec: load.bitsPerSecond / 8 / PAYLOAD_BYTES,
    ...(load.encrypted && { passphrase: PASSPHRASE }),
  }))
  return startWorkers(program, tasks)
}

function sumOf(reports: readonly SentReport[][]): SentReport {
  return reports.flat().reduce((sum, report) => ({
    packets: sum.packets + report.packets,
    retransmissions: sum.retransmissions + report.retransmissions,
    dropped: sum.dropped + report.dropped,
  }))
}
