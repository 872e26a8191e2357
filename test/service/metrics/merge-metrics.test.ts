import t from 'tap'
import { mergeMetrics } from '../../../src/service/metrics/merge-metrics.ts'

const family = (name: string, ...samples: readonly string[]) =>
  [`# HELP ${name} Some text.`, `# TYPE ${name} gauge`, ...samples, ''].join('\n')

t.test('adds up the metrics of several processes, family by family', async (t) => {
  const one = family('streams', 'streams{state="READY"} 1', 'streams{state="STOPPED"} 2')
  const other = family('streams', 'streams{state="READY"} 3') + family('bytes', 'bytes 1e+21')
  t.equal(
    mergeMetrics([one, other]),
    family('streams', 'streams{state="READY"} 4', 'streams{state="STOPPED"} 2') +
      family('bytes', 'bytes 1e+21'),
  )
  const named = family('sent', 'sent{stream="a b} 1"} 5')
  t.equal(mergeMetrics([named, named]), family('sent', 'sent{stream="a b} 1"} 10'))
})

t.test('takes the worst of what cannot be added up', async (t) => {
  const process = (ready: number, delaySec: number, startSec: number) =>
    family('millrace_ready', `millrace_ready ${ready}`) +
    family('millrace_loop_delay_p99_seconds', `millrace_loop_delay_p99_seconds ${delaySec}`) +
    family('process_start_time_seconds', `process_start_time_seconds ${startSec}`)
  t.equal(mergeMetrics([process(1, 0.2, 10), process(0, 0.1, 20)]), process(0, 0.2, 10))
})
