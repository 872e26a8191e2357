import t from 'tap'
import { Drain } from '../../../../src/cluster/node/takeover/drain.ts'
import { VirtualTime } from '../../../support/virtual-time.ts'

t.test('a drain sends all encoders away, and the time that is left counts', async (t) => {
  const connected = new Set(['a', 'b', 'c'])
  const left: string[] = []
  const time = new VirtualTime()
  const listPublished = () =>
    [...connected].map((id) => ({
      disconnect: (reason: string) => {
        connected.delete(id)
        left.push(`${id} ${reason}`)
      },
    }))
  const drain = new Drain(listPublished, time)
  t.equal(drain.hasBegun, false)
  const first = drain.run()
  t.strictSame(left, ['a draining'])
  t.equal(drain.hasBegun, true)
  await time.pass(2000)
  t.strictSame(left.splice(0, 1), ['a draining'])
  t.strictSame(left, ['b draining'], 'one each 2 s')
  await time.until(Promise.all([drain.run(0), first]))
  t.strictSame(left, ['b draining', 'c draining'])
})
