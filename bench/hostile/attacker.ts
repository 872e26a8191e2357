/**
 * Worker that runs one attack, so that its CPU does not count as the service's.
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
  /** Runs the attack for a limited time. @returns its own description of the result */
  carryOut(durationMs: number): Promise<object>
}

const { attack: name, target } = (await readTask()) as AttackerTask
const attack = ATTACKS.find((attack) => attack.name === name)!

answer<AttackerAnswers>({
  carryOut: (durationMs) => attack.carryOut(target, AbortSignal.timeout(durationMs)),
})
