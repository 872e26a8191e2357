/**
 * Those who stream while the port is flooded.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { SenderAnswers, SendTask } from '../srt/send.ts'
import { startSender } from '../srt-loss/peers.ts'
import { PAYLOAD_BYTES, payloadOf } from '../srt-loss/stream.ts'
import { pace } from '../support/pace.ts'
import { stopProgram } from '../support/programs.ts'
import { startWorker } from '../support/worker.ts'

const LATENCY_MS = 120

export interface Publisher {
  readonly name: string
  readonly streamId: string
  /** Stops. Answers, when the listener has everything or has given it up, how much was sent; NaN where that is not known. */
  finish(): Promise<number>
  stop(): Promise<void>
}

/** A process with one of our callers. */
export async function startOurs(
  port: number,
  bitsPerSecond: number,
  streamId: string,
): Promise<Publisher> {
  const worker = await startWorker<SenderAnswers>(new URL('../srt/send.js', import.meta.url), {
    calls: [{ port, streamId }],
    packetsPerSec: bitsPerSecond / 8 / PAYLOAD_BYTES,
  } satisfies SendTask)
  return {
    name: 'millrace',
    streamId,
    finish: async () => (await worker.ask('finish')).reduce((sum, { packets }) => sum + packets, 0),
    stop: () => worker.stop(),
  }
}

/** srt-live-transmit, on a standard input that is written in time. */
export async function startLibsrt(port: number, bitsPerSecond: number): Promise<Publisher> {
  const child = await startSender('srt-live-transmit', port, LATENCY_MS)
  let streaming = true
  const write = (number: number) => void child.stdin!.write(payloadOf(number))
  const writing = pace(bitsPerSecond / 8 / PAYLOAD_BYTES, write, () => streaming)
  return {
    name: 'srt-live-transmit',
    // It was told none.
    streamId: '',
    finish: async () => {
      streaming = false
      await writing
      await sleep(LATENCY_MS)
      // The last it read stays in a buffer of its own until more comes.
      return NaN
    },
    stop: () => stopProgram(child, 'SIGKILL'),
  }
}
