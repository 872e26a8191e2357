/**
 * The attacks at full size: the functions of test/hostile/attacks, and the settings they are tried against.
 *
 * @module
 */
import type { ServiceOptions } from '../support/service.ts'
import { floodConclusions } from '../../test/hostile/attacks/conclusion-flood.ts'
import { fillWaitingPlaces } from '../../test/hostile/attacks/waiting-places.ts'
import type { Target } from '../../test/hostile/target.ts'

export interface Attack extends ServiceOptions {
  readonly name: string
  readonly seconds: number
  /** Bounded in itself, and over when the signal says so. */
  carryOut(target: Target, signal: AbortSignal): Promise<object>
}

export const ATTACKS: readonly Attack[] = [
  {
    name: 'none',
    seconds: 10,
    carryOut: async () => ({}),
  },
  {
    name: 'conclusion-flood',
    seconds: 15,
    carryOut: floodConclusions,
  },
  {
    name: 'waiting-places',
    seconds: 10,
    carryOut: fillWaitingPlaces,
  },
]
