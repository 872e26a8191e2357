/**
 * How much of anything the network may ask for.
 */
import t from 'tap'
import { InductionLimiter } from '../../src/srt/induction-limiter.ts'
import { networkOf } from '../../src/srt/source-network.ts'
import { TokenBucket } from '../../src/token-bucket.ts'

t.test('a bucket gives a second’s worth at once, and then as it fills', async (t) => {
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

t.test('a bucket that has too little keeps it', async (t) => {
  const bucket = new TokenBucket(10, 0)
  t.notOk(bucket.take(0, 11))
  t.ok(bucket.take(0, 10))
  t.notOk(bucket.take(0))
})

t.test('a network is a /24, or a /64', async (t) => {
  t.equal(networkOf('192.0.2.1'), networkOf('192.0.2.254'))
  t.not(networkOf('192.0.2.1'), networkOf('192.0.3.1'))
  t.equal(networkOf('::ffff:192.0.2.1'), networkOf('::ffff:192.0.2.9'))
  t.not(networkOf('::ffff:192.0.2.1'), networkOf('::ffff:192.0.3.1'))
  t.equal(networkOf('2001:db8::1'), networkOf('2001:db8:0:0:ffff:1:2:3'))
  t.not(networkOf('2001:db8::1'), networkOf('2001:db8:0:1::1'))
  t.equal(networkOf('fe80::1%eth0'), networkOf('fe80::2%eth0'))
})

t.test('a network that asks too often takes nothing from the others', async (t) => {
  const limiter = new InductionLimiter(0)
  for (let i = 0; i < 100_000; i++) limiter.admit('192.0.2.1', 0)
  let admitted = 0
  for (let i = 0; i < 10_000; i++) if (limiter.admit(`10.0.${i % 250}.1`, 0)) admitted++
  t.equal(admitted, 4000)
})
