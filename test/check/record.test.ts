/** Records: what is written is judged again alike, and no record harms its reader. */
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { checkStream } from '../../src/check/index.ts'
import type { Exchange } from '../../src/check/exchange.ts'
import { Judge } from '../../src/check/judge/judge.ts'
import { openReplay, Recorder } from '../../src/check/record.ts'
import { RULES } from '../../src/check/rules/table.ts'
import { ORIGIN, recordSession } from './session.ts'

const SESSION = await recordSession({ reconnects: true, stops: true })
const HEAD = `${JSON.stringify({ format: 'millrace-check', version: 1, url: `${ORIGIN}/a.m3u8` })}\n`

t.test('a replay has the findings of the check', async (t) => {
  const broken = SESSION.map((exchange): Exchange => {
    if (exchange.role === 'gone') return { ...exchange, reply: { ...exchange.reply!, status: 404 } }
    if (exchange.role !== 'head') return exchange
    const { reply: _, ...request } = exchange
    return { ...request, failure: 'the connection was refused' }
  })
  const judge = new Judge(RULES)
  const folder = join(t.testdir(), 'record')
  const recorder = new Recorder(folder, `${ORIGIN}/video/studio/master.m3u8`)
  for (const exchange of broken) {
    judge.push(exchange)
    recorder.push(exchange)
  }
  judge.end()
  recorder.close()
  const result = await checkStream({ replay: folder })
  t.same(result.findings, judge.findings)
  t.ok(result.findings.some(({ rule }) => rule.id === 'GONE_TOO_EARLY'))
  t.equal(result.url, `${ORIGIN}/video/studio/master.m3u8`)
  t.equal(result.requests, broken.length)
  t.equal(result.failures, broken.filter(({ reply }) => reply === undefined).length)
  const bodies = readdirSync(join(folder, 'bodies'))
  t.ok(bodies.length < broken.length, 'equal bodies are one file')
})

t.test('does not write over a record', async (t) => {
  const folder = t.testdir()
  new Recorder(folder, ORIGIN).close()
  t.throws(() => new Recorder(folder, ORIGIN), { code: 'RECORD_INVALID', message: /has a record/ })
})

t.test('drops exchanges when the record is full, and counts them', async (t) => {
  const folder = t.testdir()
  const exchanges = SESSION.slice(0, 6)
  const sizes = exchanges.map(({ reply }) => reply!.body.length)
  const recorder = new Recorder(folder, ORIGIN, sizes[0]! + sizes[1]! + sizes[2]!)
  for (const exchange of exchanges) recorder.push(exchange)
  recorder.close()
  t.equal(recorder.dropped, 3)
  t.equal((await checkStream({ replay: folder })).requests, 3)
})

t.test('refuses what is no record with its reason', async (t) => {
  const hash = 'a'.repeat(64)
  const line = (reply: object) =>
    `${JSON.stringify({
      role: 'segment',
      method: 'GET',
      url: `${ORIGIN}/1.ts`,
      headers: {},
      sentAtMs: 1,
      reply: {
        status: 200,
        headers: {},
        url: `${ORIGIN}/1.ts`,
        protocol: 'h2',
        headersAtMs: 1,
        endedAtMs: 1,
        longestPauseMs: 0,
        body: hash,
        ...reply,
      },
    })}\n`
  const cases: readonly [index: string, reason: RegExp][] = [
    ['', /line 1 is no JSON/],
    ['{}\n', /line 1 is no head/],
    [HEAD.replace('"version":1', '"version":2'), /line 1 is no head/],
    [`${HEAD}{]\n`, /line 2 is no JSON/],
    [`${HEAD}{"role":"playlist"}\n`, /line 2 is no exchange/],
    [HEAD + line({}), /body a{64} is missing/],
    [HEAD + line({ body: '../../../../etc/passwd' }), /line 2 is no exchange/],
    [HEAD + line({ endedAtMs: -1 }), /line 2 is no exchange/],
    [HEAD + line({ url: 'file:///etc/passwd' }), /line 2 is no exchange/],
    [`${HEAD}${'x'.repeat(600_000)}`, /a line exceeds/],
  ]
  for (const [index, message] of cases) {
    const folder = t.testdir({ 'exchanges.jsonl': index })
    await t.rejects(checkStream({ replay: folder }), { code: 'RECORD_INVALID', message })
  }
  await t.rejects(openReplay(join(t.testdir(), 'nothing')), { message: /cannot read/ })
  const folder = t.testdir({ 'exchanges.jsonl': HEAD + line({}) })
  mkdirSync(join(folder, 'bodies'))
  writeFileSync(join(folder, 'secret'), 'secret')
  symlinkSync(join(folder, 'secret'), join(folder, 'bodies', hash))
  await t.rejects(checkStream({ replay: folder }), { message: /body a{64}/ })
})

t.test('refuses a body with other bytes', async (t) => {
  const folder = t.testdir()
  const recorder = new Recorder(folder, ORIGIN)
  for (const exchange of SESSION.slice(0, 2)) recorder.push(exchange)
  recorder.close()
  const [body] = readdirSync(join(folder, 'bodies'))
  appendFileSync(join(folder, 'bodies', body!), 'x')
  await t.rejects(checkStream({ replay: folder }), { message: /other bytes/ })
})

t.test('a record that ends within a line is read up to there', async (t) => {
  const folder = t.testdir()
  const recorder = new Recorder(folder, ORIGIN)
  for (const exchange of SESSION.slice(0, 3)) recorder.push(exchange)
  recorder.close()
  const index = join(folder, 'exchanges.jsonl')
  writeFileSync(index, readFileSync(index, 'utf8').slice(0, -20))
  t.equal((await checkStream({ replay: folder })).requests, 2)
})
