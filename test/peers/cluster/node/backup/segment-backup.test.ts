import { randomBytes } from 'node:crypto'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { machineClock } from '../../../../../src/timing/clock.ts'
import { SegmentBackup } from '../../../../../src/cluster/node/backup/segment-backup.ts'
import { linkTo } from '../../../support/cluster.ts'
import { ask, startRedis } from '../../../support/redis.ts'
import { requireTool } from '../../../support/tools.ts'
import { until } from '../../../../support/until.ts'

const KEEP = { ttlMs: 60_000 }
const READ = { ...KEEP, timeoutMs: 5000 }

function openBackup(t: Test, urls: readonly string[], maxBytes = 1e8) {
  const lost: string[] = []
  const backup = new SegmentBackup({
    urls,
    maxBytes,
    onLost: (reason) => lost.push(reason),
    clock: machineClock,
  })
  t.teardown(() => backup.close())
  backup.connect()
  return { backup, lost }
}

/** Writes a segment. @returns its media, and whether its memory may be reused */
function write(backup: SegmentBackup, streamId: string, uri: string, sizes: readonly number[]) {
  const chunks = sizes.map((size) => randomBytes(size))
  const written = { chunks, sizeBytes: sizes.reduce((sum, size) => sum + size, 0), isDone: false }
  backup.write(streamId, { uri, chunks, ...KEEP, onDone: () => (written.isDone = true) })
  return written
}

/** Waits until a server takes segments. */
async function isOpen(backup: SegmentBackup, streamId = 'studio') {
  await backup.read(streamId, [], READ)
}

t.test('another process reads the bytes of a segment', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { url, port } = await startRedis(t)
  const { backup } = openBackup(t, [url])
  await isOpen(backup)
  const { chunks, sizeBytes } = write(backup, 'studio', 'e-7.ts', [188, 376_000, 1_000_032])
  t.equal(backup.report.waitingBytes, sizeBytes)
  await backup.flush(5000)
  t.match(backup.report, { waitingBytes: 0, writtenBytes: sizeBytes, droppedBytes: 0 })

  const other = openBackup(t, [url]).backup
  const listed = { uri: 'e-7.ts', sizeBytes }
  const found = await other.read('studio', [{ uri: 'e-8.ts', sizeBytes: 188 }, listed], READ)
  t.strictSame([...found.keys()], ['e-7.ts'])
  t.ok(Buffer.concat(found.get('e-7.ts')!).equals(Buffer.concat(chunks)), 'the same bytes')
  t.equal(other.report.readBytes, sizeBytes)
  const short = await other.read('studio', [{ ...listed, sizeBytes: sizeBytes - 188 }], READ)
  t.equal(short.size, 0, 'of another size than its playlist has')
  t.equal((await other.read('other', [listed], READ)).size, 0, 'of another stream')

  await t.test('until its time is over', async (t) => {
    const key = 'mr:{studio}:media:e-7.ts'
    t.match(await ask(port, `PTTL ${key}`), /^:[45]\d{4}\r/)
    backup.expire('studio', 'e-7.ts', 1)
    await until('the end', async () => (await ask(port, 'DBSIZE')) === ':0\r\n')
    t.equal((await other.read('studio', [listed], READ)).size, 0)
  })
})

t.test('a server that hangs, or is away, holds up nobody', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { url, program } = await startRedis(t)
  const { backup, lost } = openBackup(t, [url])
  await isOpen(backup)
  program.kill('SIGSTOP')
  const hung = write(backup, 'studio', 'e-1.ts', [188])
  const limit = { ...KEEP, timeoutMs: 50 }
  t.equal((await backup.read('studio', [{ uri: 'e-0.ts', sizeBytes: 188 }], limit)).size, 0)
  await until('the write fails', () => backup.report.droppedBytes === 188)
  t.notOk(hung.isDone, 'the connection may still read the memory')

  program.kill('SIGKILL')
  await until('the loss', () => lost.length > 0)
  t.ok(write(backup, 'studio', 'e-2.ts', [188]).isDone)
  t.match(backup.report, { waitingBytes: 0, writtenBytes: 0, droppedBytes: 376 })
  await sleep(limit.timeoutMs)
  const read = backup.read('studio', [{ uri: 'e-0.ts', sizeBytes: 188 }], limit)
  const first = await Promise.race([read.then(() => 'nothing'), setImmediate('a wait')])
  t.equal(first, 'nothing', 'the limit is from the loss on, for all streams')
})

t.test('a server that is lost again before it was steady holds up nobody either', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const link = await linkTo(t, await startRedis(t))
  const { backup } = openBackup(t, [link.url])
  const isAway = () => write(backup, 'studio', 'e-1.ts', [188]).isDone
  for (let losses = 0; losses < 2; losses++) {
    link.mend()
    await until('a connection', () => !isAway())
    link.cut()
    await until('the loss', isAway)
  }
  const limit = { ...KEEP, timeoutMs: 50 }
  await sleep(limit.timeoutMs)
  const read = backup.read('studio', [], limit)
  const first = await Promise.race([read.then(() => 'nothing'), setImmediate('a wait')])
  t.equal(first, 'nothing')
})
