/**
 * A worker that carries out one attack, so that its cost is not taken for the service's.
 *
 * @module
 */
import type { Target } from '../../test/hostile/target.ts'
import { answer, readTask } from '../support/worker.ts'
import { ATTACKS } from './attacks.ts'

export interface AttackerTask {
  readonly attack: string
  readonly target: Target
}

export interface AttackerAnswers {
  /** Carries it out, for so long at most. @returns what the attack tells of itself */
  carryOut(durationMs: number): Promise<object>
}

const { attack: name, target } = (await readTask()) as AttackerTask
const attack = ATTACKS.find((attack) => attack.name === name)!

answer<AttackerAnswers>({
  carryOut: (durationMs) => attack.carryOut(target, AbortSignal.timeout(durationMs)),
})
