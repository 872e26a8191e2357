/** Limits on the CPU time of a stream, and the consequences of exceeding them. */
import t from 'tap'
import { WorkBudget, workOfInsertion } from '../../src/stream/work-budget.ts'
import { audioUnit, unit, videoUnit } from '../hls/source.ts'

const PAYLOAD_BYTES = 1316
const SECOND_US = 1_000_000

t.test(
  'a stream begins with a budget of 0.1 s, and earns no more than that by waiting',
  async (t) => {
    const budget = new WorkBudget(0)
    t.equal(budget.balanceUs, 100_000)
    budget.admit(PAYLOAD_BYTES, 3600 * SECOND_US)
    t.equal(budget.balanceUs, 100_000)
  },
)

t.test('each byte and each second earn work', async (t) => {
  const budget = new WorkBudget(0)
  budget.spend(50_000)
  t.ok(budget.admit(0, SECOND_US))
  t.equal(budget.balanceUs, 60_000, '10 ms a second')
  t.ok(budget.admit(188_000, SECOND_US))
  t.equal(budget.balanceUs, 62_700, '2.7 us a transport packet')
})

t.test('payloads are dropped in one piece: until 20 ms of work may be done again', async (t) => {
  const budget = new WorkBudget(0)
  budget.spend(106_000)
  t.notOk(budget.admit(0, 0))
  t.notOk(budget.admit(0, 2 * SECOND_US), 'the balance is 14 ms')
  t.ok(budget.admit(0, 3 * SECOND_US), 'it is 24 ms')
  t.equal(budget.dropped, 2)
  t.strictSame(budget.factsAt(7 * SECOND_US), [{ code: 'INGEST_TOO_COSTLY', dropped: 2 }])
  t.strictSame(budget.factsAt(8 * SECOND_US), [], 'none was dropped for more than 5 s')
})

t.test('dropping for 10 s exhausts it, whatever the work in between', async (t) => {
  const budget = new WorkBudget(0)
  let exhaustedSec: number | undefined
  for (let ms = 0; ms < 20_000 && exhaustedSec === undefined; ms += 10) {
    if (budget.admit(PAYLOAD_BYTES, ms * 1000)) budget.spend(50_000)
    if (budget.isExhausted(ms * 1000)) exhaustedSec = ms / 1000
  }
  t.ok(exhaustedSec !== undefined && exhaustedSec >= 10 && exhaustedSec < 13, `${exhaustedSec} s`)
})

t.test('an episode ends when nothing is dropped for 5 s, or a publisher begins', async (t) => {
  const budget = new WorkBudget(0)
  const dropAt = (sec: number) => {
    budget.spend(budget.balanceUs + 1_000_000)
    t.notOk(budget.admit(0, sec * SECOND_US))
  }
  t.notOk(budget.isExhausted(0), 'nothing was dropped')
  for (const sec of [0, 4, 8]) dropAt(sec)
  t.notOk(budget.isExhausted(9 * SECOND_US), '8 s')
  dropAt(14)
  t.notOk(budget.isExhausted(14 * SECOND_US), '6 s later: another episode')
  for (const sec of [18, 22, 25]) dropAt(sec)
  t.ok(budget.isExhausted(25 * SECOND_US), '11 s')
  budget.restart()
  t.notOk(budget.isExhausted(25 * SECOND_US))
  dropAt(26)
  t.notOk(budget.isExhausted(26 * SECOND_US))
})

t.test('video that is repeated costs its transport packets', async (t) => {
  const video = unit(videoUnit(0, { key: true, sizeBytes: 100_000 }))
  const audio = unit(audioUnit(0))
  const costUs = workOfInsertion(audio, [video, audio])
  t.ok(costUs > 100_000 / 188 && costUs < 1000, `${costUs} µs`)
  t.ok(workOfInsertion(audio, [video]) > 100_000 / 188, 'also where audio is held back')
  t.ok(workOfInsertion(audio, [audio, audio]) < 10, 'silence')
  t.equal(workOfInsertion(audio, []), 0)
})

t.test(
  'a PES packet on another clock costs, and so does each of its transport packets',
  async (t) => {
    for (const sizeBytes of [100, 100_000]) {
      const sent = videoUnit(0, { sizeBytes })
      const packets = sent.sizeBytes / 188
      // `shiftUnit` takes 0.9 µs, and 0.17 µs for each transport packet.
      const costUs = workOfInsertion(unit(sent), [unit({ ...sent })])
      t.ok(costUs >= 0.9 + 0.17 * packets && costUs < 5 + 0.3 * packets, `${costUs} µs`)
      t.equal(workOfInsertion(unit(sent), [unit(sent)]), 0, 'as sent')
    }
  },
)
