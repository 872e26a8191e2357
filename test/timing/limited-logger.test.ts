import t from 'tap'
import { AUDIT_LIMITS, limitLines } from '../../src/timing/limited-logger.ts'
import { createLogger } from '../../src/logger.ts'

function setUp(limits?: Parameters<typeof limitLines>[2]) {
  const lines: Record<string, unknown>[] = []
  const logger = createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) })
  let nowUs = 0
  const log = limitLines(logger, { nowUs: () => nowUs }, limits)
  return { log, lines, passSec: (sec: number) => void (nowUs += sec * 1e6) }
}

t.test('writes five lines of a kind at once, then one a second with a count', async (t) => {
  const { log, lines, passSec } = setUp()
  for (let call = 0; call < 100; call++) log.warn({ call }, `encoder rejected: reason ${call}`)
  t.equal(lines.length, 5)
  passSec(1)
  for (let call = 0; call < 100; call++) log.warn({}, 'encoder rejected: Token expired')
  t.equal(lines.length, 6)
  t.match(lines[5], { unlogged: 95, msg: 'encoder rejected: Token expired', level: 40 })
  passSec(60)
  for (let call = 0; call < 3; call++) log.warn({}, 'encoder rejected: Token expired')
  t.match(lines[6], { unlogged: 99 })
  t.notOk('unlogged' in lines[7]!)
  t.equal(lines.length, 9)
})

t.test('limits streams, levels and different words separately', async (t) => {
  const { log, lines } = setUp()
  const [one, two] = [log.child({ stream_id: 'one' }), log.child({ stream_id: 'two' })]
  for (let call = 0; call < 20; call++) {
    one.info({}, 'encoder connected')
    one.warn({}, `Key frames are ${call} s apart`)
    two.info({}, 'encoder connected')
    log.error({}, 'request failed')
  }
  t.equal(lines.length, 20)
  t.match(lines[2], { stream_id: 'two', msg: 'encoder connected' })
})

t.test('limits codes and receivers of webhooks separately', async (t) => {
  const { log, lines } = setUp()
  for (let call = 0; call < 20; call++) log.warn({ code: 'STREAM_KEY_INVALID' }, 'encoder rejected')
  log.warn({ code: 'ENCRYPTION_MISSING' }, 'encoder rejected')
  for (let call = 0; call < 20; call++) log.warn({ webhook: 'http://one' }, 'Webhook failed')
  log.warn({ webhook: 'http://two' }, 'Webhook failed')
  t.equal(lines.length, 2 * 5 + 2)
  t.match(lines[5], { code: 'ENCRYPTION_MISSING' })
  t.match(lines[11], { webhook: 'http://two' })
})

t.test(
  'more kinds than are remembered do not undo the bound, and every line is counted',
  async (t) => {
    const { log, lines, passSec } = setUp()
    const streams = Array.from({ length: 1001 }, (_, id) => log.child({ stream_id: String(id) }))
    for (let call = 0; call < 20; call++) {
      for (const stream of streams) stream.info({}, 'encoder connected')
    }
    t.equal(lines.length, 1000, 'of 20,020 lines at once')
    for (const stream of streams) {
      passSec(0.05)
      stream.info({}, 'encoder connected')
    }
    t.equal(lines.length, 2001, 'and 20 a second')
    const dropped = lines.reduce((sum, { unlogged = 0, unlogged_others: others = 0 }) => {
      return sum + (unlogged as number) + (others as number)
    }, 0)
    t.equal(lines.length + dropped, 21 * 1001)
  },
)

t.test('writes two lines a second in an hour of reconnections', async (t) => {
  const { log, lines, passSec } = setUp()
  const stream = log.child({ stream_id: 'studio' })
  for (let call = 0; call < 36_000; call++) {
    stream.info({ remote: '192.0.2.1:5000' }, 'encoder connected')
    stream.info({ reason: 'shutdown' }, 'encoder gone')
    passSec(0.1)
  }
  t.ok(lines.length <= 2 * (3600 + 5), `${lines.length} of 72000`)
  const left = lines.reduce((sum, { unlogged = 0 }) => sum + (unlogged as number), 0)
  t.ok(lines.length + left > 71_900, 'and all are counted')
})

t.test('bounds its memory with any number of kinds', async (t) => {
  const { log, lines, passSec } = setUp()
  for (let id = 0; id < 5000; id++) {
    log.child({ stream_id: String(id) }).info({}, 'stream started')
    passSec(0.05)
  }
  t.equal(lines.length, 5000)
  for (let call = 0; call < 20; call++) log.child({ stream_id: '4999' }).info({}, 'stream started')
  t.equal(lines.length, 5004, 'and the newest are remembered')
})

t.test('writes 1000 audit lines at once, then 100 a second with a count', async (t) => {
  const { log, lines, passSec } = setUp(AUDIT_LIMITS)
  for (let call = 0; call < 1500; call++) log.info({ audit: 'kick' }, 'API call')
  t.equal(lines.length, 1000)
  passSec(1)
  for (let call = 0; call < 1500; call++) log.info({ audit: 'kick' }, 'API call')
  t.equal(lines.length, 1100)
  t.match(lines[1000], { audit: 'kick', unlogged: 500 })
})
