/**
 * More streams than the process can read: who keeps his packets, who is refused, and how soon it recovers.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseSrtUrl } from '../../src/srt/io/srt-url.ts'
import { connect } from '../../src/srt/io/caller.ts'
import { startService, type Service } from '../support/service.ts'
import { startLibsrtSenders } from './libsrt-senders.ts'
import type { IngestLoad } from './measure.ts'

/** From the start of the publishers until those that the process cannot read are disconnected. */
const SETTLE_MS = 25_000

/** Max time for a newcomer to be admitted after the load has gone. */
const RECOVERY_MS = 30_000

/** `seconds`: duration of the measurement, after the process has settled. */
export type OverloadLoad = Pick<
  IngestLoad,
  'publishers' | 'bitsPerSecond' | 'seconds' | 'spreadMs' | 'ingestWorkers'
>

export interface OverloadResult {
  readonly publishers: number
  /** Publishers still connected after it has settled, and at the end. */
  readonly kept: number
  readonly keptAtEnd: number
  /** Publishers still connected among as many that connected first. */
  readonly keptOfFirst: number
  /** Packets of the kept streams during the measurement. */
  readonly received: number
  readonly dropped: number
  /** Code with which a newcomer was refused; 0 if it was admitted. */
  readonly refusedWith: number
  /** From the end of the load until a newcomer was admitted. */
  readonly recoverySec: number
}

export async function measureOverload(load: OverloadLoad): Promise<OverloadResult> {
  const { publishers, seconds, ingestWorkers } = load
  const service = await startService({ env: { MAX_PUBLISHERS: '1000' }, ingestWorkers })
  const ids = Array.from({ length: publishers }, (_, index) => `bench-${index}`)
  const urls: string[] = []
  for (const id of ids) urls.push(await service.start(id))
  const newcomer = await service.start('newcomer')
  const senders = await startLibsrtSenders(urls, {
    ...load,
    sender: 'libsrt',
    senders: 1,
    seconds: seconds + SETTLE_MS / 1000 + 30,
    mayBreak: true,
  })
  try {
    await sleep(SETTLE_MS)
    const before = await readPublishers(service, ids)
    await sleep(seconds * 1000)
    const refusedWith = await call(newcomer)
    const after = await readPublishers(service, ids)
    await senders.stop()
    const startedMs = performance.now()
    while ((await call(newcomer)) !== 0 && performance.now() - startedMs < RECOVERY_MS) {
      await sleep(500)
    }
    const kept = [...before.keys()]
    const sum = (key: 'received' | 'dropped') =>
      [...after]
        .filter(([id]) => before.has(id))
        .reduce((total, [id, figures]) => total + figures[key] - before.get(id)![key], 0)
    return {
      publishers,
      kept: kept.length,
      keptAtEnd: after.size,
      keptOfFirst: ids.slice(0, kept.length).filter((id) => before.has(id)).length,
      received: sum('received'),
      dropped: sum('dropped'),
      refusedWith,
      recoverySec: (performance.now() - startedMs) / 1000,
    }
  } finally {
    await senders.stop()
    await service.stop()
  }
}

interface Figures {
  readonly received: number
  readonly dropped: number
}

/** @returns figures of the streams that have a publisher, by id */
export async function readPublishers(
  service: Service,
  ids: readonly string[],
): Promise<Map<string, Figures>> {
  const figures = new Map<string, Figures>()
  for (const id of ids) {
    const { publisher } = await service.status(id)
    if (publisher === null) continue
    const { packets_received: received, packets_dropped: dropped } = publisher
    figures.set(id, { received, dropped })
  }
  return figures
}

/** @returns code in the message of the refusal; 0 if the call was accepted */
async function call(url: string): Promise<number> {
  try {
    const caller = await connect(parseSrtUrl(url))
    await caller.close()
    return 0
  } catch (error) {
    return Number(/\b\d{4}\b/.exec(String(error))?.[0])
  }
}
