/**
 * What the broken rules mean for each player, and for the exit status.
 *
 * @module
 */
import type { CheckResult } from '../check-result.ts'
import type { Finding } from '../judge.ts'
import { PLAYERS, type Player, type Severity } from '../rules/rule.ts'

/** Severities, worst first. */
const SEVERITIES: readonly Severity[] = ['stops', 'stalls', 'degrades']

export interface Verdict {
  readonly outcome: 'plays' | Severity
  /** Ids of the broken rules that lead to this outcome, in the order of the findings. */
  readonly rules: readonly string[]
}

export function verdicts(findings: readonly Finding[]): Record<Player, Verdict> {
  const verdictOf = (player: Player): Verdict => {
    for (const outcome of SEVERITIES) {
      const worst = findings.filter(({ rule }) => rule.effects[player]?.severity === outcome)
      if (worst.length > 0) return { outcome, rules: worst.map(({ rule }) => rule.id) }
    }
    return { outcome: 'plays', rules: [] }
  }
  return Object.fromEntries(PLAYERS.map((player) => [player, verdictOf(player)])) as Record<
    Player,
    Verdict
  >
}

/** @returns findings by their worst effect on any player, then MUST before SHOULD; else in the given order */
export function worstFirst(findings: readonly Finding[]): readonly Finding[] {
  return findings.toSorted((a, b) => rank(a) - rank(b))
}

function rank({ rule }: Finding): number {
  const effects = Object.values(rule.effects)
  const worst = SEVERITIES.findIndex((it) => effects.some(({ severity }) => severity === it))
  return (worst < 0 ? SEVERITIES.length : worst) * 2 + (rule.level === 'MUST' ? 0 : 1)
}

/** Whether any playlist could be read. */
export function isFetched({ summary }: CheckResult): boolean {
  return summary.multivariant !== undefined || summary.renditions.length > 0
}

/** @returns 0 where all MUST rules are kept, 1 where one is broken, 2 where no playlist could be fetched */
export function exitStatus(result: CheckResult): 0 | 1 | 2 {
  if (!isFetched(result)) return 2
  return result.findings.some(({ rule }) => rule.level === 'MUST') ? 1 : 0
}
