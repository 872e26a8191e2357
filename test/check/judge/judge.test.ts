/**
 * The judge on whole sessions.
 */
import t from 'tap'
import type { Exchange } from '../../../src/check/exchange.ts'
import { Judge } from '../../../src/check/judge/judge.ts'
import { RULES } from '../../../src/check/rules/table.ts'
import { judge as findingsOf } from '../rules/fixture.ts'
import { recordSession, withBody, type SessionOptions } from '../session.ts'

const KINDS: readonly SessionOptions[] = (['cmaf', 'ts'] as const).flatMap((format) =>
  [true, false].flatMap((lowLatency) =>
    [true, false].map((reconnects) => ({ format, lowLatency, reconnects })),
  ),
)
const SESSIONS = await Promise.all(KINDS.map((kind) => recordSession({ ...kind, stops: true })))

for (const [index, kind] of KINDS.entries()) {
  t.test(`finds nothing in a session of our own: ${JSON.stringify(kind)}`, async (t) => {
    const exchanges = SESSIONS[index]!
    const judge = new Judge(RULES)
    for (const exchange of exchanges) judge.push(exchange)
    judge.end()
    t.same(
      judge.findings.map(({ rule, evidence }) => ({ id: rule.id, evidence })),
      [],
    )
    const roles = exchanges.map(({ role }) => role)
    const isCmaf = kind.format === 'cmaf'
    t.ok(roles.filter((role) => role === 'segment').length >= 12)
    t.equal(roles.includes('init'), isCmaf)
    t.equal(roles.includes('part'), isCmaf && kind.lowLatency)
    t.equal(judge.summary.renditions.length, isCmaf ? 3 : 2)
  })
}

t.test('parts that arrive after those behind them are judged like all others', async (t) => {
  const session = SESSIONS[0]!
  const late = (exchanges: readonly Exchange[], remainder: number) => {
    const parts = exchanges.filter(({ role, url }) => role === 'part' && url.includes('-v1-'))
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
