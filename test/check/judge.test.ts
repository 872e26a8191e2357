/**
 * The judge on whole sessions.
 */
import t from 'tap'
import type { Exchange } from '../../src/check/exchange.ts'
import { Judge } from '../../src/check/judge.ts'
import { RULES } from '../../src/check/rules/table.ts'
import { judge as findingsOf } from './rules/fixture.ts'
import { recordSession, withBody } from './session.ts'

for (const lowLatency of [true, false]) {
  for (const reconnects of [false, true]) {
    const title = `lowLatency ${lowLatency}, reconnects ${reconnects}`
    t.test(`finds nothing but MPEG-TS parts in a session of our own: ${title}`, async (t) => {
      const exchanges = await recordSession({ lowLatency, reconnects, stops: true })
      const judge = new Judge(RULES)
      for (const exchange of exchanges) judge.push(exchange)
      judge.end()
      t.same(
        judge.findings.flatMap(({ rule, evidence }) =>
          rule.id === 'TS_PARTS' ? rule.id : { id: rule.id, evidence },
        ),
        lowLatency ? ['TS_PARTS'] : [],
      )
      const roles = exchanges.map(({ role }) => role)
      t.ok(roles.filter((role) => role === 'segment').length >= 12)
      t.equal(roles.includes('part'), lowLatency)
      t.equal(judge.summary.renditions.length, 2)
    })
  }
}

t.test('parts that arrive after those behind them are judged like all others', async (t) => {
  const session = await recordSession({ reconnects: true })
  const late = (exchanges: readonly Exchange[], remainder: number) => {
    const parts = exchanges.filter(({ role, url }) => role === 'part' && !url.includes('-a2-'))
    const moved = new Set(
      parts.filter((_, index) => index % 2 === remainder && index + 1 < parts.length),
    )
    return exchanges.flatMap((exchange) => {
      const before = parts[parts.indexOf(exchange) - 1]
      if (moved.has(exchange)) return []
      return before !== undefined && moved.has(before) ? [exchange, before] : [exchange]
    })
  }
  const unmarked = session.map((exchange) =>
    exchange.url.includes('.m3u8')
      ? withBody(exchange, (text) => text.replaceAll('#EXT-X-DISCONTINUITY\n', ''))
      : exchange,
  )
  for (const remainder of [0, 1]) {
    t.same(idsOf(late(session, remainder)), [])
    t.ok(idsOf(late(unmarked, remainder)).includes('TIMESTAMPS_BREAK'))
  }
})

function idsOf(exchanges: readonly Exchange[]): string[] {
  return findingsOf(exchanges).map(({ rule }) => rule.id)
}
