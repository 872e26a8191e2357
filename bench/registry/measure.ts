/**
 * Calls of the registry to a redis-server on the same machine that holds many streams: their time, one at a time, and
 * what they cost the server, 16 at once.
 *
 * @module
 */
import { Redis } from '../../src/cluster/registry/redis.ts'
import { type Advance, Registry } from '../../src/cluster/registry/registry.ts'
import { startRedis } from '../../test/peers/support/redis.ts'
import { until } from '../../test/support/until.ts'
import { usedCpuUs } from './used-cpu.ts'

const AT_ONCE = 16
/** Segments of a window. */
const WINDOW = 8
const PAGE = 100

export interface RegistryLoad {
  readonly streams: number
  /** Calls of each kind for each stream: once one at a time, then at once. */
  readonly rounds: number
}

export interface RegistryResult {
  readonly call: string
  readonly timesMs: readonly number[]
  /** CPU of the server for each call. */
  readonly cpuUs: number
}

export async function measureRegistry(load: RegistryLoad): Promise<RegistryResult[]> {
  const ends: (() => unknown)[] = []
  try {
    const { url } = await startRedis({ teardown: (end) => ends.push(end) })
    const redis = new Redis({ url, timeoutMs: 5000 })
    ends.push(() => redis.close())
    redis.connect()
    await until('a connection', () => redis.isReady)
    return await measureCalls(redis, load)
  } finally {
    for (const end of ends.toReversed()) await end()
  }
}

async function measureCalls(
  redis: Redis,
  { streams, rounds }: RegistryLoad,
): Promise<RegistryResult[]> {
  const sequenceClock = { originMs: 0, mediaPerSec: 0, discontinuitiesPerSec: 0 }
  const options = { leaseMs: 3_600_000, maxStreams: 2 * streams }
  const registry = new Registry({ redis, sequenceClock, ...options })
  const node = 'a'
  await registry.renewNode({ node, url: 'http://127.0.0.1:8080' })
  const idOf = (n: number) => `stream-${n % streams}`
  const keyExpiresAtMs = Date.now() + 7_200_000
  const given = { webhook_urls: ['https://example.com/hook'], part_ms: 300 }
  const results: RegistryResult[] = []
  const measure = async (call: string, run: (n: number) => Promise<unknown>) => {
    const count = streams * rounds
    const timesMs: number[] = []
    for (let n = 0; n < count; n++) {
      const startMs = performance.now()
      await run(n)
      timesMs.push(performance.now() - startMs)
    }
    const beforeUs = await usedCpuUs(redis)
    let next = count
    const lane = async () => {
      while (next < 2 * count) await run(next++)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, lane))
    const cpuUs = ((await usedCpuUs(redis)) - beforeUs) / count
    results.push({ call, timesMs, cpuUs })
  }

  await measure('start', (n) => registry.start(idOf(n), { options: given, keyExpiresAtMs }))
  const fences = new Map<string, number>()
  for (let n = 0; n < streams; n++) {
    const claim = { node, epoch: `a-${n}`, seenFence: 0 }
    const claimed = await registry.claim(idOf(n), claim)
    if (claimed.outcome !== 'granted') throw new Error(`${idOf(n)}: ${claimed.outcome}`)
    fences.set(idOf(n), claimed.stream.fence)
  }
  await measure('advance', (n) => {
    const by = { node, fence: fences.get(idOf(n))! }
    return registry.advance(idOf(n), by, boundary(Math.floor(n / streams)))
  })
  await measure('get', (n) => registry.get(idOf(n)))
  await measure(`list of ${PAGE}`, (n) => registry.list({ after: idOf(n), limit: PAGE }))
  return results
}

/** What an owner tells at a boundary: a segment closes, and the number after the next is reserved. */
function boundary(closed: number): Advance {
  const value = (mediaSequence: number, gap: boolean) => ({
    mediaSequence,
    value: {
      ...{
        uri: `0f1e2d3c4b5a-${mediaSequence}.mp4`,
        durationSec: 2,
        programDateTimeMs: Date.now(),
      },
      ...{ discontinuity: false, independent: true, sizeBytes: 1_234_567, gap },
    },
  })
  return {
    serial: closed + 1,
    entries: [value(closed, false), value(closed + 1, true), value(closed + 2, true)],
    first: Math.max(0, closed - WINDOW),
    free: { media: closed + 3, discontinuity: 1 },
    status: 'STREAMING',
  }
}
