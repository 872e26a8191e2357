import t from 'tap'
import { LookUp, parseHosts, searchNames } from '../../src/outbound/look-up.ts'
import { startNameServer } from '../support/name-server.ts'

const HOSTS = `
127.0.0.1   localhost
# 192.0.2.9 receiver
192.0.2.1\treceiver receiver.internal # 192.0.2.8 other
fd00::1     Receiver
fe80::1%lo0 receiver
not-an-address receiver
192.0.2.2   my-receiver
`

function start(
  t: Parameters<typeof startNameServer>[0],
  answer: Parameters<typeof startNameServer>[1],
  files: object = {},
) {
  let nowUs = 0
  return startNameServer(t, answer).then(({ queries, createResolver }) => ({
    queries,
    pass: (us: number) => (nowUs += us),
    lookUp: new LookUp({
      clock: { nowUs: () => nowUs, wallMs: () => 0 },
      createResolver,
      readSystemFile: async (path) => (files as Record<string, string>)[path] ?? '',
    }),
  }))
}

t.test('finds the addresses of a name in a hosts file', async (t) => {
  t.strictSame(parseHosts(HOSTS, 'receiver'), ['192.0.2.1', 'fd00::1'])
  t.strictSame(parseHosts(HOSTS, 'receiver.internal'), ['192.0.2.1'])
  t.strictSame(parseHosts(HOSTS, 'my-receiver'), ['192.0.2.2'])
  for (const name of ['other', 'my', '192.0.2.8', 'eceiver'])
    t.strictSame(parseHosts(HOSTS, name), [])
})

t.test('completes names with fewer dots than ndots by the search list first', async (t) => {
  const cluster = 'nameserver 10.0.0.10\nsearch a.svc.local svc.local.\noptions timeout:2 ndots:5'
  t.strictSame(searchNames(cluster, 'receiver.b'), [
    'receiver.b.a.svc.local',
    'receiver.b.svc.local',
    'receiver.b',
  ])
  t.strictSame(searchNames('search example.org', 'receiver'), ['receiver.example.org', 'receiver'])
  t.strictSame(searchNames('domain example.org', 'a.b'), ['a.b', 'a.b.example.org'])
  for (const text of ['', 'search', 'search .', 'options ndots:x']) {
    t.strictSame(searchNames(text, 'receiver'), ['receiver'], text)
  }
})

t.test('sends no query for addresses, localhost and names of the hosts file', async (t) => {
  const { lookUp, queries } = await start(t, () => ['192.0.2.99'], { '/etc/hosts': HOSTS })
  t.strictSame(await lookUp.find('192.0.2.5'), ['192.0.2.5'])
  t.strictSame(await lookUp.find('fd00::5'), ['fd00::5'])
  t.strictSame(await lookUp.find('localhost'), ['127.0.0.1', '::1'])
  t.strictSame(await lookUp.find('receiver'), ['192.0.2.1', 'fd00::1'])
  t.strictSame(queries, [])
  t.strictSame(await lookUp.find('other.example'), ['192.0.2.99'])
})

t.test('looks up a name once at a time, and again after 10 s', async (t) => {
  let address = '192.0.2.1'
  const { lookUp, queries, pass } = await start(t, () => [address])
  const all = await Promise.all([1, 2, 3].map(() => lookUp.find('receiver.example')))
  t.strictSame(all, [['192.0.2.1'], ['192.0.2.1'], ['192.0.2.1']])
  t.equal(queries.length, 2, 'for IPv4 and for IPv6')
  address = '192.0.2.2'
  pass(9_999_999)
  t.strictSame(await lookUp.find('receiver.example'), ['192.0.2.1'])
  pass(1)
  t.strictSame(await lookUp.find('receiver.example'), ['192.0.2.2'])
})

t.test('rejects an unknown name with its code, and looks it up again', async (t) => {
  let isKnown = false
  const { lookUp } = await start(t, (name) => {
    if (name === 'silent.example') return undefined
    return isKnown ? ['192.0.2.1'] : 'unknown'
  })
  await t.rejects(lookUp.find('receiver.example'), { code: 'ENOTFOUND' })
  isKnown = true
  t.strictSame(await lookUp.find('receiver.example'), ['192.0.2.1'])
  await t.rejects(lookUp.find('silent.example'), { code: 'ETIMEOUT' })
})

t.test('finds a name under a suffix of the search list', async (t) => {
  const resolvConf = 'search a.example b.example\noptions ndots:2'
  const answer = (name: string) => (name === 'receiver.b.example' ? ['192.0.2.1'] : 'unknown')
  const { lookUp } = await start(t, answer, { '/etc/resolv.conf': resolvConf })
  t.strictSame(await lookUp.find('receiver'), ['192.0.2.1'])
  await t.rejects(lookUp.find('other'), { code: 'ENOTFOUND' })
})

t.test('close cancels pending look-ups', async (t) => {
  const { lookUp } = await start(t, () => undefined)
  const found = lookUp.find('silent.example')
  setImmediate(() => lookUp.close())
  await t.rejects(found, { code: 'ECANCELLED' })
  await t.rejects(lookUp.find('other.example'), { code: 'ECANCELLED' })
})
