import t from 'tap'
import { Sessions, SESSION_SEC } from '../../src/admin/sessions.ts'

t.test('a session lasts 12 hours', async (t) => {
  const sessions = new Sessions(() => 'password')
  const value = sessions.open(1000)
  const endMs = 1000 + SESSION_SEC * 1000
  t.equal(SESSION_SEC, 12 * 3600)
  t.ok(sessions.isOpen(value, 1000))
  t.ok(sessions.isOpen(value, endMs - 1))
  t.notOk(sessions.isOpen(value, endMs))
})

t.test('another password ends all sessions', async (t) => {
  let password = 'password'
  const sessions = new Sessions(() => password)
  const value = sessions.open(0)
  password = 'other'
  t.notOk(sessions.isOpen(value, 0))
  t.ok(sessions.isPassword('other'))
  t.notOk(sessions.isPassword('password'))
})

t.test('a restart or another password loses a session before its time', async (t) => {
  let password = 'password'
  const [before, sessions] = [new Sessions(() => password), new Sessions(() => password)]
  const headersOf = (value: string) => ({ cookie: `theme=dark; millrace_admin=${value}` })
  const lost = headersOf(before.open(0))
  t.notOk(before.hasLost(lost, 0), 'it is open')
  t.ok(sessions.hasLost(lost, 0))
  t.notOk(sessions.hasLost(lost, SESSION_SEC * 1000))
  const closed = sessions.open(0)
  sessions.close(closed)
  t.notOk(sessions.hasLost(headersOf(closed), 0), 'its owner has ended it')
  password = 'other'
  t.ok(before.hasLost(lost, 0))
  for (const none of ['', '..', 'x', 'a.b.c']) t.notOk(sessions.hasLost(headersOf(none), 0), none)
  t.notOk(sessions.hasLost({}, 0))
})

t.test('a closed session stays closed, and others stay open', async (t) => {
  const sessions = new Sessions(() => 'password')
  const [one, other] = [sessions.open(0), sessions.open(0)]
  t.not(one, other)
  sessions.close(one)
  t.notOk(sessions.isOpen(one, 0))
  t.ok(sessions.isOpen(other, 0))
})

t.test('a value that is changed in any place is refused', async (t) => {
  const sessions = new Sessions(() => 'password')
  const value = sessions.open(0)
  for (let index = 0; index < value.length; index++) {
    const changed =
      value.slice(0, index) + (value[index] === 'A' ? 'B' : 'A') + value.slice(index + 1)
    // The last character of base64url has bits that stand for nothing; the text is compared.
    t.notOk(sessions.isOpen(changed, 0), changed)
  }
  for (const each of ['', '.', '..', '...', `${value}.`, `.${value}`, value.replace('.', '')]) {
    t.notOk(sessions.isOpen(each, 0), each)
  }
})
