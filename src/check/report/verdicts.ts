/**
 * Verdicts: what the broken rules mean for each player, and for the exit status.
 *
 * @module
 */
import type { CheckResult } from '../check-stream.ts'
import type { Finding } from '../judge/judge.ts'
import { PLAYERS, type Level, type Player, type Rule, type Severity } from '../rules/rule.ts'

/** Severities, worst first. */
const SEVERITIES: readonly Severity[] = ['stops', 'stalls', 'degrades']

/** What a player does with the stream. */
export interface PlayerVerdict {
  readonly outcome: 'plays' | Severity
  /** Ids of the broken rules that lead to this outcome, in the order of the findings. */
  readonly rules: readonly string[]
}

export function verdicts(findings: readonly Finding[]): Record<Player, PlayerVerdict> {
  const verdictOf = (player: Player): PlayerVerdict => {
    for (const outcome of SEVERITIES) {
      const worst = findings.filter(({ rule }) => rule.effects[player]?.severity === outcome)
      if (worst.length > 0) return { outcome, rules: worst.map(({ rule }) => rule.id) }
    }
    return { outcome: 'plays', rules: [] }
  }
  return Object.fromEntries(PLAYERS.map((player) => [player, verdictOf(player)])) as Record<
    Player,
    PlayerVerdict
  >
}

/** @returns findings by their worst effect on any player, then MUST before SHOULD; else in the given order */
export function worstFirst(findings: readonly Finding[]): readonly Finding[] {
  return findings.toSorted((a, b) => rank(a) - rank(b))
}

function rank({ rule }: Finding): number {
  const worst = worstEffect(rule)
  const rankOfWorst = worst === undefined ? SEVERITIES.length : SEVERITIES.indexOf(worst)
  return rankOfWorst * 2 + (rule.level === 'MUST' ? 0 : 1)
}

/** Worst effect of a broken rule on any player; undefined if no player is known to suffer. */
export function worstEffect({ effects }: Rule): Severity | undefined {
  const suffered = new Set(Object.values(effects).map(({ severity }) => severity))
  return SEVERITIES.find((severity) => suffered.has(severity))
}

/** Whether any playlist could be read. */
export function isFetched({ summary }: CheckResult): boolean {
  return summary.multivariant !== undefined || summary.renditions.length > 0
}

/** Number of rules of a level that are broken. */
export function countBroken({ findings }: CheckResult, level: Level): number {
  return findings.filter(({ rule }) => rule.level === level).length
}

/** @returns 0 where all MUST rules are kept, 1 where one is broken, 2 where no playlist could be fetched */
export function exitStatus(result: CheckResult): 0 | 1 | 2 {
  if (!isFetched(result)) return 2
  return countBroken(result, 'MUST') > 0 ? 1 : 0
}
