import t from 'tap'
import { Drain } from '../../../../src/cluster/node/takeover/drain.ts'

t.test('a drain sends all encoders away, and the time that is left counts', async (t) => {
  const connected = new Set(['a', 'b', 'c'])
  const left: string[] = []
  const drain = new Drain(() =>
    [...connected].map((id) => ({
      disconnect: (reason) => {
        connected.delete(id)
        left.push(`${id} ${reason}`)
      },
    })),
  )
  t.equal(drain.hasBegun, false)
  const first = drain.run()
  t.strictSame(left, ['a draining'])
  t.equal(drain.hasBegun, true)
  await Promise.all([drain.run(0), first])
  t.strictSame(left, ['a draining', 'b draining', 'c draining'])
})
