import t from 'tap'
import { mergeMetrics } from '../../../src/service/metrics/merge-metrics.ts'

const family = (name: string, ...samples: readonly string[]) =>
  [`# HELP ${name} Some text.`, `# TYPE ${name} gauge`, ...samples, ''].join('\n')

t.test('labels the metrics of several processes, family by family', async (t) => {
  const one = family('streams', 'streams{state="READY"} 1', 'streams{state="STOPPED"} 2')
  const other = family('streams', 'streams{state="READY"} 1') + family('bytes', 'bytes 1e+21')
  t.equal(
    mergeMetrics([
      { process: 'a', text: one },
      { process: 'b', text: other },
    ]),
    family(
      'streams',
      'streams{process="a",state="READY"} 1',
      'streams{process="a",state="STOPPED"} 2',
      'streams{process="b",state="READY"} 1',
    ) + family('bytes', 'bytes{process="b"} 1e+21'),
  )
})

t.test('leaves the values of labels as they are', async (t) => {
  const named = family('sent', 'sent{stream="a b} 1",x="{"} 5')
  t.equal(
    mergeMetrics([{ process: 'a', text: named }]),
    family('sent', 'sent{process="a",stream="a b} 1",x="{"} 5'),
  )
})
