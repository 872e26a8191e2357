/**
 * How often an edge asks the registry for the nodes to which it passes requests on.
 */
import { Readable } from 'node:stream'
import t from 'tap'
import { IngestNodes } from '../../../src/cluster/edge/ingest-nodes.ts'
import type { PassedRequest } from '../../../src/cluster/edge/node-client.ts'

const NO_BODY = Buffer.alloc(0)

const REQUEST: PassedRequest = {
  method: 'POST',
  path: '/api/start-stream',
  headers: {},
  body: NO_BODY,
  client: '192.0.2.1',
  signal: new AbortController().signal,
}

/** Nodes of which those in `live` answer, and a registry that names those in `listed`. */
function serve({ isOrdered = false } = {}) {
  const [listed, live] = [new Set(['a']), new Set(['a'])]
  const state = { listed, live, nowUs: 0, looks: 0, asked: [] as string[], isAway: false }
  const nodes = new IngestNodes({
    client: {
      pass: async (url) => {
        state.asked.push(url)
        if (!live.has(url)) throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
        return { status: 200, headers: {}, body: Readable.from([]), read: async () => NO_BODY }
      },
    },
    list: async () => {
      state.looks++
      if (state.isAway) throw new Error('the registry is away')
      return [...listed]
    },
    isOrdered,
    clock: { nowUs: () => state.nowUs },
  })
  return { state, pass: () => nodes.pass(REQUEST) }
}

t.test('a flood costs the registry one look a second', async (t) => {
  const { state, pass } = serve()
  for (let n = 0; n < 50; n++) await pass()
  t.equal(state.looks, 1)
  await Promise.all(Array.from({ length: 50 }, pass))
  t.equal(state.looks, 1)
  state.nowUs += 1_000_000
  await Promise.all(Array.from({ length: 50 }, pass))
  t.equal(state.looks, 2)
  t.equal(state.asked.length, 150)
})

t.test(
  'the node that has answered last is preferred, or the first one of an ordered list',
  async (t) => {
    for (const isOrdered of [false, true]) {
      const { state, pass } = serve({ isOrdered })
      await pass()
      for (const nodes of [state.listed, state.live]) {
        nodes.clear()
        for (const url of ['b', 'a']) nodes.add(url)
      }
      state.nowUs += 1_000_000
      await pass()
      t.strictSame(state.asked, ['a', isOrdered ? 'b' : 'a'])
    }
  },
)

t.test('a registry that is away is asked as seldom, and the nodes stay', async (t) => {
  const { state, pass } = serve()
  await pass()
  state.isAway = true
  state.nowUs += 1_000_000
  for (let n = 0; n < 50; n++) await pass()
  t.equal(state.looks, 2)
})

t.test('a request that reaches none of the known nodes finds a new one', async (t) => {
  const { state, pass } = serve()
  await pass()
  for (const nodes of [state.listed, state.live]) {
    nodes.delete('a')
    nodes.add('b')
  }
  state.nowUs += 300_000
  await pass()
  t.strictSame([state.asked, state.looks], [['a', 'a', 'b'], 2])
})

t.test('while no node can be reached, the registry is asked four times a second', async (t) => {
  const { state, pass } = serve()
  state.live.clear()
  for (let n = 0; n < 50; n++) await t.rejects(pass(), { code: 'ECONNREFUSED' })
  t.equal(state.looks, 1)
  state.nowUs += 250_000
  for (let n = 0; n < 50; n++) await t.rejects(pass(), { code: 'ECONNREFUSED' })
  t.equal(state.looks, 2)
  state.listed.clear()
  state.nowUs += 1_000_000
  await t.rejects(pass(), { code: 'ORIGIN_UNREACHABLE' })
  t.equal(state.looks, 3)
})
