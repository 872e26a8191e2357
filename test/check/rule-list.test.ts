/**
 * docs/check-rules.md: the list of rules, as generated from the table. `npm run docs` writes it.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { PLAYER_NAMES } from '../../src/check/report/text.ts'
import { PLAYERS, type Rule } from '../../src/check/rules/rule.ts'
import { RULES } from '../../src/check/rules/table.ts'
import { rule } from './report/results.ts'

const PAGE = new URL('../../docs/check-rules.md', import.meta.url)
const LIST = /(?<=<!-- rules: [^>]* -->\n)[^]*(?=<!-- rules end -->)/

t.test('docs/check-rules.md holds the generated list of rules', async (t) => {
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

/** Table of rules in Markdown. */
function ruleList(rules: readonly Rule[]): string {
  const rows = rules.map(({ id, clause, level, requirement, effects, remedy }) => {
    const told = PLAYERS.flatMap((player) => {
      const effect = effects[player]
      return effect === undefined
        ? []
        : `${PLAYER_NAMES[player]} ${effect.severity}: ${effect.text}`
    })
    const cells = [`\`${id}\` ${level}, ${clause}`, requirement, told.join('<br>'), remedy]
    return `| ${cells.map(escapeCell).join(' | ')} |`
  })
  return ['| rule | requirement | players | remedy |', '|---|---|---|---|', ...rows].join('\n')
}

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ')
}
