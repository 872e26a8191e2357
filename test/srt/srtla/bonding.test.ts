/**
 * A caller over bonded lines, on a simulated clock: what is delivered, and how often losses are reported.
 */
import t from 'tap'
import { FIRST_SEED, rounds } from '../../support/soak.ts'
import { simulateBonded } from './bonded-simulator.ts'

/** Lines with an RTT of 40, 200 and 120 ms. */
const LINES = [
  { delayMs: 20, jitterMs: 5 },
  { delayMs: 100, jitterMs: 10 },
  { delayMs: 60, jitterMs: 10 },
]
const LOSSY = LINES.map((line) => ({ ...line, loss: 0.05 }))

const MINUTE = { latencyMs: 1000, packets: 30_000, intervalUs: 2000 }

t.test('lines of different lengths lose nothing, and nothing is repeated for long', async (t) => {
  const outcome = simulateBonded({ ...MINUTE, seed: 1, lines: LINES })
  t.match(outcome, { pushed: 30_000, gaps: 0, end: 'shutdown', violations: [], refusals: [] })
  // Until the tolerance has been learned, and when a line is used again after a while.
  t.ok(outcome.retransmitted < 300, `${outcome.retransmitted} retransmitted`)
  t.match(outcome.lines, [
    { line: 1, remoteAddress: '192.0.2.1', remotePort: 40_000 },
    { line: 2 },
    { line: 3 },
  ])
  const sum = outcome.lines.reduce((total, { pktRecvTotal }) => total + pktRecvTotal, 0)
  t.equal(sum, outcome.receiver.pktRecvTotal)
  t.ok(
    outcome.lines.every(({ pktRecvTotal }) => pktRecvTotal > 500),
    'all lines are used',
  )
})

t.test('nothing is lost while lines lose 5 %, die, come back and get other ports', async (t) => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + rounds(3, 200); seed++) {
    const [first, second, third] = LOSSY
    const outcome = simulateBonded({
      ...MINUTE,
      // A sender takes 4 s to give a dead line up, and sends a part of its retransmissions there.
      latencyMs: 4000,
      seed,
      lines: [
        { ...first, rebindsAtSec: 40 },
        { ...second, dark: [10, 25] },
        { ...third, dark: [30, Infinity] },
      ],
    })
    const { violations, gaps, end, refusals, receiver, reported, srtla } = outcome
    t.strictSame(
      { violations, gaps, end, refusals },
      {
        ...{ violations: [], gaps: 0, end: 'shutdown', refusals: [] },
      },
      `seed ${seed}`,
    )
    t.equal(outcome.pushed, 30_000)
    t.match(outcome.remote, /^192\.0\.2\.[123]:400\d\d$/, 'one peer from start to end')
    t.equal(srtla.founded, 1)
    t.ok(receiver.pktRcvLossTotal > 1000, `seed ${seed}: ${receiver.pktRcvLossTotal} lost`)
    const perLoss = reported / receiver.pktRcvLossTotal
    t.ok(perLoss < 1.3, `seed ${seed}: each loss was reported ${perLoss} times`)
  }
})

t.test('lines of very different lengths that lose 10 % lose next to nothing', async (t) => {
  const lines = [
    { delayMs: 20, jitterMs: 5, loss: 0.1 },
    { delayMs: 250, jitterMs: 60, loss: 0.1 },
  ]
  const options = { latencyMs: 2000, packets: 30_000, intervalUs: 1000, lines }
  for (let seed = FIRST_SEED; seed < FIRST_SEED + rounds(2, 100); seed++) {
    const { gaps, reported, receiver } = simulateBonded({ ...options, seed })
    t.ok(gaps < 10, `seed ${seed}: ${gaps} packets are missing`)
    const perLoss = reported / receiver.pktRcvLossTotal
    t.ok(perLoss < 1.4, `seed ${seed}: each loss was reported ${perLoss} times`)
  }
})

t.test('a loss is reported once, and again only after a round trip', async (t) => {
  const lines = [{ delayMs: 100, loss: 0.05 }]
  const bonded = simulateBonded({ ...MINUTE, seed: 3, lines })
  const plain = simulateBonded({ ...MINUTE, seed: 3, lines, isPlain: true })
  for (const { gaps, violations } of [bonded, plain])
    t.strictSame({ gaps, violations }, { gaps: 0, violations: [] })
  // 5 % are lost; a twentieth of the retransmissions are lost as well.
  t.ok(bonded.reported < bonded.receiver.pktRcvLossTotal * 1.2, `${bonded.reported} reported`)
  t.ok(plain.reported > bonded.reported * 4, `${plain.reported} without lines`)
})
