/**
 * Sentinels, which know the address of the master.
 *
 * @module
 */
import type { HostPort } from './redis-url.ts'

export interface Master extends HostPort {
  /** Configuration epoch, which each failover raises. */
  readonly epoch: number
}

/** Sends commands to a Sentinel. @returns their replies, as RESP 2 */
type AskSentinel = (
  address: HostPort,
  commands: readonly (readonly string[])[],
) => Promise<readonly unknown[]>

/**
 * Asks all Sentinels at once. One that is cut off may name a master that has been replaced: the highest epoch counts.
 *
 * @throws {Error} with the reason of one of them if none knows the master
 */
export async function findMaster(
  addresses: readonly HostPort[],
  name: string,
  ask: AskSentinel,
): Promise<Master> {
  const answers = await Promise.allSettled(addresses.map((address) => askOne(address, name, ask)))
  const masters = answers.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
  const [newest] = masters.toSorted((one, other) => other.epoch - one.epoch)
  if (newest !== undefined) return newest
  const cause: unknown = answers.find((each) => each.status === 'rejected')?.reason
  throw new Error(`no Sentinel answers: ${cause instanceof Error ? cause.message : ''}`, { cause })
}

async function askOne(address: HostPort, name: string, ask: AskSentinel): Promise<Master> {
  const [found, state] = await ask(address, [
    // In a failover, this is the new master before the other reply is.
    ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name],
    ['SENTINEL', 'MASTER', name],
  ])
  if (!Array.isArray(found) || !Array.isArray(state)) {
    throw new Error(`a Sentinel does not know the master ${name}`)
  }
  const epoch = Number(state[state.indexOf('config-epoch') + 1])
  return { host: String(found[0]), port: Number(found[1]), epoch }
}
