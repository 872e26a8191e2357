/**
 * A worker full of our callers. They send one payload over and over, in turns and evenly in time, for the least CPU.
 *
 * @module
 */
import { connect, type Caller } from '../../src/srt/index.ts'
import { pace } from '../support/pace.ts'
import { answer, readTask } from '../support/worker.ts'
import { PAYLOAD_BYTES } from '../srt-loss/stream.ts'

export interface SendTask {
  readonly calls: readonly { readonly port: number; readonly streamId: string }[]
  /** Each. */
  readonly packetsPerSec: number
  /** Encrypts with AES-256. */
  readonly passphrase?: string
}

/** A report for each call. */
export interface SenderAnswers {
  report(): SentReport[]
  /** Stops, and answers when the receivers have everything. */
  finish(): Promise<SentReport[]>
}

export interface SentReport {
  /** Without retransmissions. */
  readonly packets: number
  readonly retransmissions: number
  /** Given up: too late. */
  readonly dropped: number
}

/** Encoders of the world do not start together: one begins after the other within this time. */
const SPREAD_MS = 3000

const { calls, packetsPerSec, passphrase } = (await readTask()) as SendTask
const callers: Caller[] = []
for (const call of calls) {
  const encryption = passphrase === undefined ? {} : { passphrase, keyLengthBytes: 32 as const }
  const caller = await connect({ host: '127.0.0.1', ...call, ...encryption })
  callers.push(caller)
  void endsWithUs(caller)
}

const payload = Buffer.alloc(PAYLOAD_BYTES, 0xff)
const startMs = performance.now()
const send = (number: number) => {
  const index = number % callers.length
  if (performance.now() - startMs < (index * SPREAD_MS) / callers.length) return
  if (!callers[index]!.send(payload)) throw new Error('a payload was not taken')
}
let streaming = true
const sending = pace(packetsPerSec * callers.length, send, () => streaming)

async function endsWithUs({ closed }: Caller): Promise<void> {
  const reason = await closed
  if (reason !== 'closed') throw new Error(`a connection ended: ${reason}`)
}

function report(): SentReport[] {
  return callers.map((caller) => {
    const { pktSentTotal, pktRetransTotal, pktSndDropTotal } = caller.stats()
    return {
      packets: pktSentTotal - pktRetransTotal,
      retransmissions: pktRetransTotal,
      dropped: pktSndDropTotal,
    }
  })
}

answer<SenderAnswers>({
  report,
  finish: async () => {
    streaming = false
    await sending
    await Promise.all(callers.map((caller) => caller.close()))
    return report()
  },
})
