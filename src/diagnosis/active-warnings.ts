/**
 * Active warnings of a stream. Facts begin, continue and end warnings by the rules in `warnings.ts`; each warning is
 * reported once, when it begins.
 *
 * Sans-IO: `observe` takes all measured facts at once, `report` takes the fact of a single event, `end` its end.
 *
 * @module
 */
import type { Warning } from '../api/records.ts'
import { WARNINGS, type WarningFact, type WarningCode, type WarningRule } from './warnings.ts'

interface Active {
  /** Fact whose figures the message shows. */
  fact: WarningFact
  /** Time at which a fact last began or continued the warning, in microseconds of a monotonic clock. */
  seenUs: number
}

export class ActiveWarnings {
  readonly #onBegin: (warning: Warning) => void
  readonly #active = new Map<WarningCode, Active>()

  /** @param onBegin  called with each warning that begins */
  constructor(onBegin: (warning: Warning) => void) {
    this.#onBegin = onBegin
  }

  /** Active warnings, oldest first, with their current figures. */
  get list(): readonly Warning[] {
    return [...this.#active.values()].map(({ fact }) => describe(fact))
  }

  /** @param facts  all facts measured now; a warning whose fact is missing ends after its hold time */
  observe(facts: readonly WarningFact[], nowUs: number): void {
    const seen = new Set(facts.filter((fact) => this.report(fact, nowUs)).map(({ code }) => code))
    for (const [code, active] of this.#active) {
      if (!seen.has(code) && isOver(active, nowUs)) this.#active.delete(code)
    }
  }

  /** @returns whether the warning begins or continues */
  report(fact: WarningFact, nowUs: number): boolean {
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
    const continues = !isExplained && !(ends?.(fact) ?? begins?.(fact) === false)
    if (continues) active.seenUs = nowUs
    else if (isOver(active, nowUs)) this.#active.delete(code)
    if (merge !== undefined) active.fact = merge(active.fact, fact)
    else if (continues) active.fact = fact
    return continues
  }

  /** Ends a warning at once, if its fact is the one that is over. */
  end(code: WarningCode, isOver: (fact: WarningFact) => boolean): void {
    const active = this.#active.get(code)
    if (active !== undefined && isOver(active.fact)) this.#active.delete(code)
  }

  /** Ends all warnings: another encoder connects, or the stream stops. */
  clear(): void {
    this.#active.clear()
  }
}

function describe(fact: WarningFact): Warning {
  return { code: fact.code, message: ruleOf(fact).message(fact) }
}

function isOver({ fact, seenUs }: Active, nowUs: number): boolean {
  const { holdSec = 0 } = ruleOf(fact)
  const limitSec = typeof holdSec === 'number' ? holdSec : holdSec(fact)
  return nowUs - seenUs >= limitSec * 1e6
}

function ruleOf({ code }: WarningFact): WarningRule<WarningFact> {
  return WARNINGS[code] as WarningRule<WarningFact>
}
