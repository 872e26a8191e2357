import type { Profiler } from 'node:inspector/promises'
import t from 'tap'
import { readWrk } from '../../bench/http/load.ts'
import type { FileResult } from '../../bench/http/measure.ts'
import { topSelfTimes } from '../../bench/http/profile.ts'
import { httpFigures } from '../../bench/http/report.ts'

const OUTPUT = `Running 2s test @ http://127.0.0.1:8080/
  1 threads and 16 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   457.68us    1.24ms  35.06ms   97.95%
    Req/Sec    58.14k     5.12k   63.29k    80.00%
  Latency Distribution
     50%  211.00us
     75%  275.00us
     90%  451.00us
     99%    7.55ms
  115721 requests in 2.00s, 24.28MB read
`

t.test('output of wrk gives rate, bytes and percentiles', async (t) => {
  const output = `${OUTPUT}Requests/sec:  57836.02\nTransfer/sec:     12.14MB\n`
  t.same(readWrk(output, 200), {
    replies: 115_721,
    repliesPerSec: 57_836.02,
    bytesPerSec: 12.14 * 2 ** 20,
    p50Ms: 0.211,
    p99Ms: 7.55,
    failures: 0,
  })
})

t.test('output of wrk with broken connections and refusals counts both as failures', async (t) => {
  const output = `${OUTPUT}  Socket errors: connect 0, read 2, write 1, timeout 4
  Non-2xx or 3xx responses: 10
Requests/sec:  57836.02
Transfer/sec:      1.10GB
`
  t.equal(readWrk(output, 200).failures, 17)
})

t.test('output of wrk for an expected 404 counts all other replies as failures', async (t) => {
  const all = `${OUTPUT}  Non-2xx or 3xx responses: 115721\n`
  t.equal(readWrk(all, 404).failures, 0)
  t.equal(readWrk(OUTPUT, 404).failures, 115_721)
})

t.test('output of wrk without a run is an error', async (t) => {
  t.throws(() => readWrk('invalid argument', 200), /wrk has not run/)
})

t.test('figures leave out rounds that other processes disturbed', async (t) => {
  const resultOf = (server: string, scenario: string, othersCpuLoad: number): FileResult => ({
    ...{ server, scenario, tool: 'wrk', sizeBytes: 1000, othersCpuLoad },
    ...{ replies: 1000, repliesPerSec: 1000, bytesPerSec: 1e6, p50Ms: 1, p99Ms: 2, failures: 0 },
    ...{ cpuLoad: 1, cpuUsPerReply: 1000, rssBytes: 1e8 },
  })
  const files = [
    ...[resultOf('millrace', 'part', 0.1), resultOf('nginx', 'part', 0.1)],
    ...[resultOf('millrace', 'segment', 0.1), resultOf('nginx', 'segment', 0.9)],
  ]
  t.match(httpFigures({ files }), { 'part-nginx': 1, 'segment-nginx': NaN, 'playlist-node': NaN })
})

t.test('self times of profiles are sorted, without idle time', async (t) => {
  const frame = (id: number, functionName: string, url = '') => ({
    id,
    callFrame: { functionName, url, scriptId: '0', lineNumber: 41, columnNumber: 0 },
  })
  const profile: Profiler.Profile = {
    nodes: [
      frame(1, '(root)'),
      frame(2, '(idle)'),
      frame(3, 'sendFile', 'file:///work/app/dist/playback/file-reply.js'),
      frame(4, 'writev'),
    ],
    startTime: 0,
    endTime: 1000,
    // Each sample lasts until the next one.
    samples: [1, 4, 2, 3, 4, 2],
    timeDeltas: [10, 10, 300, 500, 100, 200],
  }
  t.same(topSelfTimes([profile, profile], 5), [
    { share: 0.8333333333333334, name: 'writev', place: '' },
    { share: 0.16666666666666666, name: 'sendFile', place: 'dist/playback/file-reply.js:42' },
  ])
  t.equal(topSelfTimes([profile], 1).length, 1)
})
