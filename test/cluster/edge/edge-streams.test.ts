/**
 * Streams at an edge: what clients who guess names may cost, and what stays in memory.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { Audience } from '../../../src/cluster/edge/audience.ts'
import { Edge } from '../../../src/cluster/edge/edge.ts'
import { EdgeStreams } from '../../../src/cluster/edge/edge-streams.ts'
import { fileOf } from '../../../src/cluster/edge/origin-file.ts'
import { createMediaCache } from '../../../src/cluster/edge/edge-files.ts'
import { NodeClient } from '../../../src/cluster/edge/node-client.ts'
import { TokenBucket } from '../../../src/timing/token-bucket.ts'
import { until } from '../../support/until.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

t.test('names that may not be asked for take no room from streams', async (t) => {
  let nowUs = 0
  let asked = 0
  const unlisted = new TokenBucket(1, nowUs)
  unlisted.take(nowUs)
  const streams = new EdgeStreams({
    ask: () => (asked++, new Promise(() => undefined)),
    media: createMediaCache(1000),
    name: 'open',
    unlisted,
    audience: new Audience(),
    clock: { nowUs: () => nowUs, wallMs: () => 0 },
  })
  t.teardown(() => streams.close())
  const wait = (id: string) => streams.findStream(id).files.wait('a.ts', {}, () => undefined)
  for (let n = 0; n < 20_000; n++) if (wait(`x${n}`) !== undefined) t.fail('was asked for')
  nowUs = 1e6
  t.type(wait('demo'), 'function')
  t.ok(streams.inUse('demo'))
  t.equal(asked, 1)
})

t.test('a look at the memory does not keep a stream that nobody reads', async (t) => {
  let nowUs = 0
  const client = new NodeClient()
  const edge = new Edge({
    client,
    owners: { find: () => new Promise(() => undefined) },
    maxBytes: 1000,
    clock: { nowUs: () => nowUs, wallMs: () => 0 },
  })
  t.teardown(() => client.close())
  t.teardown(() => edge.close())
  edge.open.findStream('demo')!.files.wait!('a.ts', {}, () => undefined)
  const look = () => edge.memory.findStream('demo')?.files
  t.ok(look())
  nowUs = 11e6
  await until('forgotten', () => {
    look()?.get('a.ts')
    return look() === undefined
  })
})

t.test('small files count with their objects', async (t) => {
  const media = createMediaCache(100_000)
  const names = Array.from({ length: 1000 }, (_, index) => `${index}.m4s`)
  const part = fileOf({
    status: 200,
    headers: { 'content-type': 'video/mp4', etag: '"1"', 'cache-control': 'max-age=60' },
    bytes: Buffer.alloc(100),
  })
  for (const name of names) await media.fetch(name, async () => part)
  const kept = names.filter((name) => media.get(name) !== undefined)
  t.ok(kept.length > 0 && kept.length * (100 + 850) < 100_000, `${kept.length} files`)
})

t.test('a file whose lifetime is over leaves the memory, though there is room', async (t) => {
  const media = createMediaCache(2000)
  const response = (sizeBytes: number) => ({
    status: 200,
    headers: { 'content-type': 'video/mp2t', etag: '"1"', 'cache-control': 'max-age=0' },
    bytes: Buffer.alloc(sizeBytes),
  })
  /** @returns whether the file is still in memory */
  const fetch = async (name: string, sizeBytes: number) => {
    await media.fetch(name, async () => fileOf(response(sizeBytes)))
    const kept = new WeakRef(media.get(name)!)
    return () => kept.deref() !== undefined
  }
  const [isStored, isUnstored] = [await fetch('a.ts', 900), await fetch('b.ts', 2000)]
  await until('freed', () => {
    collectGarbage()
    return !isStored() && !isUnstored()
  })
  t.equal(media.get('a.ts'), undefined)
  t.equal(media.get('b.ts'), undefined)
})
