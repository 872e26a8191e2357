/**
 * Sending in real time.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'

const TICK_MS = 2

/** Who was held up makes up for so much at once. A live source would have lost what is older. */
const MAX_LAG_MS = 100

/** Calls `act` with 0, 1, 2 … evenly in time, while `goesOn` says so of the next number. */
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
