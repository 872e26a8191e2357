/** The judge of hostile sessions: bytes of playlists and media change, and nothing is thrown. */
import t from 'tap'
import type { Exchange } from '../../src/check/exchange.ts'
import { formatText } from '../../src/check/report/text.ts'
import { createRandom } from '../support/random.ts'
import { FIRST_SEED, rounds } from '../support/soak.ts'
import { recordCmaf } from './cmaf-session.ts'
import { result } from './report/results.ts'
import { judge } from './rules/fixture.ts'
import { recordSession } from './session.ts'

/** Start of a body, where headers of boxes and tags are. */
const HEAD_BYTES = 400

/** Changes bytes of every third body, and cuts some off. */
function mutate(exchanges: readonly Exchange[], seed: number): Exchange[] {
  const { below } = createRandom(seed)
  return exchanges.map((exchange) => {
    if (exchange.reply === undefined || below(3) > 0) return exchange
    const body = Buffer.from(exchange.reply.body)
    for (let count = below(6); count >= 0; count--) {
      const limit = below(2) === 0 ? body.length : Math.min(HEAD_BYTES, body.length)
      if (limit > 0) body[below(limit)] = below(256)
    }
    const kept = below(8) === 0 ? body.subarray(0, below(body.length)) : body
    return { ...exchange, reply: { ...exchange.reply, body: kept } }
  })
}

const SESSIONS = {
  CMAF: recordCmaf(),
  'low latency': await recordSession({ reconnects: true, stops: true }),
  'MPEG-TS': await recordSession({ format: 'ts', reconnects: true, stops: true }),
}

for (const [name, session] of Object.entries(SESSIONS)) {
  t.test(`judges mutated sessions of ${name}`, async (t) => {
    const seeds = name === 'CMAF' ? rounds(60, 2000) : rounds(6, 200)
    const rules = new Set<string>()
    for (let seed = FIRST_SEED; seed < FIRST_SEED + seeds; seed++) {
      t.doesNotThrow(() => {
        const findings = judge(mutate(session, seed))
        for (const { rule } of findings) rules.add(rule.id)
        formatText(result(findings))
      }, `seed ${seed}`)
    }
    t.ok(rules.size > 20, `${rules.size} rules are found broken`)
  })
}
