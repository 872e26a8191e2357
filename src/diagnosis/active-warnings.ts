/**
 * The warnings of a stream that hold: each begins with a fact, is told once, and ends with its cause, by the rules of
 * the table.
 *
 * Sans-IO. Conditions that are measured go through `observe`, all of them each time; what happens in between goes
 * through `report`.
 *
 * @module
 */
import type { Warning } from '../contract/report.ts'
import type { WarningRule } from './warning-rule.ts'
import { WARNINGS, type Fact, type WarningCode } from './warnings.ts'

interface Active {
  /** Its figures are those of the message. */
  fact: Fact
  /** When the condition was seen last. */
  seenUs: number
}

export class ActiveWarnings {
  readonly #onBegin: (warning: Warning) => void
  readonly #active = new Map<WarningCode, Active>()

  /** @param onBegin  takes each warning as it begins */
  constructor(onBegin: (warning: Warning) => void) {
    this.#onBegin = onBegin
  }

  /** The warnings that hold, oldest first, with the newest figures. */
  get list(): readonly Warning[] {
    return [...this.#active.values()].map(({ fact }) => describe(fact))
  }

  /** @param facts  all that is measured now; conditions that are not among them are no more */
  observe(facts: readonly Fact[], nowUs: number): void {
    const seen = new Set(facts.filter((fact) => this.report(fact, nowUs)).map(({ code }) => code))
    for (const [code, active] of this.#active) {
      if (!seen.has(code) && isOver(active, nowUs)) this.#active.delete(code)
    }
  }

  /** @returns whether its warning begins or goes on */
  report(fact: Fact, nowUs: number): boolean {
    const { code } = fact
    const { begins, ends, merge, unless } = ruleOf(fact)
    const active = this.#active.get(code)
    const isExplained = unless?.some((other) => this.#active.has(other as WarningCode)) === true
    if (active === undefined) {
      if (isExplained || begins?.(fact) === false) return false
      this.#active.set(code, { fact, seenUs: nowUs })
      this.#onBegin(describe(fact))
      return true
    }
    const goesOn = !isExplained && !(ends?.(fact) ?? begins?.(fact) === false)
    if (goesOn) active.seenUs = nowUs
    else if (isOver(active, nowUs)) this.#active.delete(code)
    if (merge !== undefined) active.fact = merge(active.fact, fact)
    else if (goesOn) active.fact = fact
    return goesOn
  }

  /** Ends all of them: another source begins. */
  clear(): void {
    this.#active.clear()
  }
}

export function describe(fact: Fact): Warning {
  return { code: fact.code, message: ruleOf(fact).message(fact) }
}

function isOver({ fact, seenUs }: Active, nowUs: number): boolean {
  const { holdSec = 0 } = ruleOf(fact)
  const heldSec = typeof holdSec === 'number' ? holdSec : holdSec(fact)
  return nowUs - seenUs >= heldSec * 1e6
}

function ruleOf({ code }: Fact): WarningRule<Fact> {
  return WARNINGS[code] as WarningRule<Fact>
}
