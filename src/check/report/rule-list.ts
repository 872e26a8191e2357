/**
 * Table of all rules in docs/check.md, in Markdown.
 *
 * @module
 */
import { PLAYERS, type Rule } from '../rules/rule.ts'
import { PLAYER_NAMES } from './text.ts'

export function ruleList(rules: readonly Rule[]): string {
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
