import t from 'tap'
import { GuardLog } from '../../../src/http/guard/guard-log.ts'
import { createLogger } from '../../../src/logger.ts'

const SEC = 1_000_000

t.test('logs each counter at once, then at most once a minute with its increase', async (t) => {
  const lines: string[] = []
  const log = new GuardLog(createLogger('warn', { write: (line) => void lines.push(line) }))
  log.report(0)
  t.equal(lines.length, 0, 'nothing happened')
  for (let i = 0; i < 3; i++) log.count('slow')
  log.report(1 * SEC)
  t.match(lines, [/Slow readers disconnected: 3,/])
  log.count('slow')
  log.count('refused')
  log.report(60 * SEC)
  t.match(lines.slice(1), [/HTTP connections refused: 1,/])
  log.report(61 * SEC)
  t.match(lines.slice(2), [/Slow readers disconnected: 1,/])
  log.report(1000 * SEC)
  t.equal(lines.length, 3, 'nothing new')
  t.match(log.counters, { slow: 4, refused: 1, expired: 0 })
})

t.test('a line has three sentences and at most 160 characters', async (t) => {
  const lines: string[] = []
  const log = new GuardLog(createLogger('warn', { write: (line) => void lines.push(line) }))
  for (const counter of Object.keys(log.counters)) {
    log.counters[counter as keyof typeof log.counters] = 1_234_567_890
  }
  log.report(0)
  t.equal(lines.length, 8)
  for (const line of lines) {
    const { msg } = JSON.parse(line) as { msg: string }
    t.ok(msg.length <= 160, msg)
    t.equal(msg.split('. ').length, 3, msg)
  }
})
