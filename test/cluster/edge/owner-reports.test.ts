/**
 * What an edge tells the owners of streams about its viewers and itself.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { OwnerReports, parts } from '../../../src/cluster/edge/owner-reports.ts'
import type { EdgeReport } from '../../../src/service/viewers/edges.ts'
import { MillraceError } from '../../../src/errors.ts'

const NEWEST = { playlist: 'playlist.m3u8', endMs: 1_790_000_000_000 }

const audience = (...viewers: number[]) => ({ sentBytes: { 'a.ts': 1 }, viewers })

t.test('tells each owner in one call about the viewers of its streams', async (t) => {
  const owners: Record<string, string> = { one: 'http://a', two: 'http://b', three: 'http://a' }
  const sent: unknown[] = []
  const refused: string[] = []
  const reports = new OwnerReports({
    readName: () => 'edge:1',
    edge: {
      findOwner: async (streamId) => {
        const owner = owners[streamId]
        if (owner === undefined) throw new MillraceError('STREAM_NOT_FOUND')
        return owner
      },
      newest: (streamId) => (streamId === 'one' ? NEWEST : undefined),
    },
    client: {
      post: async (url, path, body) => {
        sent.push([url, path, JSON.parse(body.toString())])
        if (url === 'http://a') throw new Error('the node is away')
        return { status: 403, bytes: Buffer.alloc(0) }
      },
    },
    onRefused: (message) => refused.push(message),
  })
  const streams = { one: audience(1, -2), two: audience(3), three: audience(4), gone: audience(5) }
  reports.send({ ...streams, unseen: audience() })
  reports.send(streams)
  for (let turn = 0; turn < 10; turn++) await nextTurn()
  const expected = [
    [
      'http://a',
      '/node/edge-report',
      {
        edge: 'edge:1',
        streams: { one: { viewers: [1, -2], newest: NEWEST }, three: { viewers: [4] } },
      },
    ],
    ['http://b', '/node/edge-report', { edge: 'edge:1', streams: { two: { viewers: [3] } } }],
  ]
  t.strictSame(sent, expected, 'a report under way is not repeated')
  reports.send(streams)
  for (let turn = 0; turn < 10; turn++) await nextTurn()
  t.strictSame(sent, [...expected, ...expected], 'a node that was away is told again')
  t.strictSame(refused, [
    'http://b does not count viewers of this node: it answers 403 at /node/edge-report',
  ])
})

t.test('a report fits the body that a node reads, whatever the number of viewers', async (t) => {
  const viewers = Array.from({ length: 4096 }, () => -2_147_483_648)
  const newest = { playlist: 'playlist_audio_12.m3u8', endMs: 1_790_000_000_000.125 }
  const streams = Array.from({ length: 500 }, (_, n): [string, EdgeReport['streams'][string]] => [
    `${n}`.padEnd(128, 'x'),
    { viewers: n % 50 === 0 ? viewers : [n], newest },
  ])
  const reports = [...parts(streams)]
  t.strictSame(Object.fromEntries(reports.flatMap(Object.entries)), Object.fromEntries(streams))
  for (const part of reports) {
    const { length } = JSON.stringify({ edge: 'x'.repeat(2000), streams: part })
    t.ok(length <= 64 * 1024, `${length} bytes`)
  }
  t.strictSame([...parts([])], [])
})
