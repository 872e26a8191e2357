/**
 * Fuzzing of everything between SRT and HTTP, a bounded run; `npm run fuzz -- --only media` runs for a given time.
 */
import t from 'tap'
import { fuzz } from './fuzz.ts'
import { FIRST_SEED, rounds } from '../support/soak.ts'

const SEEDS = rounds(3, 200)
const STEPS = 3000

/** Seeds that once failed, with the defect they found. */
const FAILED_SEEDS = {
  37275806: 'a date range was removed within the millisecond before its end',
} as const

for (const [seed, fault] of Object.entries(FAILED_SEEDS)) {
  t.test(`seed ${seed}: ${fault}`, async (t) => {
    t.strictSame(fuzz(Number(seed), 2000).violations, [])
  })
}

t.test('arbitrary media cause no exception and no violation of a rule', async (t) => {
  let segments = 0
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++) {
    const outcome = fuzz(seed, STEPS)
    t.strictSame(outcome.violations, [], `seed ${seed}`)
    segments += outcome.segments.length
  }
  t.ok(segments > 20 * SEEDS, `${segments} segments`)
})
