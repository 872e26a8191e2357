/**
 * Backup of segments, with the real client of a Redis in memory.
 */
import { createHash, randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { until } from '../../../support/until.ts'
import { MemoryRedis } from './memory-redis.ts'
import { isOpen, KEEP, openBackup, READ, write } from './open-backup.ts'

const startRedis = (t: Test) => new MemoryRedis().listen(t)

t.test('another process reads the bytes of a segment', async (t) => {
  const { url, lists, commands } = await startRedis(t)
  const { backup } = openBackup(t, [url])
  await isOpen(backup)
  const { chunks, sizeBytes } = write(backup, 'studio', 'e-7.ts', [188, 376_000, 1_000_032])
  t.equal(backup.report.waitingBytes, sizeBytes)
  await backup.flush(5000)
  t.match(backup.report, { waitingBytes: 0, writtenBytes: sizeBytes, droppedBytes: 0 })
  const key = 'mr:{studio}:media:e-7.ts'
  t.strictSame(commands, [`DEL ${key}`, `RPUSH ${key}`, `PEXPIRE ${key}`, 'EXEC'])
  t.equal(lists.get(key)?.ttlMs, KEEP.ttlMs)

  const other = openBackup(t, [url]).backup
  const listed = { uri: 'e-7.ts', sizeBytes }
  const found = await other.read('studio', [{ uri: 'e-8.ts', sizeBytes: 188 }, listed], {
    ...READ,
    ttlMs: 7000,
  })
  t.strictSame([...found.keys()], ['e-7.ts'])
  t.ok(Buffer.concat(found.get('e-7.ts')!).equals(Buffer.concat(chunks)), 'the same bytes')
  t.equal(other.report.readBytes, sizeBytes)
  t.equal(lists.get(key)?.ttlMs, 7000, 'for the next owner')
  const short = await other.read('studio', [{ ...listed, sizeBytes: sizeBytes - 188 }], READ)
  t.equal(short.size, 0, 'of another size than its playlist has')
  t.equal((await other.read('other', [listed], READ)).size, 0, 'of another stream')
  backup.expire('studio', 'e-7.ts', 4000.5)
  await until('another lifetime', () => lists.get(key)?.ttlMs === 4001)
})

t.test('a segment that is written again is there once', async (t) => {
  const { url, lists } = await startRedis(t)
  const { backup } = openBackup(t, [url])
  await isOpen(backup)
  for (let times = 0; times < 2; times++) write(backup, 'studio', 'e-7.ts', [188])
  await backup.flush(5000)
  t.equal(lists.get('mr:{studio}:media:e-7.ts')?.chunks.length, 1)
})

t.test('an init segment is there for as long as the latest segment with it', async (t) => {
  const { url, lists } = await startRedis(t)
  const { backup } = openBackup(t, [url])
  await isOpen(backup)
  const init = { uri: 'e-v1-0f1e2d3c4b5a.mp4', chunks: [randomBytes(700), randomBytes(70)] }
  const segments = ['e-v1-7.m4s', 'e-v1-8.m4s'].map((uri, index) => {
    const segment = { uri, chunks: [randomBytes(1000)], init, onDone: () => undefined }
    backup.write('studio', { ...segment, ttlMs: (index + 1) * 60_000 })
    return { uri, sizeBytes: 1000 }
  })
  await backup.flush(5000)
  t.equal(backup.report.writtenBytes, 2 * (770 + 1000))
  t.equal(lists.get(`mr:{studio}:media:${init.uri}`)?.ttlMs, 120_000)
  lists.delete('mr:{studio}:media:e-v1-7.m4s')

  const other = openBackup(t, [url]).backup
  const absent = { uri: 'e-a1-0f1e2d3c4b5a.mp4' }
  const found = await other.read('studio', [init, absent, ...segments], READ)
  t.strictSame([...found.keys()].toSorted(), [init.uri, 'e-v1-8.m4s'])
  t.ok(Buffer.concat(found.get(init.uri)!).equals(Buffer.concat(init.chunks)), 'once')
})

t.test('memory is in use until its segment is written', async (t) => {
  const redis = await startRedis(t)
  const { backup } = openBackup(t, [redis.url], 1_000_000)
  await isOpen(backup)
  redis.pause()
  const segments = Array.from({ length: 10 }, (_, n) => write(backup, 'studio', `${n}`, [150_000]))
  t.match(backup.report, { waitingBytes: 900_000, droppedBytes: 600_000 }, 'bounded')
  t.strictSame(
    segments.map(({ isDone }) => isDone),
    [false, false, false, false, false, false, true, true, true, true],
  )
  redis.resume()
  await backup.flush(5000)
  t.ok(segments.every(({ isDone }) => isDone))
  t.match(backup.report, { waitingBytes: 0, writtenBytes: 900_000, droppedBytes: 600_000 })
  t.ok(redis.lists.has('mr:{studio}:media:5'), 'in turn')
})

t.test('no more is read at a time than fits into memory', async (t) => {
  const { url } = await startRedis(t)
  const writer = openBackup(t, [url]).backup
  await isOpen(writer)
  const uris = ['1', '2', '3']
  for (const uri of uris) write(writer, 'studio', uri, [1000])
  await writer.flush(5000)
  const { backup } = openBackup(t, [url], 2500)
  const listed = uris.map((uri) => ({ uri, sizeBytes: 1000 }))
  t.strictSame([...(await backup.read('studio', listed, READ)).keys()], ['1', '2'])
  t.strictSame([...(await backup.read('studio', listed.slice(2), READ)).keys()], ['3'], 'then')
})

t.test('a server that is away holds up nobody', async (t) => {
  const redis = await startRedis(t)
  const { backup, lost, pass } = openBackup(t, [redis.url])
  await isOpen(backup)
  redis.pause()
  const hung = write(backup, 'studio', 'e-1.ts', [188])
  redis.cut()
  await until('the loss', () => lost.length > 0)
  await until('the write fails', () => backup.report.droppedBytes === 188)
  t.notOk(hung.isDone, 'the connection may still read the memory')
  t.ok(write(backup, 'studio', 'e-2.ts', [188]).isDone)
  t.match(backup.report, { waitingBytes: 0, writtenBytes: 0, droppedBytes: 376 })
  pass(5000)
  const read = backup.read('studio', [{ uri: 'e-0.ts', sizeBytes: 188 }], READ)
  const first = await Promise.race([read.then(() => 'nothing'), setImmediate('a wait')])
  t.equal(first, 'nothing', 'the limit is from the loss on, for all streams')
})

t.test('a reader waits for a connection that is being made', async (t) => {
  const redis = await startRedis(t)
  redis.lists.set('mr:{studio}:media:e-1.ts', { chunks: [Buffer.from('abc')] })
  redis.cut()
  const { backup, lost } = openBackup(t, [redis.url])
  const read = backup.read('studio', [{ uri: 'e-1.ts', sizeBytes: 3 }], READ)
  await until('an attempt', () => lost.length > 0)
  redis.mend()
  t.equal((await read).size, 1)
})

t.test('a stream has one server, and the streams are spread over all', async (t) => {
  const servers = await Promise.all([startRedis(t), startRedis(t)])
  const urls = servers.map(({ url }) => url)
  const { backup } = openBackup(t, urls)
  const ids = Array.from({ length: 20 }, (_, n) => `studio-${n}`)
  for (const id of ids) {
    await isOpen(backup, id)
    for (const uri of ['e-1.ts', 'e-2.ts']) write(backup, id, uri, [188])
  }
  await backup.flush(5000)
  // All nodes, of later versions, too, must find it there.
  const serverOf = (id: string) =>
    servers[createHash('sha1').update(id).digest().readUInt32BE() % servers.length]!
  for (const server of servers) {
    const keys = ids
      .filter((id) => serverOf(id) === server)
      .flatMap((id) => [1, 2].map((n) => `mr:{${id}}:media:e-${n}.ts`))
    t.ok(keys.length > 0)
    t.strictSame([...server.lists.keys()].toSorted(), keys.toSorted())
  }
  const [first, second] = servers
  second.cut()
  const other = openBackup(t, urls).backup
  const id = ids.find((each) => serverOf(each) === first)!
  const found = await other.read(id, [{ uri: 'e-1.ts', sizeBytes: 188 }], READ)
  t.equal(found.size, 1, 'without the other server')
})

t.test('a server that does not answer holds a flush up for its time limit alone', async (t) => {
  const redis = await startRedis(t)
  const { backup } = openBackup(t, [redis.url])
  await isOpen(backup)
  redis.pause()
  const { sizeBytes } = write(backup, 'studio', 'e-7.ts', [188])
  await backup.flush(20)
  t.equal(backup.report.waitingBytes, sizeBytes)
  redis.resume()
  await backup.flush(5000)
  t.match(backup.report, { waitingBytes: 0, writtenBytes: sizeBytes })
})
