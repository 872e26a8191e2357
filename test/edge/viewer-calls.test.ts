/**
 * What an edge tells the owners of streams about its viewers.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { reportsOf, ViewerCalls } from '../../src/edge/viewer-calls.ts'
import { MillraceError } from '../../src/errors.ts'
import { parseViewerReport } from '../../src/service/viewers/viewer-report.ts'

const audience = (...viewers: number[]) => ({ sentBytes: { 'a.ts': 1 }, viewers })

t.test('tells each owner in one call about the viewers of its streams', async (t) => {
  const owners: Record<string, string> = { one: 'http://a', two: 'http://b', three: 'http://a' }
  const sent: unknown[] = []
  const calls = new ViewerCalls({
    edge: {
      findOwner: async (streamId) => {
        const owner = owners[streamId]
        if (owner === undefined) throw new MillraceError('STREAM_NOT_FOUND')
        return owner
      },
    },
    client: {
      post: async (url, path, body) => {
        sent.push([url, path, JSON.parse(body.toString())])
        if (url === 'http://a') throw new Error('the node is away')
      },
    },
  })
  const streams = { one: audience(1, -2), two: audience(3), three: audience(4), gone: audience(5) }
  calls.send({ ...streams, unseen: audience() })
  calls.send(streams)
  for (let turn = 0; turn < 10; turn++) await nextTurn()
  const expected = [
    ['http://a', '/node/viewers', { one: [1, -2], three: [4] }],
    ['http://b', '/node/viewers', { two: [3] }],
  ]
  t.strictSame(sent, expected, 'a report under way is not repeated')
  calls.send(streams)
  for (let turn = 0; turn < 10; turn++) await nextTurn()
  t.strictSame(sent, [...expected, ...expected], 'a node that was away is told again')
})

t.test('a report fits the body that a node reads, whatever the number of viewers', async (t) => {
  const viewers = Array.from({ length: 4096 }, () => -2_147_483_648)
  const streams = Array.from({ length: 20 }, (_, n): [string, readonly number[]] => [
    `${n}`.padEnd(128, 'x'),
    n % 2 === 0 ? viewers : [n],
  ])
  const reports = [...reportsOf(streams)]
  t.strictSame(Object.fromEntries(reports.flatMap(Object.entries)), Object.fromEntries(streams))
  for (const report of reports) {
    const text = JSON.stringify(report)
    t.ok(text.length <= 64 * 1024, `${text.length} bytes`)
    t.strictSame(parseViewerReport(JSON.parse(text)), report)
  }
  t.strictSame([...reportsOf([])], [])
})

t.test('a node refuses what is no report', async (t) => {
  for (const body of [null, [], { a: 1 }, { a: ['x'] }, { a: [1.5] }, { a: {} }]) {
    t.throws(() => parseViewerReport(body), { code: 'BODY_INVALID' })
  }
})
