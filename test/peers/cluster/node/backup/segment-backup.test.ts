/**
 * Backup of segments in a real Redis: `test/cluster` has what one in memory shows.
 */
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import {
  isOpen,
  KEEP,
  openBackup,
  READ,
  write,
} from '../../../../cluster/node/backup/open-backup.ts'
import { linkTo } from '../../../support/cluster.ts'
import { ask, startRedis } from '../../../support/redis.ts'
import { requireTool } from '../../../support/tools.ts'
import { until } from '../../../../support/until.ts'

t.test('another process reads the bytes of a segment until its time is over', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { url, port } = await startRedis(t)
  const { backup } = openBackup(t, [url])
  await isOpen(backup)
  const { chunks, sizeBytes } = write(backup, 'studio', 'e-7.ts', [188, 376_000, 1_000_032])
  await backup.flush(5000)
  const other = openBackup(t, [url]).backup
  const listed = { uri: 'e-7.ts', sizeBytes }
  const found = await other.read('studio', [listed], READ)
  t.ok(Buffer.concat(found.get('e-7.ts')!).equals(Buffer.concat(chunks)), 'the same bytes')
  t.match(await ask(port, 'PTTL mr:{studio}:media:e-7.ts'), /^:[45]\d{4}\r/)
  backup.expire('studio', 'e-7.ts', 1)
  await until('the end', async () => (await ask(port, 'DBSIZE')) === ':0\r\n')
  t.equal((await other.read('studio', [listed], READ)).size, 0)
})

t.test('a server that hangs, or is away, holds up nobody', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { url, program } = await startRedis(t)
  const { backup, lost, pass } = openBackup(t, [url])
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
  pass(limit.timeoutMs)
  const read = backup.read('studio', [{ uri: 'e-0.ts', sizeBytes: 188 }], limit)
  const first = await Promise.race([read.then(() => 'nothing'), setImmediate('a wait')])
  t.equal(first, 'nothing', 'the limit is from the loss on, for all streams')
})

t.test('a server that is lost again before it was steady holds up nobody either', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const link = await linkTo(t, await startRedis(t))
  const { backup, pass } = openBackup(t, [link.url])
  const isAway = () => write(backup, 'studio', 'e-1.ts', [188]).isDone
  for (let losses = 0; losses < 2; losses++) {
    link.mend()
    await until('a connection', () => !isAway())
    link.cut()
    await until('the loss', isAway)
  }
  const limit = { ...KEEP, timeoutMs: 50 }
  pass(limit.timeoutMs)
  const read = backup.read('studio', [], limit)
  const first = await Promise.race([read.then(() => 'nothing'), setImmediate('a wait')])
  t.equal(first, 'nothing')
})
