/**
 * Commands to nodes, over a real Redis.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { CommandReader, sendCommand } from '../../../../src/cluster/registry/node-commands.ts'
import { Redis } from '../../../../src/cluster/registry/redis.ts'
import { unavailable } from '../../../../src/cluster/registry/unavailable.ts'
import { startRedis } from '../../support/redis.ts'
import { requireTool } from '../../support/tools.ts'
import { until } from '../../../support/until.ts'

t.test('a reader of commands survives Redis, and waits without a connection', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const redis = await startRedis(t)
  const heard: unknown[] = []
  const reader = new CommandReader({ url: redis.url }, 'a', async (command) => {
    heard.push(command)
    throw new Error('ignored')
  })
  reader.start()
  const sender = new Redis({ url: redis.url })
  t.teardown(() => sender.close())
  sender.connect()
  await until('a connection', () => sender.isReady)
  for (const n of [1, 2]) await sendCommand(sender, 'a', { n })
  await until('both', () => heard.length === 2)
  redis.program.child.kill('SIGKILL')
  await until('lost', () => !sender.isReady)
  await sleep(300)
  await startRedis(t, { port: redis.port })
  await until('a connection', () => sender.isReady)
  await sendCommand(sender, 'a', { n: 3 })
  await until('the third', () => heard.length === 3)
  t.strictSame(heard, [{ n: 1 }, { n: 2 }, { n: 3 }])
  await reader.close()
})

t.test('a command that needs the registry waits for it', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const redis = await startRedis(t)
  const sender = new Redis({ url: redis.url })
  t.teardown(() => sender.close())
  sender.connect()
  await until('a connection', () => sender.isReady)
  for (const n of [1, 2]) await sendCommand(sender, 'a', { n })
  const heard: unknown[] = []
  const reader = new CommandReader({ url: redis.url }, 'a', async (command) => {
    heard.push(command)
    if (heard.length < 3) throw unavailable()
  })
  t.teardown(() => reader.close())
  reader.start()
  await until('both', () => heard.length === 4)
  t.strictSame(heard, [{ n: 1 }, { n: 1 }, { n: 1 }, { n: 2 }])
})
