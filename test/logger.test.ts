import t from 'tap'
import { createLogger, readableLine } from '../src/logger.ts'

const lines: string[] = []
const logger = createLogger('debug', { write: (line) => void lines.push(line) })

t.beforeEach(() => void lines.splice(0))

t.test('a readable line has time, level, message and values', async (t) => {
  logger.warn({ stream_id: 'studio', note: 'two words', viewers: 3, tracks: ['a'] }, 'source lost')
  t.match(
    readableLine(lines[0]!, false),
    /^\d\d:\d\d:\d\d WARN {2}source lost stream_id=studio note="two words" viewers=3 tracks=\["a"\]\n$/,
  )
  t.match(readableLine(lines[0]!, true), '\u001b[33mWARN \u001b[39m')
})

t.test('a stack has lines of its own, and a value of a client has not', async (t) => {
  logger.fatal({ stack: 'Error: x\n    at y' }, 'Uncaught error')
  t.match(readableLine(lines[0]!, false), /^\S+ FATAL Uncaught error\n {4}Error: x\n {4}at y\n$/)
  logger.info({ peer: 'a\n\u001b[2J\u009b1m\u202e' }, 'b\r\u001b[31m')
  const line = readableLine(lines[1]!, false)
  t.match(line, /^[^\p{C}]*\n$/u)
})
