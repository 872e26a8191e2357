/**
 * Nodes and edges over Redis and Sentinels with TLS and passwords, as operators set them up; and what the log says when a
 * setting is wrong.
 */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { makeCertificate, writeCertificate } from '../../support/certificate.ts'
import { freePort } from '../../support/free-port.ts'
import { createSecrets, startNodes, type NodeProcess } from '../support/node-processes.ts'
import { startRedis, startSentinel } from '../support/redis.ts'
import { tryApi } from '../../support/service.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'

const password = () => randomBytes(12).toString('hex')

/** As docs/cluster.md has them. */
const RIGHTS = ['~mr:*', '+@all', '-@dangerous', '+info']

/** A master with a replica and a Sentinel, each with TLS and a password. */
async function startSecured(t: Test) {
  const { cert, key } = writeCertificate(t)
  const [ofRedis, ofSentinel, ofNodes] = [password(), password(), password()]
  const tls = {
    ...{ 'tls-cert-file': cert, 'tls-key-file': key, 'tls-ca-cert-file': cert },
    ...{ 'tls-auth-clients': 'no', 'tls-replication': 'yes' },
  }
  const start = async (settings: object) => {
    const tlsPort = await freePort()
    const auth = { requirepass: ofRedis, masterauth: ofRedis }
    const all = { ...tls, ...auth, 'tls-port': tlsPort, ...settings }
    const args = Object.entries(all).flatMap(([name, value]) => [`--${name}`, String(value)])
    const user = ['--user', 'millrace', 'on', `>${ofNodes}`, ...RIGHTS]
    const { program } = await startRedis(t, { args: [...args, ...user] })
    const cli = (...command: string[]) =>
      execFileSync(
        'redis-cli',
        ['-p', String(tlsPort), '--tls', '--cacert', cert, '--no-auth-warning', ...command],
        { encoding: 'utf8' },
      )
    return { tlsPort, program, cli: (...command: string[]) => cli('-a', ofRedis, ...command) }
  }
  const master = await start({})
  const replica = await start({ replicaof: `127.0.0.1 ${master.tlsPort}` })
  await until('the copy', () =>
    replica.cli('INFO', 'replication').includes('master_link_status:up'),
  )
  const sentinelPort = await freePort()
  await startSentinel(t, master.tlsPort, {
    settings: [
      ...Object.entries(tls).map((pair) => pair.join(' ')),
      ...[`tls-port ${sentinelPort}`, `requirepass ${ofSentinel}`],
      `sentinel auth-pass main ${ofRedis}`,
    ],
  })
  const askSentinel = (...command: string[]) =>
    execFileSync(
      'redis-cli',
      [
        ...['-p', String(sentinelPort), '--tls', '--cacert', cert],
        ...['--no-auth-warning', '-a', ofSentinel, ...command],
      ],
      { encoding: 'utf8' },
    )
  await until('the Sentinel knows the replica', () =>
    askSentinel('SENTINEL', 'REPLICAS', 'main').includes(String(replica.tlsPort)),
  )
  return { cert, ofRedis, ofSentinel, ofNodes, master, replica, sentinelPort }
}

t.test('a cluster over TLS, with passwords, survives a failover', async (t) => {
  if (!requireTool(t, 'redis-server', 'redis-sentinel', 'redis-cli')) return
  const { cert, ofNodes, ofSentinel, master, replica, sentinelPort } = await startSecured(t)
  const secrets = createSecrets()
  const url = `rediss+sentinel://millrace:${ofNodes}@127.0.0.1:${sentinelPort}/main?sentinel_password=${ofSentinel}`
  const env = { ...secrets, REDIS_URL: url, NODE_EXTRA_CA_CERTS: cert }
  const [node] = (await startNodes(t, 'serve', env, 1)) as [NodeProcess]
  const [edge] = (await startNodes(t, 'edge', env, 1)) as [NodeProcess]
  const start = async (streamId: string) => {
    const call = () =>
      tryApi(edge.url, 'start-stream', { stream_id: streamId }, secrets.HMAC_SECRET)
    await until('the stream is started', async () => (await call()).status === 200)
  }
  await start('before')
  master.program.kill('SIGKILL')
  await until('the new master', () => {
    try {
      return replica.cli('ROLE').startsWith('master')
    } catch {
      // A failover ends connections.
      return false
    }
  })
  await start('after')
  t.match(replica.cli('KEYS', 'mr:{*}'), /before[^]*after|after[^]*before/)
  for (const { program } of [node, edge]) {
    t.notMatch(program.output(), ofNodes)
    t.notMatch(program.output(), ofSentinel)
  }
})

t.test('the log says what is wrong, without a password', async (t) => {
  if (!requireTool(t, 'redis-server', 'redis-sentinel', 'redis-cli')) return
  const { cert, ofRedis, ofSentinel, master, sentinelPort } = await startSecured(t)
  const { port } = await startRedis(t)
  const other = writeCertificate(t, makeCertificate('other')).cert
  const server = `127.0.0.1:${master.tlsPort}`
  const sentinels = `127.0.0.1:${sentinelPort}/main`
  const wrong = 'wrong-password'
  const cases: { url: string; ca?: string; reason: RegExp }[] = [
    { url: `rediss://:${wrong}@${server}`, reason: /WRONGPASS / },
    { url: `rediss://nobody:${ofRedis}@${server}`, reason: /WRONGPASS / },
    { url: `rediss://${server}`, reason: /NOAUTH / },
    { url: `rediss://:${ofRedis}@${server}/99`, reason: /ERR DB index is out of range/ },
    { url: `rediss://:${ofRedis}@${server}`, ca: other, reason: /self-signed certificate/ },
    { url: `redis://:${ofRedis}@${server}`, reason: /ECONNRESET|closed/ },
    { url: `rediss://127.0.0.1:${port}`, reason: /Connection timeout|wrong version number/ },
    {
      url: `rediss+sentinel://:${ofRedis}@${sentinels}?sentinel_password=${wrong}`,
      reason: /Sentinel.*WRONGPASS /,
    },
    { url: `rediss+sentinel://:${ofRedis}@${sentinels}`, reason: /Sentinel.*NOAUTH / },
    {
      url: `rediss+sentinel://:${wrong}@${sentinels}?sentinel_password=${ofSentinel}`,
      reason: /"WRONGPASS /,
    },
  ]
  const secrets = createSecrets()
  for (const { url, ca = cert, reason } of cases) {
    const env = { ...secrets, REDIS_URL: url, NODE_EXTRA_CA_CERTS: ca }
    const [node] = (await startNodes(t, 'edge', env, 1)) as [NodeProcess]
    await until(`the log says why: ${reason}`, () => reason.test(node.program.output()))
    t.notMatch(node.program.output(), new RegExp([wrong, ofRedis, ofSentinel].join('|')))
    node.program.kill('SIGKILL')
  }
})
