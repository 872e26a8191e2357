import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { TurnQueue } from '../../src/http/turn-queue.ts'

t.test('runs a crowd in order, 16 per turn, each once', async (t) => {
  const queue = new TurnQueue(16)
  const acted: number[] = []
  const acts = Array.from({ length: 40 }, (_, index) => () => void acted.push(index))
  for (const act of [...acts, ...acts]) queue.add(act)
  t.strictSame(acted, [], 'not at once')
  for (const count of [16, 32, 40, 40]) {
    await turn()
    t.strictSame(acted, [...acted.keys()].slice(0, count))
  }
})

t.test('runs work added during a turn in a later one', async (t) => {
  const queue = new TurnQueue(16)
  let acted = 0
  const again = (): void => {
    acted++
    if (acted < 3) queue.add(again)
  }
  queue.add(again)
  for (const count of [1, 2, 3, 3]) {
    await turn()
    t.equal(acted, count)
  }
})

t.test('allows 16 acts at once, and 16 more in the next turn of the loop', async (t) => {
  const queue = new TurnQueue(16)
  for (let round = 0; round < 2; round++) {
    const taken = Array.from({ length: 20 }, () => queue.take())
    t.equal(taken.filter(Boolean).length, 16)
    await turn()
  }
})

t.test('adds up costs, and gives work above the limit a turn of its own', async (t) => {
  const queue = new TurnQueue(10)
  const acted: number[] = []
  t.ok(queue.take(25), 'nothing was done in this turn yet')
  t.notOk(queue.take(1))
  for (const cost of [4, 6, 1, 30, 10]) queue.add(() => void acted.push(cost), cost)
  for (const done of [
    [4, 6],
    [4, 6, 1],
    [4, 6, 1, 30],
    [4, 6, 1, 30, 10],
  ]) {
    await turn()
    t.strictSame(acted, done)
  }
})
