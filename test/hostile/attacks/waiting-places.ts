/**
 * One key, and as many callers with it as the service lets wait for the busy stream.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from '../../../src/srt/index.ts'
import { signedCall } from '../../support/service.ts'
import type { Target } from '../target.ts'
import { Intruder } from './handshakes.ts'

export interface WaitingCallers {
  /** Of each /24 one address; default 3. */
  readonly networks?: number
  /** By all of them; default 3000. */
  readonly perSec?: number
  /** At most so many in all; default 60,000. */
  readonly conclusions?: number
}

const BURST_MS = 10
/** Who was held up does not make up for it: what floods the kernel's buffer says nothing of the service. */
const MAX_BURST_SEC = 0.05
const COOKIES = 64

/** Publishes a stream of its own, and calls for it again and again from elsewhere. */
export async function fillWaitingPlaces(
  target: Target,
  signal: AbortSignal,
  { networks = 3, perSec = 3000, conclusions = 60_000 }: WaitingCallers = {},
): Promise<{ sent: number }> {
  const url = `http://${target.host}:${target.httpPort}/api/start-stream`
  const { body } = await signedCall(url, 'POST', { stream_id: 'crowded' }, target.hmacSecret)
  const streamId = body.data['stream_key'] as string
  const publisher = await connect({ host: target.host, port: target.srtPort, streamId })
  const intruders = await Promise.all(
    Array.from({ length: networks }, (_, n) => Intruder.open(`127.77.${n + 1}.1`, target)),
  )
  let sent = 0
  try {
    for (const intruder of intruders) {
      for (let socketId = 1; socketId <= COOKIES; socketId++) await intruder.induce(socketId)
    }
    const startMs = performance.now()
    while (sent < conclusions && !signal.aborted) {
      publisher.send(Buffer.alloc(188, 0x47))
      const scheduled = ((performance.now() - startMs) / 1000) * perSec
      const due = Math.min(scheduled, sent + perSec * MAX_BURST_SEC, conclusions)
      while (sent < due) {
        intruders[sent % networks]!.conclude(1 + (sent % COOKIES), streamId)
        sent++
      }
      await sleep(BURST_MS)
    }
  } finally {
    for (const intruder of intruders) intruder.close()
    await publisher.close()
  }
  return { sent }
}
