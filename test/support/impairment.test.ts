import t from 'tap'
import { Impairment, type LinkOptions } from './impairment.ts'
import { createRandom } from './random.ts'

const HANDSHAKE = Buffer.concat([Buffer.from([0x80, 0x00]), Buffer.alloc(62)])

/** Datagrams that contain their index. */
function numbered(count: number): Buffer[] {
  return Array.from({ length: count }, (_, index) => {
    const datagram = Buffer.alloc(64)
    datagram.writeUInt32BE(index)
    return datagram
  })
}

/** Indices of the datagrams that arrive. */
function survivors(link: Impairment, count: number): number[] {
  return numbered(count).flatMap((datagram) =>
    link.push(datagram).map((delivery) => delivery.datagram.readUInt32BE()),
  )
}

/** Lengths of the runs of datagrams that are missing. */
function lossRuns(arrived: readonly number[], count: number): number[] {
  return [...arrived, count]
    .map((place, index) => place - (arrived[index - 1] ?? -1) - 1)
    .filter((length) => length > 0)
}

function draw(seed: number): number[] {
  const random = createRandom(seed)
  return Array.from({ length: 10_000 }, () => random.next())
}

t.test('random numbers repeat from their seed, and are uniform', async (t) => {
  // Joined, since a deep comparison of 10,000 items takes seconds.
  t.equal(draw(7).join(), draw(7).join())
  t.not(draw(7).join(), draw(8).join())
  const tenths = Array.from({ length: 10 }, () => 0)
  for (const value of draw(7)) tenths[Math.floor(value * 10)]!++
  for (const hits of tenths) t.ok(hits > 900 && hits < 1100, `${hits} of 10,000 in a tenth`)
  t.equal(createRandom(1).bytes(33).length, 33)
})

t.test('a perfect link passes every datagram unchanged and at once', async (t) => {
  const link = new Impairment(1)
  for (const datagram of numbered(100)) {
    t.same(link.push(datagram), [{ delayMs: 0, ordered: true, datagram }])
  }
  t.match(link.counters, { received: 100, forwarded: 100, lost: 0, lostInBurst: 0, corrupted: 0 })
})

t.test('a link that spares handshakes loses only other datagrams', async (t) => {
  const link = new Impairment(1, { loss: 1, sparesHandshakes: true })
  t.equal(link.push(HANDSHAKE).length, 1)
  t.equal(link.push(Buffer.alloc(64)).length, 0)
  t.match(link.counters, { forwarded: 1, lost: 1 })
})

t.test('the same seed repeats the same fates, another seed changes them', async (t) => {
  const options: LinkOptions = {
    loss: 0.1,
    duplicate: 0.1,
    reorder: 0.1,
    corrupt: 0.1,
    jitterMs: 5,
  }
  const fates = (seed: number) => {
    const link = new Impairment(seed, options)
    return numbered(500).map((datagram) => JSON.stringify(link.push(datagram)))
  }
  t.same(fates(42), fates(42))
  t.notSame(fates(42), fates(43))
})

t.test('losses happen at their rate and are counted', async (t) => {
  const link = new Impairment(3, { loss: 0.1 })
  const arrived = survivors(link, 10_000)
  t.equal(arrived.length, 10_000 - link.counters.lost)
  t.ok(link.counters.lost > 900 && link.counters.lost < 1100, `${link.counters.lost} of 10,000`)
})

t.test('bursts have the mean length of the Gilbert-Elliott model', async (t) => {
  const link = new Impairment(3, { burst: { enter: 0.01, leave: 0.2 } })
  const runs = lossRuns(survivors(link, 50_000), 50_000)
  const mean = link.counters.lostInBurst / runs.length
  t.ok(mean > 4.3 && mean < 5.7, `mean burst of ${mean}, expected 5`)
  t.ok(runs.length > 400 && runs.length < 560, `${runs.length} bursts, expected about 476`)
})

t.test('one impairment never changes the decisions of another', async (t) => {
  const plain = survivors(new Impairment(5, { loss: 0.2 }), 2000)
  const others = new Impairment(5, { loss: 0.2, corrupt: 0.5, reorder: 0.5, jitterMs: 9 })
  const fates = numbered(2000).flatMap((datagram, place) =>
    others.push(datagram).length > 0 ? [place] : [],
  )
  t.same(fates, plain)
})

t.test('drops the handshakes named by number and nothing else', async (t) => {
  const link = new Impairment(1, { dropHandshakes: [1, 3] })
  const data = Buffer.alloc(64)
  const fates = [HANDSHAKE, data, HANDSHAKE, HANDSHAKE, data, HANDSHAKE].map(
    (datagram) => link.push(datagram).length,
  )
  t.same(fates, [0, 1, 1, 0, 1, 1])
  t.equal(link.counters.handshakesDropped, 2)
})

t.test('corruption flips exactly one bit of a copy', async (t) => {
  const link = new Impairment(9, { corrupt: 1 })
  const flippedBits: number[] = []
  let untouched = true
  for (let round = 0; round < 200; round++) {
    const datagram = Buffer.alloc(40, 0x5a)
    const [delivery] = link.push(datagram)
    flippedBits.push(
      delivery!.datagram.reduce(
        (sum, byte) => sum + (byte ^ 0x5a).toString(2).split('1').length - 1,
        0,
      ),
    )
    untouched &&= datagram.equals(Buffer.alloc(40, 0x5a))
  }
  t.same(new Set(flippedBits), new Set([1]))
  t.ok(untouched)
})

t.test('a datagram is held, duplicated or delayed as configured', async (t) => {
  const datagram = Buffer.alloc(20)
  t.same(new Impairment(1, { delayMs: 50, reorder: 1 }).push(datagram), [
    { delayMs: 60, ordered: false, datagram },
  ])
  t.equal(new Impairment(1, { duplicate: 1 }).push(datagram).length, 2)
  const jittery = new Impairment(1, { delayMs: 50, jitterMs: 20 })
  const delays = numbered(1000).map((each) => jittery.push(each)[0]!.delayMs)
  t.ok(Math.min(...delays) >= 50 && Math.max(...delays) < 70)
  t.ok(Math.max(...delays) - Math.min(...delays) > 18, 'jitter spans its range')
})

t.test('an empty datagram passes every impairment', async (t) => {
  const link = new Impairment(1, { corrupt: 1, duplicate: 1, dropHandshakes: [1] })
  t.equal(link.push(Buffer.alloc(0)).length, 2)
})
