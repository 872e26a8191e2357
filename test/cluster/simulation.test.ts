import t from 'tap'
import { simulate } from './simulated-cluster.ts'
import { FIRST_SEED, rounds } from '../support/soak.ts'

/** Seeds that fail without a rule of the protocol, or of its nodes, and those that once failed by the simulation itself. */
const NAMED: Readonly<Record<string, readonly number[]>> = {
  'a node that was cut off, came back and died has used numbers that Redis does not know': [
    759, 1929, 2203, 7669, 9372,
  ],
  'a node goes on with a stream that it has yielded only under a new claim': [
    2876, 6109, 7436, 7945, 8253, 8479, 8802,
  ],
  'a run begins above the numbers that the last owner had not told': [1047, 6457],
  'a node that does not learn that it has announced an end delivers later events before it': [
    35974, 48857,
  ],
  'a claim is lost by a failover, and its owner goes on': [6979, 9460],
  'a server that has lost an event has one instead that was over': [4693],
  'faults at once, and encoders that come back late': [
    343, 421, 422, 616, 908, 1226, 1303, 2316, 2675, 2692, 2962, 3297, 5161, 5598, 6615, 6682, 8193,
    9579,
  ],
}

const SEEDS = rounds(20, 10_000)

t.test('a seed gives the same run each time', async (t) => {
  const trace = async () => {
    const lines: string[] = []
    await simulate(FIRST_SEED, (line) => lines.push(line))
    return lines
  }
  const lines = await trace()
  t.ok(lines.length > 1000)
  t.strictSame(await trace(), lines)
})

t.test('a cluster keeps its promises under faults', async (t) => {
  const total: Record<string, number> = {}
  const seeds = Array.from({ length: SEEDS }, (_, index) => FIRST_SEED + index)
  const failures: { seed: number; violations: readonly string[] }[] = []
  for (const seed of seeds) {
    const { violations, counts } = await simulate(seed)
    if (violations.length > 0) failures.push({ seed, violations })
    for (const [name, count] of Object.entries(counts)) total[name] = (total[name] ?? 0) + count
  }
  t.comment(`${seeds.length} seeds: ${JSON.stringify(total)}`)
  t.equal(failures.length, 0, `${failures.length} seeds`)
  for (const failure of failures.slice(0, 5)) t.fail(`seed ${failure.seed}`, failure)
})

for (const [title, seeds] of Object.entries(NAMED)) {
  t.test(title, async (t) => {
    for (const seed of seeds) {
      const { violations } = await simulate(seed)
      t.strictSame(violations, [], `seed ${seed}`)
    }
  })
}
