/**
 * What an edge remembers of the owners whose replies it has served.
 */
import t from 'tap'
import type { NodeClient } from '../../../src/cluster/edge/node-client.ts'
import { fixedOwner, ServedFences, StreamOrigin } from '../../../src/cluster/edge/stream-origin.ts'
import { MillraceError } from '../../../src/errors.ts'

t.test('refuses a lower fence for two minutes after the latest reply', async (t) => {
  const fences = new ServedFences()
  const admit = (fence: number, sec: number) => fences.admit('demo', fence, sec * 1e6)
  t.equal(admit(7, 0), true)
  t.equal(admit(6, 1), false)
  t.equal(admit(7, 100), true)
  t.equal(admit(6, 219), false)
  t.equal(fences.admit('other', 6, 219e6), true)
  t.equal(admit(6, 220), true)
  t.equal(admit(5, 221), false)
})

t.test('streams that no node owns do not displace those that were served', async (t) => {
  const fences = new ServedFences()
  fences.admit('demo', 7, 0)
  for (let n = 0; n < 150_000; n++) fences.admit(`x${n}`, 0, 0)
  t.equal(fences.admit('demo', 6, 0), false)
})

t.test('an owner has not failed when the edge has too many requests of its own', async (t) => {
  let error: Error = new MillraceError('TOO_MANY_WAITING')
  const client = { get: () => Promise.reject(error) } as unknown as NodeClient
  const owners = fixedOwner('http://owner')
  const clock = { nowUs: () => 0 }
  const fences = new ServedFences()
  const origin = new StreamOrigin({ streamId: 'demo', client, owners, fences, clock })
  await t.rejects(origin.get({ path: '/video/demo/a.ts' }), error)
  t.equal(await origin.findUrl(), 'http://owner')
  error = new Error('no answer')
  await t.rejects(origin.get({ path: '/video/demo/a.ts' }), error)
  await t.rejects(origin.findUrl(), { code: 'ORIGIN_UNREACHABLE' })
})

t.test('an owner has not failed when its archive is away', async (t) => {
  let code = 'ARCHIVE_UNAVAILABLE'
  const refuse = async () => ({
    status: 503,
    headers: {},
    bytes: Buffer.from(`{"code":"${code}"}`),
  })
  const client = { get: refuse } as unknown as NodeClient
  const owners = fixedOwner('http://owner')
  const clock = { nowUs: () => 0 }
  const fences = new ServedFences()
  const origin = new StreamOrigin({ streamId: 'demo', client, owners, fences, clock })
  t.equal((await origin.get({ path: '/video/demo/a.m4s' })).status, 503)
  t.equal(await origin.findUrl(), 'http://owner')
  code = 'SHUTTING_DOWN'
  t.equal((await origin.get({ path: '/video/demo/a.m4s' })).status, 503)
  await t.rejects(origin.findUrl(), { code: 'ORIGIN_UNREACHABLE' })
})

t.test('a silent owner that was replaced is left before its request has failed', async (t) => {
  const response = { status: 200, headers: {}, bytes: Buffer.from('of b') }
  const get: NodeClient['get'] = (url, { signal }) =>
    url === 'http://b'
      ? Promise.resolve(response)
      : new Promise((_, reject) => {
          signal?.addEventListener('abort', () => reject(new Error('the edge has given up')))
        })
  const client = { get } as unknown as NodeClient
  let lookups = 0
  const owners = {
    find: async () =>
      ++lookups < 3 ? { url: 'http://a', fence: 5 } : { url: 'http://b', fence: 6 },
  }
  // Advances at each reading, so that every lookup is old enough for the next.
  let nowUs = 0
  const clock = { nowUs: () => (nowUs += 20_000) }
  const fences = new ServedFences()
  const origin = new StreamOrigin({
    ...{ streamId: 'demo', client, owners, fences, clock },
    silentMs: 20,
  })
  t.match(await origin.get({ path: '/video/demo/a.ts' }), { status: 200, bytes: response.bytes })
})

t.test('the owner of a silent node is looked up every 2 s', async (t) => {
  const client = { get: async () => ({ status: 200, headers: {} }) } as unknown as NodeClient
  const owners = fixedOwner('http://owner')
  const fences = new ServedFences()
  const clock = { nowUs: () => 0 }
  const origin = new StreamOrigin({ streamId: 'demo', client, owners, fences, clock })
  const intervals = t.capture(globalThis, 'setInterval', setInterval)
  await origin.get({ path: '/video/demo/a.ts' })
  t.match(intervals(), [{ args: [Function, 2000] }])
})
