/**
 * One key holder with a valid key, whose transport streams cost more than their bytes.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseSrtUrl } from '../../../src/srt/io/srt-url.ts'
import { connect, type Caller } from '../../../src/srt/index.ts'
import { callApi } from '../../support/service.ts'
import type { Target } from '../target.ts'
import { COSTLY_STREAMS, payloadsOf } from './costly-streams.ts'

/** Datagrams leave in bursts of what became due meanwhile. */
const TICK_MS = 4
const PAYLOAD_BITS = 7 * 188 * 8
const MAX_LAG_MS = 500
const CALL_AGAIN_MS = 1000
const MAX_CONNECTIONS = 100

export interface CostlyOptions {
  readonly megabitsPerSecond: number
  /** Name of one of the costly streams. */
  readonly stream: string
  readonly streamId?: string
}

/** Publishes until the signal, and calls again when it is disconnected. */
export async function publishCostly(
  target: Target,
  signal: AbortSignal,
  { megabitsPerSecond, stream, streamId = 'costly' }: CostlyOptions,
): Promise<{ payloads: number; connections: number }> {
  const costly = COSTLY_STREAMS[stream]!()
  const figures = { payloads: 0, connections: 0 }
  while (!signal.aborted && figures.connections < MAX_CONNECTIONS) {
    const url = await startStream(target, streamId)
    const program = costly.program === undefined ? '' : `,program=${costly.program}`
    const caller = await connect({ ...parseSrtUrl(url + program), signal }).catch(() => undefined)
    if (caller !== undefined) {
      figures.connections++
      const payloads = payloadsOf(costly)
      figures.payloads += await send(caller, payloads, megabitsPerSecond, signal)
      await caller.close()
    }
    await sleep(CALL_AGAIN_MS, undefined, { signal }).catch(() => undefined)
  }
  return figures
}

/** @returns payloads sent until the connection ended, or the signal came */
async function send(
  caller: Caller,
  payloads: Iterator<Buffer>,
  megabitsPerSecond: number,
  signal: AbortSignal,
): Promise<number> {
  const perMs = (megabitsPerSecond * 1000) / PAYLOAD_BITS
  const ended = new AbortController()
  void caller.closed.then(() => ended.abort())
  const over = AbortSignal.any([signal, ended.signal])
  let sent = 0
  let next: Buffer | undefined
  let originMs = performance.now()
  while (!over.aborted) {
    const nowMs = performance.now()
    const dueMs = originMs + sent / perMs
    if (nowMs - dueMs > MAX_LAG_MS) originMs += nowMs - dueMs
    while (sent < (performance.now() - originMs) * perMs) {
      next ??= payloads.next().value as Buffer
      if (!caller.send(next)) break
      next = undefined
      sent++
    }
    await sleep(TICK_MS)
  }
  return sent
}

async function startStream(target: Target, streamId: string): Promise<string> {
  const url = `http://${target.host}:${target.httpPort}`
  const { body } = await callApi(url, 'start-stream', { stream_id: streamId }, target.hmacSecret)
  return body.data['srt_url'] as string
}
