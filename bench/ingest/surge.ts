/**
 * One publisher that suddenly sends ten times its rate: what the others lose, and when it is disconnected.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { startService } from '../support/service.ts'
import { kernelDrops } from '../support/usage.ts'
import { startLibsrtSenders } from './libsrt-senders.ts'
import { readPublishers, type OverloadLoad } from './overload.ts'

/** From the start of the publishers until the first one speeds up: it needs a usual rate. */
const SETTLE_SEC = 20

const POLL_MS = 100

export interface SurgeResult {
  readonly publishers: number
  /** From the surge until its publisher is disconnected; NaN if it is not. */
  readonly disconnectedAfterSec: number
  /** Datagrams that the kernel dropped during the surge, of all publishers. */
  readonly kernelDrops: number
  /** Publishers still connected at the end, besides the one that surges. */
  readonly kept: number
  /** Packets of these from the surge to the end. */
  readonly received: number
  readonly dropped: number
}

export async function measureSurge(load: OverloadLoad): Promise<SurgeResult> {
  const { publishers, seconds } = load
  const service = await startService({ env: { MAX_PUBLISHERS: '1000' } })
  const ids = Array.from({ length: publishers }, (_, index) => `bench-${index}`)
  const urls: string[] = []
  for (const id of ids) urls.push(await service.start(id))
  const senders = await startLibsrtSenders(urls, {
    ...load,
    sender: 'libsrt',
    senders: 1,
    seconds: SETTLE_SEC + seconds + 5,
    mayBreak: true,
    surgeAfterSec: SETTLE_SEC,
  })
  const startedMs = performance.now()
  const surgeSec = () => (performance.now() - startedMs) / 1000 - SETTLE_SEC
  try {
    await sleep((SETTLE_SEC - 1) * 1000)
    const before = await readPublishers(service, ids)
    const dropsBefore = kernelDrops([service.srtPort])
    let disconnectedAfterSec = NaN
    while (surgeSec() < seconds) {
      await sleep(POLL_MS)
      if (!Number.isNaN(disconnectedAfterSec)) continue
      const { publisher } = await service.status(ids[0]!)
      if (publisher === null) disconnectedAfterSec = surgeSec()
    }
    const after = await readPublishers(service, ids.slice(1))
    const sum = (key: 'received' | 'dropped') =>
      [...after].reduce((total, [id, figures]) => total + figures[key] - before.get(id)![key], 0)
    return {
      publishers,
      disconnectedAfterSec,
      kernelDrops: kernelDrops([service.srtPort]) - dropsBefore,
      kept: after.size,
      received: sum('received'),
      dropped: sum('dropped'),
    }
  } finally {
    await senders.stop()
    await service.stop()
  }
}
