import t from 'tap'
import {
  Histories,
  HistoryRecorder,
  RECORDER_TICK_MS,
  STEP_SEC,
  type WatchedStream,
} from '../../src/admin/history.ts'
import { PUBLISHER_REPORT } from '../stream/publisher-report.ts'

const STEPS = 120
const STEP_US = STEP_SEC * 1e6

function stream(id: string, figures: object = {}): WatchedStream & { reports: number } {
  const watched = {
    id,
    reports: 0,
    countViewers: () => 3,
    encoder: {
      report: () => {
        watched.reports++
        return { ...PUBLISHER_REPORT, ...figures }
      },
    },
  }
  return watched
}

/** Values of the last steps. */
function newest(values: readonly (number | null)[], count: number) {
  t.equal(values.length, STEPS)
  return values.slice(-count)
}

t.test('a history ends with the last complete step', async (t) => {
  const histories = new Histories()
  for (let step = 0; step < 3; step++) {
    histories.record(stream('a', { bitrateBps: 1000 * step, rttMs: 1.26 }), step * STEP_US)
  }
  const wallMs = 1_000_000
  const history = histories.read('a', 3 * STEP_US + 2_000_000, wallMs)
  t.equal(history.endMs, wallMs - 2000)
  t.equal(history.stepSec, STEP_SEC)
  t.strictSame(newest(history.bitrateBps, 4), [null, 0, 1000, 2000])
  t.strictSame(newest(history.rttMs, 2), [1.3, 1.3])
  t.strictSame(newest(history.viewers, 4), [null, 3, 3, 3])
})

t.test('lost packets are those of a step, also after another connection', async (t) => {
  const histories = new Histories()
  const counters = [10, 15, 15, 2]
  counters.forEach((packetsLost, step) =>
    histories.record(stream('a', { packetsLost }), step * STEP_US),
  )
  t.strictSame(newest(histories.read('a', 4 * STEP_US, 0).packetsLost, 4), [10, 5, 0, 2])
})

t.test('the counter of the other encoder does not count as losses', async (t) => {
  const histories = new Histories()
  const connections = [
    ['main', 10],
    ['backup', 500],
    ['backup', 503],
    ['main', 12],
    ['main', 13],
  ] as const
  connections.forEach(([source, packetsLost], step) => {
    const watched = stream('a', { packetsLost })
    histories.record({ ...watched, encoder: { ...watched.encoder!, source } }, step * STEP_US)
  })
  const { packetsLost } = histories.read('a', 5 * STEP_US, 0)
  t.strictSame(newest(packetsLost, 5), [10, null, 3, null, 1])
})

t.test('steps without an encoder are null, and those older than 10 minutes are gone', async (t) => {
  const histories = new Histories()
  histories.record(stream('a', { bitrateBps: 7 }), 0)
  histories.record(stream('a', { bitrateBps: 8 }), 3 * STEP_US)
  t.strictSame(newest(histories.read('a', 5 * STEP_US, 0).bitrateBps, 5), [7, null, null, 8, null])
  const { bitrateBps } = histories.read('a', 122 * STEP_US, 0)
  t.strictSame(
    bitrateBps.flatMap((value, index) => (value === null ? [] : [[index, value]])),
    [[1, 8]],
  )
  histories.record(stream('a', { bitrateBps: 9 }), 1000 * STEP_US)
  const later = histories.read('a', 1001 * STEP_US, 0).bitrateBps
  t.strictSame(newest(later, 2), [null, 9])
  t.equal(later.filter((value) => value !== null).length, 1)
})

t.test(
  'an unknown stream has an empty history, and a forgotten one is no longer kept',
  async (t) => {
    const histories = new Histories()
    histories.record(stream('a'), 0)
    histories.retain((id) => id !== 'a')
    const { bitrateBps } = histories.read('a', STEP_US, 0)
    t.ok(bitrateBps.every((value) => value === null))
  },
)

t.test('reads each encoder once a step, and only some of them at each tick', async (t) => {
  const streams = Array.from({ length: 1000 }, (_, index) => stream(`s${index}`))
  const histories = new Histories()
  const recorder = new HistoryRecorder(
    histories,
    () => streams,
    () => true,
  )
  const total = () => streams.reduce((sum, { reports }) => sum + reports, 0)
  for (let tick = 0, before = 0; tick < 60; tick++) {
    recorder.tick(STEP_US + tick * RECORDER_TICK_MS * 1000)
    t.ok(total() - before <= 100)
    before = total()
  }
  t.ok(streams.every(({ reports }) => reports === 3))
  t.strictSame(newest(histories.read('s999', 4 * STEP_US, 0).bitrateBps, 4).slice(0, 1), [null])
})
