/**
 * A registry in memory, whose calls may fail: the model behind the calls of `Registry`.
 *
 * @module
 */
import { unavailable } from '../../../src/cluster/registry/unavailable.ts'
import type { Registry } from '../../../src/cluster/registry/registry.ts'
import type { Clock } from '../../../src/timing/clock.ts'
import { RegistryModel, type ModelOptions } from '../../../src/cluster/registry/registry-model.ts'

/** Numbers that a new stream starts with are below these by far, if given. */
export const SEQUENCE_CLOCK = {
  originMs: Date.UTC(2026, 10, 1),
  mediaPerSec: 4,
  discontinuitiesPerSec: 1 / 600,
}

type Calls = Pick<Registry, keyof RegistryModel & keyof Registry>

export class MemoryRegistry {
  /** `away`: calls fail without effect; `unanswered`: they take effect and fail. */
  fault: 'away' | 'unanswered' | undefined
  /** Id of the server: another one may have lost writes. */
  server = 'one'
  /** Names of the calls so far. */
  readonly called: (keyof Calls)[] = []
  readonly model: RegistryModel
  readonly calls: Calls

  /** A node settles at once and its lease holds for a minute, unless the options say otherwise. */
  constructor(clock: Pick<Clock, 'wallMs'>, options: Partial<ModelOptions> = {}) {
    this.model = new RegistryModel({
      nowMs: () => clock.wallMs(),
      server: () => this.server,
      ...{ leaseMs: 60_000, settleMs: 0, sequenceClock: SEQUENCE_CLOCK },
      ...options,
    })
    this.calls = new Proxy(this.model, {
      get:
        (model, name: keyof Calls) =>
        async (...args: unknown[]) => {
          this.called.push(name)
          if (this.fault === 'away') throw unavailable()
          const answer: unknown = Reflect.apply(model[name], model, args.map(encoded))
          if (this.fault === 'unanswered') throw unavailable()
          return answer
        },
    }) as unknown as Calls
  }
}

/** As JSON has it: what is undefined is not there. */
export function encoded(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value))
}
