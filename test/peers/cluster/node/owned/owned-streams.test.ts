/**
 * Streams of a node and what a registry over a real Redis has of them.
 */
import t from 'tap'
import { machineClock } from '../../../../../src/timing/clock.ts'
import { MillraceError } from '../../../../../src/errors.ts'
import { SegmentCache } from '../../../../../src/hls/store/segment-cache.ts'
import { createLogger } from '../../../../../src/logger.ts'
import { listOwned, OwnedStreams } from '../../../../../src/cluster/node/owned/owned-streams.ts'
import { LiveStream } from '../../../../../src/stream/live-stream.ts'
import { openRedis, openRegistry } from '../../registry/open-registry.ts'
import { requireTool } from '../../../support/tools.ts'
import { until } from '../../../../support/until.ts'

t.test('ends that a failover has lost are announced for as long as it takes', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const redis = await openRedis(t)
  const registry = openRegistry(redis)
  await registry.renewNode({ node: 'a', url: 'http://127.0.0.1:1' })
  const owned = new OwnedStreams({
    ...{ node: 'a', registry, backup: undefined, lingerMs: 60_000, logger: createLogger('silent') },
    readLeaseSince: () => undefined,
    keyUsesOf: () => ({}),
    leave: (stream) => t.fail(`${stream.id} is left`),
    reclaim: (streamId) => t.fail(`${streamId} is claimed again`),
  })
  t.teardown(() => owned.close())
  const ids = ['one', 'two']
  const streams: LiveStream[] = []
  for (const id of ids) {
    const keyExpiresAtMs = Date.now() + 3_600_000
    await registry.start(id, { options: {}, keyExpiresAtMs })
    const claimed = await registry.claim(id, { node: 'a', epoch: 'e', seenFence: 0 })
    if (claimed.outcome !== 'granted') throw new Error(claimed.outcome)
    const stream = new LiveStream(id, {
      ...{ clock: machineClock, cache: new SegmentCache({ maxBytes: 1e6 }), epoch: 'e' },
      ...{ segmentSec: 2, maxSegmentSec: 10, playlistSegments: 6, reconnectGraceSec: 60 },
      ...{ lingerSec: 60, sequenceStart: claimed.free },
    })
    owned.own(stream, claimed)
    streams.push(stream)
  }
  await until('both are known', () => owned.pending === 0)

  const keys = (await redis.command(['KEYS', '*'])) as string[]
  const copies = await Promise.all(
    keys.map(async (key) => {
      const dump = (await redis.command(['DUMP', key], { binary: true })) as Buffer
      return ['RESTORE', key, '0', dump]
    }),
  )
  const calls: string[] = []
  let isRefused = false
  const announce = ({ streamId }: { readonly streamId: string }) => {
    calls.push(streamId)
    if (isRefused) return Promise.reject(new MillraceError('REGISTRY_UNAVAILABLE'))
    return Promise.resolve()
  }
  for (const stream of streams) {
    stream.stop('api')
    owned.stop(stream, 'api', announce)
  }
  await until('both are announced', () => calls.length === ids.length)

  await redis.command(['FLUSHALL'])
  for (const copy of copies) await redis.command(copy)
  const announcedInRound = async () => {
    calls.length = 0
    t.strictSame(await owned.reconcile(await listOwned(registry, 'a')), [])
    return calls.toSorted()
  }
  isRefused = true
  t.strictSame(await announcedInRound(), ids, 'one that fails delays no other')
  t.equal((await registry.get('one'))?.status, 'STOPPED')
  isRefused = false
  t.strictSame(await announcedInRound(), ids, 'again')
  t.strictSame(await announcedInRound(), [], 'once')
})
