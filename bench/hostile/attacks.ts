/**
 * The attacks at full size: the functions of test/hostile/attacks, and the settings they are tried against.
 *
 * @module
 */
import type { ServiceOptions } from '../support/service.ts'
import { floodConclusions } from '../../test/hostile/attacks/conclusion-flood.ts'
import { holdStreamWithoutMedia } from '../../test/hostile/attacks/silent-publisher.ts'
import { fillWaitingPlaces } from '../../test/hostile/attacks/waiting-places.ts'
import { publishCostly } from '../../test/hostile/attacks/tables.ts'
import type { Target } from '../../test/hostile/target.ts'

export interface Attack extends ServiceOptions {
  readonly name: string
  readonly seconds: number
  /** Bounded in itself, and over when the signal says so. */
  carryOut(target: Target, signal: AbortSignal): Promise<object>
}

/** Of test/hostile/attacks/costly-streams.ts: those that once cost the most. */
const COSTLY = {
  'tables-pat': 'PAT of 8 x 253 programs, one section changes',
  'tables-pmt': 'PMT of one of 1000 programs, all carried',
  'tiny-nal-units': 'NAL units of 3 bytes',
  'tiny-segments': 'timestamps jump at each key frame, 24 renditions',
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
  ...Object.entries(COSTLY).map(([name, stream]) => ({
    name,
    seconds: 20,
    carryOut: (target: Target, signal: AbortSignal) =>
      publishCostly(target, signal, { stream, megabitsPerSecond: 10 }),
  })),
  {
    name: 'silent-publisher',
    seconds: 15,
    carryOut: holdStreamWithoutMedia,
  },
]
