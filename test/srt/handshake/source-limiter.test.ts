/**
 * Limits on handshakes by address and network.
 */
import t from 'tap'
import {
  CONCLUSION_LEVELS,
  INDUCTION_LEVELS,
  networkOf,
  SourceLimiter,
} from '../../../src/srt/handshake/source-limiter.ts'
import { TokenBucket } from '../../../src/timing/token-bucket.ts'

t.test('a bucket gives the tokens of one second at once, then as it fills', async (t) => {
  const bucket = new TokenBucket(10, 5_000_000)
  const taken = (nowUs: number) => {
    let count = 0
    while (bucket.take(nowUs)) count++
    return count
  }
  t.equal(taken(5_000_000), 10)
  t.equal(taken(5_050_000), 0)
  t.equal(taken(5_100_000), 1, 'halves add up')
  t.equal(taken(60_000_000), 10, 'no more than a second’s worth')
  bucket.perSec = 100
  t.equal(taken(60_500_000), 50)
})

t.test('a bucket may hold the tokens of more than one second', async (t) => {
  const bucket = new TokenBucket(0.5, 0, 30)
  t.ok(bucket.take(0, 30))
  t.notOk(bucket.take(1_900_000))
  t.ok(bucket.take(2_000_000))
  t.ok(bucket.take(600_000_000, 30))
  t.notOk(bucket.take(600_000_000), 'no more than it holds')
})

t.test('a bucket with too few tokens keeps them', async (t) => {
  const bucket = new TokenBucket(10, 0)
  t.notOk(bucket.take(0, 11))
  t.ok(bucket.take(0, 10))
  t.notOk(bucket.take(0))
})

t.test('the network of an address is its /24 or /56', async (t) => {
  t.equal(networkOf('192.0.2.1'), networkOf('192.0.2.254'))
  t.not(networkOf('192.0.2.1'), networkOf('192.0.3.1'))
  t.equal(networkOf('::ffff:192.0.2.1'), networkOf('::ffff:192.0.2.9'))
  t.not(networkOf('::ffff:192.0.2.1'), networkOf('::ffff:192.0.3.1'))
  t.equal(networkOf('2001:db8::1'), networkOf('2001:db8:0:0:ffff:1:2:3'))
  t.equal(networkOf('2001:db8::1'), networkOf('2001:db8:0:ff::1'))
  t.not(networkOf('2001:db8::1'), networkOf('2001:db8:0:100::1'))
  t.equal(networkOf('fe80::1%eth0'), networkOf('fe80::2%eth0'))
})

t.test('a network over its limit uses up nothing of the others', async (t) => {
  const limiter = new SourceLimiter(INDUCTION_LEVELS)
  for (let i = 0; i < 100_000; i++) limiter.admit('192.0.2.1', 0)
  let admitted = 0
  for (let i = 0; i < 10_000; i++) if (limiter.admit(`10.0.${i % 250}.1`, 0)) admitted++
  t.equal(admitted, 4000)
})

t.test('conclusions of three networks leave a fourth its full limit', async (t) => {
  const limiter = new SourceLimiter(CONCLUSION_LEVELS)
  let [flood, newcomers] = [0, 0]
  for (let nowUs = 0; nowUs < 10_000_000; nowUs += 1000) {
    for (let i = 0; i < 9; i++) if (limiter.admit(`10.0.${i % 3}.${i}`, nowUs)) flood++
    if (nowUs % 100_000 === 0 && limiter.admit('192.0.2.1', nowUs)) newcomers++
  }
  t.equal(newcomers, 100, 'all are answered')
  t.ok(flood <= 3 * (300 + 40 * 10), `${flood} of 90,000 are`)
})

t.test('conclusions of one address use at most half of the limit of its network', async (t) => {
  const limiter = new SourceLimiter(CONCLUSION_LEVELS)
  let neighbors = 0
  for (let nowUs = 0; nowUs < 10_000_000; nowUs += 1000) {
    for (let i = 0; i < 8; i++) limiter.admit('192.0.2.1', nowUs)
    if (nowUs % 100_000 === 0 && limiter.admit('192.0.2.2', nowUs)) neighbors++
  }
  t.equal(neighbors, 100)
})
