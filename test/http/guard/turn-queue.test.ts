import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { TurnQueue } from '../../../src/http/guard/turn-queue.ts'

t.test('a crowd has its turns in order, 16 at a time, each once', async (t) => {
  const queue = new TurnQueue()
  const acted: number[] = []
  const acts = Array.from({ length: 40 }, (_, index) => () => void acted.push(index))
  for (const act of [...acts, ...acts]) queue.add(act)
  t.strictSame(acted, [], 'not at once')
  for (const count of [16, 32, 40, 40]) {
    await turn()
    t.strictSame(acted, [...acted.keys()].slice(0, count))
  }
})

t.test('who is added in a turn acts in a later one', async (t) => {
  const queue = new TurnQueue()
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

t.test('gives 16 turns at once, and as many again in the next turn of the loop', async (t) => {
  const queue = new TurnQueue()
  for (let round = 0; round < 2; round++) {
    const taken = Array.from({ length: 20 }, () => queue.take())
    t.equal(taken.filter(Boolean).length, 16)
    await turn()
  }
})
