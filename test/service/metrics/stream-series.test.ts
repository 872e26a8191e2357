import { Gauge, Registry } from 'prom-client'
import t from 'tap'
import { Packager } from '../../../src/hls/packager.ts'
import type { StreamReport } from '../../../src/api/records.ts'
import { StreamSeries, StreamSums } from '../../../src/service/metrics/stream-series.ts'

const HOSTILE = 'a"b\\c\nd\\" 1'

/** A stream with one warning, and no other figures. */
const MEASURED = {
  stream: {},
  report: {
    streamId: HOSTILE,
    live: true,
    warnings: [{ code: HOSTILE }],
    totals: { dropped: {} },
    playlist: {},
    readers: [],
  } as unknown as StreamReport,
  packaging: new Packager({ segmentSec: 2, maxSegmentSec: 10, epoch: 'e' }).stats,
  viewers: 0,
  sent: undefined,
}

/** Line that prom-client writes. */
async function lineOf(name: string, labels: Readonly<Record<string, string>>): Promise<string> {
  const registers = [new Registry()]
  const gauge = new Gauge({ name, help: 'help', labelNames: Object.keys(labels), registers })
  gauge.set(labels, 1)
  return (await registers[0]!.metrics()).split('\n')[2]!
}

t.test('labels are escaped as prom-client escapes them', async (t) => {
  const series = new StreamSeries()
  series.add([MEASURED])
  const lines = series.text.split('\n')
  const labels = { stream: HOSTILE, code: HOSTILE }
  t.ok(lines.includes(await lineOf('millrace_stream_live', { stream: HOSTILE })))
  t.ok(lines.includes(await lineOf('millrace_stream_warnings', labels)))
  const sums = new StreamSums().begin()
  sums.add([MEASURED])
  t.ok(sums.text.split('\n').includes(await lineOf('millrace_stream_warnings', { code: HOSTILE })))
})
