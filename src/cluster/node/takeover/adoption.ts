/**
 * Adoption, when a node dies: rounds in which this node takes the streams of nodes that are gone, and finds out which ones
 * others have taken. Without a cluster: `service/resumption.ts`.
 *
 *     lease of the owner ──► node-lease: renewed each 300 ms, lapses 2 s after the last time
 *       ended before by its node (SIGTERM), or by another one that finds nobody at its URL ──► gone-nodes
 *     round, each 500 ms ──► gone-nodes: is the next node there? ──► outbox/webhook-outbox: webhooks of nodes without a lease
 *       ──► registry/scripts/orphans.lua: their streams ──► claims, as long as there is room
 *     encoder that calls before ──► ingest/admission ──► claims: asks the owner, then claims
 *     claim ──► registry/scripts/claim.lua: one node gets the stream, with its window or without, see claims
 *       ──► backup/media-backup: segments of the window, with `CLUSTER_BACKUP`
 *       ──► registered/registered-streams ──► service/streams, stream/continuation: the stream goes on
 *       ──► owned/owned-streams: this node writes what the stream does
 *     viewers ──► edge/stream-origin: asks the next owner
 *
 * @module
 */
import type { Timers } from '../../../timing/clock.ts'
import type { Registry } from '../../registry/registry.ts'
import { watchNext, type Probe } from './gone-nodes.ts'
import { listOwned, type OwnedStreams } from '../owned/owned-streams.ts'
import type { WebhookOutbox } from '../outbox/webhook-outbox.ts'

const ROUND_MS = 500
/**
 * Max number of streams in a round: of each owner that is gone, running and stopped ones each, and of those whose keys have
 * expired.
 */
const MAX_ADOPTED = 20
/** Max number of claims at the same time. */
const MAX_AT_ONCE = 8
/** Rounds after which the streams of this node are compared with the registry. */
const RECONCILE_ROUNDS = 4

interface AdoptionOptions {
  /** Id of this node. */
  readonly node: string
  readonly registry: Pick<Registry, 'listLiveNodes' | 'leaveNode' | 'orphans' | 'overdue' | 'owned'>
  readonly outbox: Pick<WebhookOutbox, 'look'>
  readonly owned: Pick<OwnedStreams, 'reconcile'>
  /** See `Claims.claim`. */
  readonly claim: (streamId: string) => Promise<void>
  /** Whether this node goes away, and adopts nothing more. */
  readonly isDraining: () => boolean
  readonly timers: Timers
  /** Default: over HTTP. */
  readonly probe?: Probe
}

/** Calling order: `start`, then `stop`; `reconcile` in between as well. */
export class Adoption {
  readonly #options: AdoptionOptions
  #endRounds: () => void = () => undefined
  #round: Promise<void> | undefined
  #rounds = 0
  #isOver = false

  constructor(options: AdoptionOptions) {
    this.#options = options
  }

  start(): void {
    this.#endRounds = this.#options.timers.every(ROUND_MS, () => {
      this.#round ??= this.#adopt().finally(() => (this.#round = undefined))
    })
  }

  /** Begins no further round, and waits for the current one. */
  async stop(): Promise<void> {
    this.#isOver = true
    this.#endRounds()
    await this.#round
  }

  /**
   * Compares the streams of this node with those that the registry has for it, and claims those that are not here.
   *
   * @throws {MillraceError} `REGISTRY_UNAVAILABLE`
   */
  async reconcile(): Promise<void> {
    const { registry, node, owned } = this.#options
    const listed = await listOwned(registry, node)
    if (this.#isOver) return
    await this.#claimAll(await owned.reconcile(listed))
  }

  async #adopt(): Promise<void> {
    const { registry, node, outbox, timers, probe } = this.#options
    try {
      await watchNext(registry, node, timers, probe)
      // What a node that is gone has told of its streams comes before what this one does.
      await outbox.look()
      const orphans = await registry.orphans(node, { limit: MAX_ADOPTED })
      // They end here: with the events and webhooks of a stream that ends.
      const overdue = await registry.overdue(MAX_ADOPTED)
      await this.#claimAll([...orphans, ...overdue].map(({ id }) => id))
      if (++this.#rounds % RECONCILE_ROUNDS === 0) await this.reconcile()
    } catch {
      // The next round tries again.
    }
  }

  /** Claims streams, some at a time; a later round tries again those that fail, or find no room. */
  async #claimAll(streamIds: readonly string[]): Promise<void> {
    const { claim, isDraining } = this.#options
    const left = streamIds.values()
    const lane = async () => {
      for (const streamId of left) {
        if (!isDraining()) await claim(streamId).catch(() => undefined)
      }
    }
    await Promise.all(Array.from({ length: MAX_AT_ONCE }, lane))
  }
}
