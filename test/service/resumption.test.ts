import t from 'tap'
import { Resumption } from '../../src/service/resumption.ts'

const STARTED_MS = Date.UTC(2026, 10, 22, 12, 0, 0, 700)
const STARTED_SEC = Math.floor(STARTED_MS / 1000)

const key = (streamId: string, issuedAtSec = STARTED_SEC - 60) => ({
  streamId,
  issuedAtSec,
  expiresAtSec: issuedAtSec + 7200,
})

t.test('allows keys from before the start whose streams have not ended since', async (t) => {
  const resumption = new Resumption({ enabled: true, startedMs: STARTED_MS })
  t.ok(resumption.allows(key('studio')))
  t.notOk(resumption.allows(key('studio', STARTED_SEC)), 'of the second of the start')
  resumption.end('studio', STARTED_MS + 1000)
  t.notOk(resumption.allows(key('studio')))
  t.ok(resumption.allows(key('other')))
})

t.test('takes a key without time of issue as issued two hours before it expires', async (t) => {
  const resumption = new Resumption({ enabled: true, startedMs: STARTED_MS })
  t.ok(resumption.allows({ streamId: 'studio', expiresAtSec: STARTED_SEC + 7199 }))
  t.notOk(resumption.allows({ streamId: 'studio', expiresAtSec: STARTED_SEC + 7200 }))
})

t.test('allows no key when resumption is disabled', async (t) => {
  const resumption = new Resumption({ enabled: false, startedMs: STARTED_MS })
  t.notOk(resumption.allows(key('studio')))
})

t.test('ends when the last key from before the start expires', async (t) => {
  const resumption = new Resumption({ enabled: true, startedMs: STARTED_MS })
  const yearMs = 365 * 24 * 3_600_000
  resumption.end('studio', STARTED_MS + yearMs - 1000)
  t.ok(resumption.allows(key('other')))
  resumption.end('studio', STARTED_MS + yearMs)
  t.notOk(resumption.allows(key('other')))
})

t.test('ends when more streams have ended than it remembers', async (t) => {
  const resumption = new Resumption({ enabled: true, startedMs: STARTED_MS })
  for (let i = 0; i < 100_000; i++) resumption.end(`s${i}`, STARTED_MS)
  t.ok(resumption.allows(key('studio')))
  resumption.end('one-more', STARTED_MS)
  t.notOk(resumption.allows(key('studio')))
  t.notOk(resumption.allows(key('s0')), 'what ended stays ended')
})
