/**
 * Backup of segments in a redis-server on the same machine: what writes and reads of windows cost the server and this
 * process.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { machineClock } from '../../src/timing/clock.ts'
import { Redis } from '../../src/cluster/registry/redis.ts'
import { SegmentBackup } from '../../src/cluster/node/backup/segment-backup.ts'
import { startRedis } from '../../test/peers/support/redis.ts'
import { until } from '../../test/support/until.ts'
import { usedCpuUs } from '../registry/used-cpu.ts'
import { formatTable } from '../support/table.ts'

/** Segments of a window, and as many that have left it. */
const WINDOW = 6
const KEPT = 2 * WINDOW + 1

const SEGMENT_SEC = 2
/** Parts of a segment. */
const CHUNKS = 10

const TTL_MS = 3_600_000

export interface BackupLoad {
  readonly streams: number
  readonly bitsPerSecond: number
}

interface BackupResult {
  readonly what: string
  readonly megabytes: number
  readonly sec: number
  /** CPU for each megabyte. */
  readonly serverUs: number
  readonly processUs: number
}

export async function measureBackup({ streams, bitsPerSecond }: BackupLoad): Promise<string> {
  const ends: (() => unknown)[] = []
  try {
    const { url } = await startRedis({ teardown: (end) => ends.push(end) })
    const redis = new Redis({ url, timeoutMs: 5000 })
    const backup = new SegmentBackup({
      urls: [url],
      maxBytes: 1e9,
      onLost: () => undefined,
      clock: machineClock,
    })
    ends.push(
      () => redis.close(),
      () => backup.close(),
    )
    redis.connect()
    backup.connect()
    await until('a connection', () => redis.isReady)

    const chunkBytes = Math.round((bitsPerSecond * SEGMENT_SEC) / 8 / CHUNKS)
    const chunks = Array.from({ length: CHUNKS }, () => randomBytes(chunkBytes))
    const sizeBytes = chunkBytes * CHUNKS
    const ids = Array.from({ length: streams }, (_, n) => `stream-${n}`)
    const measure = async (what: string, segments: number, run: () => Promise<void>) => {
      const megabytes = (segments * sizeBytes) / 1e6
      const [serverUs, used, sinceMs] = [
        await usedCpuUs(redis),
        process.cpuUsage(),
        performance.now(),
      ]
      await run()
      const sec = (performance.now() - sinceMs) / 1000
      const { user, system } = process.cpuUsage(used)
      const spentUs = (await usedCpuUs(redis)) - serverUs
      const perMegabyte = { serverUs: spentUs / megabytes, processUs: (user + system) / megabytes }
      return { what, megabytes, sec, ...perMegabyte }
    }
    await backup.read('stream-0', [], { timeoutMs: 5000, ttlMs: TTL_MS })
    const writes = await measure('write', streams * KEPT, async () => {
      for (let number = 0; number < KEPT; number++) {
        for (const id of ids) {
          const segment = { uri: `${number}.ts`, chunks, ttlMs: TTL_MS, onDone: () => undefined }
          backup.write(id, segment)
        }
        await backup.flush(60_000)
      }
    })
    const memory = Number(
      /used_memory:(\d+)/.exec(String(await redis.command(['INFO', 'memory'])))?.[1],
    )
    const window = Array.from({ length: WINDOW }, (_, n) => ({ uri: `${n}.ts`, sizeBytes }))
    const reads = await measure('read', streams * WINDOW, async () => {
      for (const id of ids) {
        const found = await backup.read(id, window, { timeoutMs: 5000, ttlMs: TTL_MS })
        if (found.size !== WINDOW) throw new Error(`${found.size} segments of ${WINDOW}`)
      }
    })
    return format([writes, reads], {
      overhead: memory / (writes.megabytes * 1e6) - 1,
      windowMs: (reads.sec * 1000) / streams,
    })
  } finally {
    for (const end of ends.toReversed()) await end()
  }
}

function format(
  results: readonly BackupResult[],
  { overhead, windowMs }: { readonly overhead: number; readonly windowMs: number },
): string {
  const columns = [
    { title: '' },
    { title: 'MB', decimals: 0 },
    { title: 'MB/s', decimals: 0 },
    { title: 'redis µs/MB', decimals: 0 },
    { title: 'node µs/MB', decimals: 0 },
  ]
  const rows = results.map(({ what, megabytes, sec, serverUs, processUs }) => [
    ...[what, megabytes, megabytes / sec, serverUs, processUs],
  ])
  const facts = `window read in ${windowMs.toFixed(1)} ms; memory ${(overhead * 100).toFixed(0)} % above the bytes`
  return `${formatTable(columns, rows)}\n${facts}`
}
