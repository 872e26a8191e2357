/**
 * Sender and receiver over a simulated bad network, reproducible from seeds.
 */
import t from 'tap'
import type { LinkOptions } from '../support/impairment.ts'
import { createRandom } from '../support/random.ts'
import { simulate, type SimulationOptions } from './simulator.ts'
import { FIRST_SEED, rounds } from '../support/soak.ts'

/** Seeds of random links that once failed, by cause. */
const NAMED: Readonly<Record<string, readonly number[]>> = {
  'a connection may begin with the largest sequence number (3.1)': [
    3001, 4535, 6963, 7268, 7548, 10358, 15642,
  ],
}

t.test('a perfect link loses nothing and repeats nothing', async (t) => {
  const { pushed, gaps, end, violations, sender, receiver } = simulate({
    seed: 1,
    link: { delayMs: 20 },
    latencyMs: 120,
    packets: 2000,
    intervalUs: 1000,
  })
  t.strictSame(
    { pushed, gaps, end, violations },
    {
      pushed: 2000,
      gaps: 0,
      end: 'shutdown',
      violations: [],
    },
  )
  t.match(sender, { pktSentTotal: 2000, pktRetransTotal: 0, msRtt: 40, pktSndBuf: 0 })
  t.match(receiver, { pktRcvLossTotal: 0, pktRcvDuplicateTotal: 0, byteRecvTotal: 2000 * 1316 })
})

t.test(
  'every packet arrives in order at 10 % loss, 50 ms, reordering and duplication',
  async (t) => {
    const outcome = simulate({
      seed: 2027,
      link: { loss: 0.1, delayMs: 50, jitterMs: 5, reorder: 0.02, duplicate: 0.02 },
      latencyMs: 500,
      packets: 10_000,
      intervalUs: 2000,
    })
    t.match(outcome, { pushed: 10_000, gaps: 0, end: 'shutdown', violations: [] })
    t.ok(outcome.receiver!.pktRcvLossTotal > 900, 'the link was bad')
  },
)

t.test(
  'fewer than one packet in 100,000 is lost at 5 % loss, RTT 100 ms, latency 500 ms',
  async (t) => {
    let lost = 0
    for (let seed = 1; seed <= 20; seed++) {
      const { gaps, violations } = simulate({
        seed,
        link: { loss: 0.05, delayMs: 50 },
        latencyMs: 500,
        packets: 5000,
        intervalUs: 1300,
      })
      t.strictSame(violations, [], `seed ${seed}`)
      lost += gaps
    }
    t.equal(lost, 0)
  },
)

t.test('bursts of losses are repaired', async (t) => {
  const { pushed, gaps, violations, receiver } = simulate({
    seed: 5,
    link: { burst: { enter: 0.004, leave: 0.2 }, delayMs: 50 },
    latencyMs: 800,
    packets: 10_000,
    intervalUs: 1300,
  })
  t.strictSame({ pushed, gaps, violations }, { pushed: 10_000, gaps: 0, violations: [] })
  t.ok(receiver!.pktRcvLossTotal > 100)
})

t.test('sequence numbers and timestamps wrap under loss without a missing packet', async (t) => {
  const { pushed, gaps, end, violations } = simulate({
    seed: 3,
    link: { loss: 0.05, delayMs: 30, jitterMs: 10, reorder: 0.01 },
    latencyMs: 600,
    packets: 5000,
    intervalUs: 2000,
    initialSequenceNumber: 0x7fffffff - 2500,
    startTimestampUs: 2 ** 32 - 5_000_000,
  })
  t.strictSame(
    { pushed, gaps, end, violations },
    {
      pushed: 5000,
      gaps: 0,
      end: 'shutdown',
      violations: [],
    },
  )
})

t.test('the latency stays constant over two hours of clock drift (4.7)', async (t) => {
  for (const driftPpm of [-50, 50]) {
    const { pushed, gaps, violations, receiver } = simulate({
      seed: 6,
      link: { loss: 0.02, delayMs: 10 },
      latencyMs: 120,
      packets: 180_000,
      intervalUs: 40_000,
      driftPpm,
    })
    t.strictSame({ pushed, gaps, violations }, { pushed: 180_000, gaps: 0, violations: [] })
    // The sender's clock runs ahead: its packets seem to come earlier and earlier.
    const expectedMs = -driftPpm * 7.2
    t.ok(Math.abs(receiver!.msDrift - expectedMs) < 5, `${receiver!.msDrift} of ${expectedMs} ms`)
  }
})

t.test('reordered packets are not reported as lost', async (t) => {
  const link: LinkOptions = { delayMs: 50, jitterMs: 20, reorder: 0.01, reorderMs: 20 }
  const { pushed, gaps, violations, sender, receiver } = simulate({
    seed: 9,
    link,
    latencyMs: 500,
    packets: 20_000,
    intervalUs: 1300,
  })
  t.strictSame({ pushed, gaps, violations }, { pushed: 20_000, gaps: 0, violations: [] })
  const late = receiver!.pktRcvLossTotal
  t.ok(late > 100, `${late} came late`)
  t.ok(sender!.pktRetransTotal < late / 10, `${sender!.pktRetransTotal} sent again`)
})

t.test('flipped bits neither close a connection nor deliver a wrong packet', async (t) => {
  for (let seed = 1; seed <= 50; seed++) {
    const { violations, receiver } = simulate({
      seed,
      link: { loss: 0.02, delayMs: 20, corrupt: 0.02, sparesHandshakes: true },
      latencyMs: 200,
      packets: 1000,
      intervalUs: 2000,
    })
    // A connection in clear has no integrity check: payloads and their order may be wrong.
    const others = violations.filter(
      (violation) => !/^(packet|a payload|\d+ acc|no SRT)/.test(violation),
    )
    t.strictSame(others, [], `seed ${seed}`)
    if (receiver !== undefined) t.ok(receiver.pktRcvBuf <= 16_384)
  }
})

/** Link that loses 20 % of 8.4 Mbit/s, so that at least a quarter more must be sent. */
const LOSSY = {
  link: { loss: 0.2, delayMs: 50, sparesHandshakes: true },
  latencyMs: 1000,
  packets: 10_000,
  intervalUs: 1300,
}
const LOSSY_BPS = (1360 * 8e6) / LOSSY.intervalUs

t.test('every packet arrives at 20 % loss on a line of 1.3 times the rate', async (t) => {
  for (const narrow of ['bandwidthBps', 'maxBandwidthBps']) {
    for (const seed of [1, 2, 3]) {
      const outcome = simulate({ ...LOSSY, seed, [narrow]: LOSSY_BPS * 1.3 })
      const { sender, longestPauseUs } = outcome
      t.match(
        outcome,
        { pushed: 10_000, gaps: 0, violations: [], overruns: 0 },
        `${narrow} ${seed}`,
      )
      t.ok(longestPauseUs <= 10_000, `${longestPauseUs} us without a new packet`)
      t.ok(sender!.pktRetransTotal < 0.27 * 10_000, `${sender!.pktRetransTotal} sent again`)
    }
  }
})

t.test('new packets keep flowing on a line too narrow for its retransmissions', async (t) => {
  for (const seed of [1, 2, 3]) {
    const maxBandwidthBps = LOSSY_BPS * 1.1
    const { pushed, gaps, violations, sender, longestPauseUs } = simulate({
      ...LOSSY,
      seed,
      maxBandwidthBps,
    })
    t.strictSame(violations, [])
    t.ok(pushed + gaps >= 10_000 - 5 && pushed + gaps <= 10_000, `${pushed} + ${gaps}, and a tail`)
    t.ok(pushed > 0.8 * 10_000, `${pushed} delivered`)
    t.ok(longestPauseUs <= 15_000, `${longestPauseUs} us without a new packet`)
    t.ok(sender!.pktRetransTotal <= 0.25 * 10_000, `${sender!.pktRetransTotal} sent again`)
  }
})

t.test('late packets are dropped and counted on a link that carries almost nothing', async (t) => {
  const { pushed, gaps, violations, receiver, sender } = simulate({
    seed: 8,
    link: { loss: 0.3, delayMs: 150, jitterMs: 50 },
    latencyMs: 300,
    packets: 5000,
    intervalUs: 2000,
  })
  t.strictSame(violations, [])
  t.ok(gaps > 0)
  t.equal(receiver!.pktRcvDropTotal, gaps)
  t.ok(pushed + gaps <= 5000 && pushed + gaps > 4950, `${pushed} + ${gaps}, and a tail`)
  t.ok(sender!.pktRetransTotal < 4 * receiver!.pktRcvLossTotal, 'retransmissions are bounded')
})

t.test('connects at 600 ms RTT with first and third handshake lost either way', async (t) => {
  const { pushed, gaps, violations } = simulate({
    seed: 4,
    link: { delayMs: 300, dropHandshakes: [1, 3] },
    latencyMs: 1200,
    packets: 500,
    intervalUs: 2000,
  })
  t.strictSame({ pushed, gaps, violations }, { pushed: 500, gaps: 0, violations: [] })
})

t.test('sends one ACK per 16 packets or 30 ms, and none for a confirmed position', async (t) => {
  const busy = simulate({
    seed: 1,
    link: { delayMs: 5 },
    latencyMs: 120,
    packets: 5000,
    intervalUs: 1000,
  })
  // A tick after 16 ms is one after 20 ms.
  t.ok(busy.datagrams.toCaller <= 250 + 10, `${busy.datagrams.toCaller} in 5 s`)
  const slow = simulate({
    seed: 1,
    link: { delayMs: 5 },
    latencyMs: 120,
    packets: 20,
    intervalUs: 500_000,
  })
  // Two answers to the handshake, an ACK for each packet.
  t.ok(slow.datagrams.toCaller <= 22 + 20, `${slow.datagrams.toCaller} for 20 packets in 10 s`)
})

t.test('the same seed repeats the same simulation', async (t) => {
  const once = simulate(randomLink(11))
  t.strictSame(simulate(randomLink(11)), once)
})

t.test(
  'every packet is delivered once and in order, or counted as dropped, on any link',
  async (t) => {
    let delivered = 0
    let dropRequests = 0
    const seeds = Array.from({ length: rounds(100, 20_000) }, (_, index) => FIRST_SEED + index)
    for (const seed of seeds) {
      const { ok, outcome } = judge(seed)
      delivered += outcome.pushed
      dropRequests += outcome.dropRequests
      if (!ok) t.fail(`seed ${seed}`, outcome)
    }
    t.ok(delivered > seeds.length * 400, `${delivered} packets delivered`)
    t.ok(dropRequests > seeds.length / 20, `${dropRequests} drop requests`)
  },
)

for (const [title, seeds] of Object.entries(NAMED)) {
  t.test(title, async (t) => {
    for (const seed of seeds) {
      const { ok, outcome } = judge(seed)
      t.ok(ok && outcome.pushed > 0, `seed ${seed}`, outcome)
    }
  })
}

/** Simulates a random link; `ok` if each packet was delivered or counted as dropped, or the caller got no answer. */
function judge(seed: number) {
  const options = randomLink(seed)
  const outcome = simulate(options)
  const { violations, pushed, gaps, receiver, sender, end } = outcome
  const isUnconnected = violations.length === 1 && violations[0]!.startsWith('no SRT peer answered')
  const ok =
    isUnconnected ||
    (violations.length === 0 &&
      end !== undefined &&
      pushed + gaps <= options.packets &&
      // Packets lost at the end leave no gap: the caller dropped them.
      options.packets - pushed - gaps <= sender!.pktSndDropTotal + sender!.pktSndBuf &&
      receiver!.pktRcvDropTotal === gaps)
  return { ok, outcome }
}

/** Random link, from a cable to a train in a tunnel. */
function randomLink(seed: number): SimulationOptions {
  const random = createRandom(seed * 7919)
  const upTo = (limit: number) => (random.chance(0.3) ? 0 : random.next() * limit)
  const burst = random.chance(0.3) ? { enter: 0.01, leave: 0.1 + random.next() * 0.5 } : undefined
  const link: LinkOptions = {
    loss: upTo(0.2),
    delayMs: upTo(200),
    jitterMs: upTo(60),
    reorder: upTo(0.1),
    reorderMs: 1 + upTo(50),
    duplicate: upTo(0.1),
    ...(burst && { burst }),
  }
  return {
    seed,
    link,
    latencyMs: 20 + random.below(1000),
    packets: 600,
    intervalUs: 200 + random.below(5000),
    initialSequenceNumber: random.chance(0.5) ? 0x7fffffff - random.below(600) : random.below(1e9),
    startTimestampUs: random.chance(0.5) ? 2 ** 32 - random.below(3e6) : 0,
  }
}
