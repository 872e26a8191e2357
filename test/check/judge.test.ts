/**
 * The judge on whole sessions.
 */
import t from 'tap'
import { Judge } from '../../src/check/judge.ts'
import { RULES } from '../../src/check/rules/table.ts'
import { recordSession } from './session.ts'

for (const lowLatency of [true, false]) {
  for (const reconnects of [false, true]) {
    const title = `lowLatency ${lowLatency}, reconnects ${reconnects}`
    t.test(`finds nothing in a session of our own: ${title}`, async (t) => {
      const exchanges = await recordSession({ lowLatency, reconnects, stops: true })
      const judge = new Judge(RULES)
      for (const exchange of exchanges) judge.push(exchange)
      judge.end()
      t.same(
        judge.findings.map(({ rule, evidence }) => ({ id: rule.id, evidence })),
        [],
      )
      const roles = exchanges.map(({ role }) => role)
      t.ok(roles.filter((role) => role === 'segment').length >= 12)
      t.equal(roles.includes('part'), lowLatency)
      t.equal(judge.summary.renditions.length, 2)
    })
  }
}
