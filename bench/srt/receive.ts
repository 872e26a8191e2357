/**
 * A worker that holds our listener and nothing else: no media, payloads are counted.
 *
 * @module
 */
import { createListener, type ListenerStats, type SrtConnection } from '../../src/srt/index.ts'
import { loopDelayP99Ms, selfUsage } from '../support/usage.ts'
import { answer, readTask } from '../support/worker.ts'
import type { CounterAnswers } from './receive-datagrams.ts'

export interface ReceiveTask {
  readonly passphrase?: string
}

export interface ReceiverAnswers extends CounterAnswers {
  streams(): ReceivedStream[]
  listener(): ListenerStats
}

export interface ReceivedStream {
  readonly streamId: string
  /** Payloads handed to the sink. */
  readonly packets: number
  /** Found missing, repaired or not. */
  readonly lost: number
  /** Given up. */
  readonly dropped: number
}

/** One accepted caller. */
interface Reception {
  readonly streamId: string
  packets: number
  connection?: SrtConnection
}

const receptions: Reception[] = []
const listener = await createListener({
  ...((await readTask()) as ReceiveTask),
  host: '127.0.0.1',
  port: 0,
  latencyMs: 120,
  accept: async ({ streamId }) => {
    const reception: Reception = { streamId, packets: 0 }
    receptions.push(reception)
    return {
      sink: {
        open: (connection) => (reception.connection = connection),
        push: () => reception.packets++,
        gap: () => {},
        end: () => {},
      },
    }
  },
})

answer<ReceiverAnswers>({
  port: () => listener.address().port,
  report: () => ({
    usage: selfUsage(),
    packets: receptions.reduce((sum, { packets }) => sum + packets, 0),
  }),
  loopDelayP99Ms,
  streams: () =>
    receptions.map(({ streamId, packets, connection }) => {
      const stats = connection?.stats()
      const { pktRcvLossTotal: lost = 0, pktRcvDropTotal: dropped = 0 } = stats ?? {}
      return { streamId, packets, lost, dropped }
    }),
  listener: () => listener.stats(),
})
