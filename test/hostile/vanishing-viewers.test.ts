/**
 * Viewers that wait for media and vanish leave nothing behind.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { LiveStore } from '../playback/live-store.ts'
import { allowSlowRequests, call, MemoryService, startApp } from '../http/memory-service.ts'
import { until } from '../support/until.ts'
import { waitAndVanish } from './attacks/vanishing-viewers.ts'
import { targetAt } from './target.ts'

const MIB = 1024 * 1024
const VIEWERS = 1000

t.test('1,000 clients that wait and vanish leave 0 waiters and no memory', async (t) => {
  const live = new LiveStore({ maxWaitMs: 3_600_000 })
  live.addPart()
  const service = new MemoryService()
  service.stored.set('demo', live)
  const app = await startApp(t, service, {
    limits: { maxConnections: 2 * VIEWERS, maxBufferedMib: 64 },
  })
  allowSlowRequests(app)
  const target = targetAt(app.port)
  const attack = async (path: string) => {
    // One for each round, since a signal retains the sockets that it would close.
    const stop = new AbortController()
    const isWaiting = (count: number) => live.files.waiters === count
    t.equal(
      await waitAndVanish(target, stop.signal, { viewers: VIEWERS, path, isWaiting }),
      VIEWERS,
    )
    stop.abort()
    await until('forgotten', () => live.files.waiters === 0)
    await until('closed', () => app.guard.report().connections === 0)
  }
  const playlist = '/video/demo/playlist.m3u8?_HLS_msn=7'
  // The first rounds compile code and fill pools.
  await attack(playlist)
  await attack(`/video/demo/${live.hint}`)
  const before = usedHeap()
  await attack(playlist)
  const growth = usedHeap() - before
  // A request that stays would take 10 KiB.
  t.ok(growth < 2 * MIB, `${Math.round(growth / 1024)} KiB for ${VIEWERS} requests`)
  const reply = call(app, 'GET', playlist)
  await until('a viewer', () => live.files.waiters === 1)
  live.endSegment()
  t.equal((await reply).status, 200, 'others are served')
  t.strictSame(app.log, [])
})

function usedHeap(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  return process.memoryUsage().heapUsed
}
