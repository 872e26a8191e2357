/**
 * Calls at a steady rate in real time.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'

const TICK_MS = 2

/** Maximum delay to catch up with at once; a live source would lose older data. */
const MAX_LAG_MS = 100

/** Calls `act` with 0, 1, 2 … at a steady rate while `goesOn` returns true for the next number. */
export async function pace(
  perSec: number,
  act: (number: number) => void,
  goesOn: (number: number) => boolean,
): Promise<void> {
  let startMs = performance.now()
  for (let number = 0; goesOn(number);) {
    const nowMs = performance.now()
    const lagMs = nowMs - startMs - (number * 1000) / perSec
    startMs += Math.max(0, lagMs - MAX_LAG_MS)
    const due = ((nowMs - startMs) * perSec) / 1000
    while (number < due && goesOn(number)) act(number++)
    await sleep(TICK_MS)
  }
}
