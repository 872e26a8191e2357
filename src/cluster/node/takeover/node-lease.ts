/**
 * Lease of this node: while it holds, the streams of the node are its own.
 *
 * @module
 */
import type { Timers } from '../../../timing/clock.ts'
import type { NodeRecord } from '../../registry/registered.ts'
import type { Registry } from '../../registry/registry.ts'

/**
 * Interval of renewals in milliseconds, of a lease of 2 s. The shorter it is, the sooner others see that a node has stopped,
 * and the longer its lease still holds then.
 */
export const RENEW_MS = 300

interface NodeLeaseOptions {
  readonly registry: Pick<Registry, 'renewNode' | 'leaveNode'>
  /** Describes this node. */
  readonly describe: () => NodeRecord
  /** Called when the lease has begun, or begun anew: other nodes may have adopted streams since the one before. */
  readonly onBegin: () => void
  readonly timers: Pick<Timers, 'every'>
}

/** Calling order: `start`, then `leave` or `abandon`. Failures are tried again for ever: nothing waits for them. */
export class NodeLease {
  readonly #options: NodeLeaseOptions
  #endRenewals: () => void = () => undefined
  #isRenewing = false
  #since: number | undefined

  constructor(options: NodeLeaseOptions) {
    this.#options = options
  }

  /** Since when the lease has held, by the clock of the registry; undefined before the first response. */
  get sinceMs(): number | undefined {
    return this.#since
  }

  start(): void {
    this.#endRenewals = this.#options.timers.every(RENEW_MS, () => void this.renew())
    void this.renew()
  }

  /** @returns whether the registry has the lease */
  async renew(): Promise<boolean> {
    if (this.#isRenewing) return false
    this.#isRenewing = true
    const { registry, describe, onBegin } = this.#options
    try {
      const since = await registry.renewNode(describe())
      const isNew = since !== this.#since
      this.#since = since
      if (isNew) onBegin()
      return true
    } catch {
      return false
    } finally {
      this.#isRenewing = false
    }
  }

  /** Ends the lease, so that other nodes adopt the streams at once. */
  async leave(): Promise<void> {
    this.abandon()
    const { registry, describe } = this.#options
    await registry.leaveNode(describe().node).catch(() => undefined)
  }

  /** Lets the lease lapse. */
  abandon(): void {
    this.#endRenewals()
  }
}
