/**
 * The list of rules in docs/check.md, as generated from the table. `npm run docs` writes it.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { ruleList } from '../../src/check/report/rule-list.ts'
import { RULES } from '../../src/check/rules/table.ts'
import { rule } from './report/results.ts'

const PAGE = new URL('../../docs/check.md', import.meta.url)
const LIST = /(?<=<!-- rules: [^>]* -->\n)[^]*(?=<!-- rules end -->)/

t.test('docs/check.md holds the generated list of rules', async (t) => {
  const page = readFileSync(PAGE, 'utf8')
  const list = `${ruleList(RULES)}\n`
  t.match(page, LIST)
  const written = page.replace(LIST, () => list)
  if (process.env['UPDATE_DOCS'] === '1') writeFileSync(PAGE, written)
  else t.equal(LIST.exec(page)?.[0], list, '`npm run docs` writes the list')
})

t.test('ids of rules are unique, in capitals', async (t) => {
  const ids = RULES.map(({ id }) => id)
  t.equal(new Set(ids).size, ids.length)
  t.same(
    ids.filter((id) => !/^[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$/.test(id)),
    [],
  )
})

t.test('a row has the rule, its requirement, what players do, and the remedy', async (t) => {
  t.equal(
    ruleList([rule({ requirement: 'A | B.', effects: {} }), rule()]),
    `| rule | requirement | players | remedy |
|---|---|---|---|
| \`PART_OVER_TARGET\` MUST, RFC 8216bis 4.4.4.9 | A \\| B. |  | Announce the longest part that can occur as PART-TARGET. |
| \`PART_OVER_TARGET\` MUST, RFC 8216bis 4.4.4.9 | No part is longer than PART-TARGET. | Apple stops: Refuses the playlist.<br>hls.js degrades: Estimates the live edge wrongly. | Announce the longest part that can occur as PART-TARGET. |`,
  )
})
