import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { connectTo } from '../../../cluster/registry/connect-to.ts'
import { freePort } from '../../../support/free-port.ts'
import { ask, startRedis, startSentinel } from '../../support/redis.ts'
import { requireTool } from '../../support/tools.ts'
import { until } from '../../../support/until.ts'

const UNAVAILABLE = { code: 'REGISTRY_UNAVAILABLE', httpStatus: 503, retryAfterSec: 1 }

t.test('a server that is not there at the start is found when it comes', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const port = await freePort()
  const { redis, events, isReady } = connectTo(t, `redis://127.0.0.1:${port}`)
  await t.rejects(redis.command(['PING']), UNAVAILABLE)
  await until('a failure', () => events.length > 0)
  const { program } = await startRedis(t, { port })
  await isReady()
  t.equal(await redis.command(['PING']), 'PONG')

  await t.test('and again after it was away', async (t) => {
    program.kill('SIGKILL')
    await until('the loss', () => !redis.isReady)
    await t.rejects(redis.command(['PING']), UNAVAILABLE)
    await startRedis(t, { port })
    await isReady()
    t.equal(await redis.command(['PING']), 'PONG')
    // Attempts to connect may fail for another reason than the connection was lost.
    const changes = events.filter((event, at) => event !== events[at - 1])
    t.strictSame(changes, ['lost', 'ready', 'lost', 'ready'])
  })
})

t.test('a refused command has the error of Redis as its cause', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { redis, isReady } = connectTo(t, (await startRedis(t)).url)
  await isReady()
  const refusal = redis.command(['EVALSHA', '0'.repeat(40), '0'])
  await t.rejects(refusal, { ...UNAVAILABLE, cause: { message: /^NOSCRIPT/ } })
  t.equal(await redis.command(['PING']), 'PONG')
})

t.test('a URL names user, password and database', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { url, port } = await startRedis(t)
  await ask(port, 'ACL SETUSER node on >secret allcommands allkeys')
  await ask(port, 'ACL SETUSER default off')
  const { redis, isReady } = connectTo(t, `${url.replace('//', '//node:secret@')}/3`)
  await isReady()
  t.match(await redis.command(['CLIENT', 'INFO']), / db=3 /)
  const { events } = connectTo(t, url.replace('//', '//node:wrong@'))
  await until('a refusal', () => events.length > 0)
  t.strictSame(events, ['lost'])
})

/** What makes a server refuse writes, and what ends that. */
const REFUSALS = [
  {
    reason: /^OOM /,
    begin: 'CONFIG SET maxmemory 1',
    end: 'CONFIG SET maxmemory 0',
  },
  {
    reason: /^NOREPLICAS /,
    begin: 'CONFIG SET min-replicas-to-write 1',
    end: 'CONFIG SET min-replicas-to-write 0',
  },
  {
    reason: /^READONLY /,
    begin: 'REPLICAOF 127.0.0.1 1',
    end: 'REPLICAOF NO ONE',
  },
  {
    reason: /^(NOPERM|ERR The user executing the script) /,
    begin: 'ACL SETUSER default -@write',
    end: 'ACL SETUSER default +@write',
  },
] as const

t.test(
  'a server that refuses writes answers those who only read, as long as it is the master',
  async (t) => {
    if (!requireTool(t, 'redis-server')) return
    const { url, port } = await startRedis(t)
    await ask(port, 'CONFIG SET min-replicas-to-write 1')
    const { redis, events, reasons, isReady } = connectTo(t, url, { readsOnly: true })
    await isReady()
    t.equal(await redis.command(['GET', 'x']), null)
    await t.rejects(redis.command(['SET', 'x', '1']), UNAVAILABLE)
    t.strictSame(events, ['ready'], 'the connection stays')
    await ask(port, 'REPLICAOF 127.0.0.1 1')
    await redis.close()
    const next = connectTo(t, url, { readsOnly: true })
    await until('a refusal', () => next.reasons.length > 0)
    t.strictSame(next.reasons, ['not the master'])
    t.strictSame(reasons, [])
  },
)

t.test('a server that refuses writes counts as away until it takes them', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { url, port } = await startRedis(t)
  for (const { reason, begin, end } of REFUSALS) {
    const { redis, events, reasons, isReady } = connectTo(t, url)
    await isReady()
    t.match(await ask(port, begin), /^\+OK/, begin)
    const script = ['EVAL', "return redis.call('SET', 'mr:x', '1')", '0']
    await t.rejects(redis.command(script), { ...UNAVAILABLE, cause: { message: reason } })
    t.equal(redis.isReady, false)
    t.match(await ask(port, end), /^\+OK/, end)
    await isReady()
    t.equal(await redis.command(script), 'OK')
    t.strictSame(events, ['ready', 'lost', 'ready'])
    t.match(reasons[0], reason)
    await redis.close()
  }
})

t.test('so does one that cannot save', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const folder = mkdtempSync(join(tmpdir(), 'redis-'))
  const args = ['--save', '3600 1', '--dir', folder]
  const { url, port } = await startRedis(t, { args })
  const { redis, reasons, isReady } = connectTo(t, url)
  await isReady()
  rmSync(folder, { recursive: true })
  await ask(port, 'BGSAVE')
  await until('a refusal', () =>
    redis.command(['SET', 'mr:x', '1']).then(
      () => false,
      () => true,
    ),
  )
  await until('the loss', () => reasons.length > 0)
  t.match(reasons[0], /^MISCONF /)
  await ask(port, 'CONFIG SET stop-writes-on-bgsave-error no')
  await isReady()
})

t.test('so does one that loads its data', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const folder = mkdtempSync(join(tmpdir(), 'redis-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const args = ['--dir', folder, '--enable-debug-command', 'local']
  const { port, program } = await startRedis(t, { args })
  await ask(port, 'DEBUG POPULATE 2000')
  t.match(await ask(port, 'SAVE'), /^\+OK/)
  program.kill('SIGKILL')
  await program.exit
  const slow = ['--key-load-delay', '1000', '--loading-process-events-interval-bytes', '1024']
  const isThere = startRedis(t, { port, args: [...args, ...slow] })
  const { reasons, events, isReady } = connectTo(t, `redis://127.0.0.1:${port}`)
  await isThere
  await isReady()
  t.match(reasons.at(-1), /^LOADING /)
  t.strictSame([...new Set(events)], ['lost', 'ready'])
})

t.test('a server that refuses scripts alone is reported once, until it runs them', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { url, port } = await startRedis(t)
  for (const readsOnly of [false, true]) {
    await ask(port, 'ACL SETUSER default -@scripting')
    const { redis, events, reasons } = connectTo(t, url, { readsOnly })
    redis.on('steady', () => events.push('steady'))
    const canRun = () =>
      redis.command(['EVAL', 'return 1', '0']).then(
        () => true,
        () => false,
      )
    redis.on('ready', () => void canRun())
    await until('a refusal', () => reasons.length > 0)
    t.match(reasons[0], /^NOPERM /)
    if (!readsOnly) {
      const countReady = () => events.filter((event) => event === 'ready').length
      await until('more attempts', () => countReady() > 3)
    }
    await ask(port, 'ACL SETUSER default +@scripting')
    await until('it is back', async () => events.at(-1) === 'steady' && (await canRun()))
    // On a machine that stands still for a second a connection may seem steady before.
    const changes = events
      .filter((event) => event !== 'ready')
      .filter((event, at, all) => event !== all[at - 1])
    t.match(changes.join(' '), /^(lost steady ?)+$/)
    await redis.close()
  }
})

t.test('a password that is changed is refused with the next connection', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { url, port } = await startRedis(t)
  await ask(port, 'ACL SETUSER node on >one allcommands allkeys')
  const { redis, reasons, isReady } = connectTo(t, url.replace('//', '//node:one@'))
  await isReady()
  await ask(port, 'ACL SETUSER node resetpass >two')
  t.equal(await redis.command(['PING']), 'PONG', 'connections go on')
  await ask(port, 'CLIENT KILL USER node')
  await until('the refusal is told, though the connection was lost before', () =>
    reasons.some((reason) => reason.startsWith('WRONGPASS ')),
  )
  t.notMatch(reasons.join(), /one|two/)
  await ask(port, 'ACL SETUSER node >one')
  await isReady()
})

t.test('a pause of the server that makes many commands late ends no connection', async (t) => {
  if (!requireTool(t, 'redis-server')) return
  const { url } = await startRedis(t, { args: ['--enable-debug-command', 'local'] })
  const { redis, events, isReady } = connectTo(t, url)
  await isReady()
  const pause = redis.command(['DEBUG', 'SLEEP', '0.7'], { timeoutMs: 5000 })
  const late = Array.from({ length: 20 }, () => t.rejects(redis.command(['GET', 'x']), UNAVAILABLE))
  await Promise.all([pause, ...late])
  t.equal(await redis.command(['PING']), 'PONG')
  t.strictSame(events, ['ready'])
})

/** A master with a replica, and a Sentinel that knows both. */
async function startReplicated(t: Test) {
  const master = await startRedis(t)
  const args = ['--replicaof', `127.0.0.1 ${master.port}`, '--repl-diskless-sync-delay', '0']
  const replica = await startRedis(t, { args })
  await until('the copy', async () =>
    (await ask(replica.port, 'INFO replication')).includes('master_link_status:up'),
  )
  const sentinel = await startSentinel(t, master.port)
  await until('the replica is known', async () =>
    (await ask(sentinel.port, 'SENTINEL REPLICAS main')).includes(String(replica.port)),
  )
  return { master, replica, sentinel }
}

t.test('after a failover of Sentinel the connection is to the new master', async (t) => {
  if (!requireTool(t, 'redis-server', 'redis-sentinel')) return
  const { master, replica, sentinel } = await startReplicated(t)
  // The first Sentinel of the list is away.
  const url = `redis+sentinel://127.0.0.1:${await freePort()},127.0.0.1:${sentinel.port}/main`
  const { redis, isReady } = connectTo(t, url)
  await isReady()
  t.equal(await redis.command(['SET', 'x', '1']), 'OK')
  await redis.command(['WAIT', '1', '400'])
  // The old master hangs: its connections stay open.
  master.program.kill('SIGSTOP')
  await until(
    'a reply',
    () =>
      redis.command(['GET', 'x']).then(
        (x) => x === '1',
        () => false,
      ),
    {
      everyMs: 100,
    },
  )
  t.match(await redis.command(['INFO', 'server']), new RegExp(`tcp_port:${replica.port}`))

  await t.test('which the old master, once awake, does not take back', async (t) => {
    master.program.kill('SIGCONT')
    t.equal(await redis.command(['SET', 'x', '2']), 'OK')
    t.equal(await redis.command(['GET', 'x']), '2')
  })
})

t.test('a master that its Sentinels have lost and replaced is given up', async (t) => {
  if (!requireTool(t, 'redis-server', 'redis-sentinel')) return
  const { master, replica, sentinel } = await startReplicated(t)
  const { redis, events, isReady } = connectTo(t, sentinel.url)
  await isReady()
  // For the Sentinel it does not answer. It is the master of all who are connected, and takes their writes.
  await ask(master.port, 'ACL SETUSER default -ping')
  await until('the new master', async () => {
    const reply = await redis.command(['INFO', 'server']).catch(() => '')
    return String(reply).includes(`tcp_port:${replica.port}`)
  })
  t.match(await ask(master.port, 'ROLE'), 'master')
  t.strictSame(events, ['ready', 'lost', 'ready'])
})
