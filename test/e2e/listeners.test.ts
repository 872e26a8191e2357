/**
 * Listeners of a program that throw: the stream goes on, and the log says so.
 */
import { pino } from 'pino'
import t from 'tap'
import { publishDemo } from '../support/demo-encoder.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'

t.test(
  'a listener that throws costs the stream neither its encoder nor its segments',
  async (t) => {
    const lines: string[] = []
    const logger = pino({ level: 'error' }, { write: (line: string) => void lines.push(line) })
    const { server } = await startService(t, { logger, hls: { segmentSec: 0.5 } })
    server.on('stream', (stream) => {
      stream.on('publish', () => {
        throw new Error('no publish')
      })
      stream.on('segment', () => {
        throw new Error('no segment')
      })
    })
    const { srtUrl } = await server.startStream({ streamId: 'studio' })
    publishDemo(t, srtUrl, { mayFail: true })
    await until('a live stream', () => server.status('studio').live)
    const { segments } = server.status('studio').totals
    await until('more segments', () => server.status('studio').totals.segments > segments + 2)
    t.equal(server.status('studio').totals.publishers, 1)
    t.match(
      lines.join(''),
      /"message":"no publish".*a listener of the event of a stream has thrown/,
    )
    t.match(lines.join(''), /"message":"no segment"/)
  },
)
