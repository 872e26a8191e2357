/**
 * Identity of peers: cookies before the connection, socket ids afterwards.
 */
import t from 'tap'
import { CookieIssuer } from '../../src/srt/handshake/cookie.ts'
import { SocketTable } from '../../src/srt/connection/socket-table.ts'
import { createRandom } from '../support/random.ts'

const owner = { address: '192.0.2.1', port: 4000, socketId: 7 }
const SEC = 1e6

t.test(
  'a cookie stays valid across one rotation of the secret, every 30 s, but not two',
  async (t) => {
    const cookies = new CookieIssuer(createRandom(1).bytes, 0)
    const cookie = cookies.issue(owner, 1 * SEC)
    t.equal(cookies.issue(owner, 29 * SEC), cookie)
    const next = cookies.issue(owner, 31 * SEC)
    t.not(next, cookie)
    t.ok(cookies.verify(cookie, owner, 60 * SEC))
    t.equal(cookies.issue(owner, 60 * SEC), next)
    t.notOk(cookies.verify(cookie, owner, 62 * SEC))
    t.ok(cookies.verify(next, owner, 90 * SEC))
  },
)

t.test('a secret expires after a minute without handshakes', async (t) => {
  const cookies = new CookieIssuer(createRandom(1).bytes, 0)
  const cookie = cookies.issue(owner, 0)
  t.notOk(cookies.verify(cookie, owner, 60 * SEC))
})

t.test('an issuer rejects the cookies of another', async (t) => {
  const [one, other] = [1, 2].map((seed) => new CookieIssuer(createRandom(seed).bytes, 0))
  t.notOk(other!.verify(one!.issue(owner, 0), owner, 0))
})

t.test('finds a socket by its id until it is deleted', async (t) => {
  const table = new SocketTable<string>(createRandom(1).bytes)
  const ids = Array.from({ length: 1000 }, () => table.allocate())
  for (const id of ids) table.set(id, `socket ${id}`)
  t.equal(new Set(ids).size, 1000)
  t.ok(ids.every((id) => id >= 1 && id < 2 ** 30 && table.get(id) === `socket ${id}`))
  for (const strange of [0, -1, -ids[0]!, ids[0]! ^ 0x20000000, 2 ** 31 - 1]) {
    t.equal(table.get(strange), undefined)
    table.delete(strange)
  }
  t.equal(table.size, 1000)
  for (const id of ids.slice(0, 999)) table.delete(id)
  t.equal(table.size, 1)
  t.equal(table.get(ids[0]!), undefined)
  t.equal(table.get(ids[999]!), `socket ${ids[999]}`)
})

t.test('draws another id for one that is taken or invalid', async (t) => {
  const drawn = [5, 5, 0, 0x40000000, 5 + 64, 6]
  const table = new SocketTable<string>(() => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(drawn.shift()!)
    return bytes
  })
  t.equal(table.allocate(), 5)
  t.equal(table.allocate(), 6)
})
