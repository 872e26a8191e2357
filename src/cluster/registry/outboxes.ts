/**
 * Outboxes of the cluster: undelivered events of webhooks, which outlive the nodes where they happened, and runs whose end
 * no event has announced yet.
 *
 * @module
 */
import type { StopReason } from '../../api/records.ts'
import type { Redis } from './redis.ts'
import { chunks } from './registered.ts'
import { runScript } from './scripts.ts'

/** An event as Redis has it. */
export interface OutboxEvent {
  /** Unique in the cluster: an event that is put twice is there once. */
  readonly id: string
  readonly text: string
}

export interface OutboxChanges {
  /** New events of the node. */
  readonly events: readonly OutboxEvent[]
  /** Events that are over, of any outbox. */
  readonly over: readonly { readonly outbox: string; readonly id: string }[]
}

export interface RunName {
  readonly streamId: string
  readonly run: number
}

/** A run that has stopped. */
export interface EndedRun extends RunName {
  readonly reason: StopReason
  /** Undefined: those of `DEFAULT_WEBHOOK_URLS`. */
  readonly webhookUrls: readonly string[] | undefined
}

export interface OutboxCounts {
  /** Id of the server: another one after a failover or a restart, which may have lost the last writes. */
  readonly server: string
  /** Number of events in each outbox of which the node takes care, by the name of the outbox; without empty ones. */
  readonly counts: ReadonlyMap<string, number>
}

interface OutboxesOptions {
  readonly redis: Pick<Redis, 'command'>
  /**
   * Time for which a node must have held its lease before it gets outboxes of nodes that are not known to be gone, and
   * announces ends in place of others, in milliseconds.
   */
  readonly settleMs?: number
}

/** Two leases. */
const SETTLE_MS = 4000
/** Events that are read at once, about. */
const PAGE = 100

/** All calls throw `REGISTRY_UNAVAILABLE`; what was asked may then have been done, and may be asked again. */
export class Outboxes {
  readonly #redis: Pick<Redis, 'command'>
  readonly #settleMs: number

  constructor({ redis, settleMs = SETTLE_MS }: OutboxesOptions) {
    this.#redis = redis
    this.#settleMs = settleMs
  }

  /** Writes changes, and gets the outboxes of nodes that are gone. */
  async update(node: string, { events, over }: OutboxChanges): Promise<OutboxCounts> {
    const ended = over.flatMap(({ outbox, id }) => [outbox, id])
    const added = events.flatMap(({ id, text }) => [id, text])
    const args = [node, this.#settleMs, over.length, ...ended, ...added]
    const [server, ...list] = (await runScript(this.#redis, 'outbox', args)) as unknown[]
    const counts = chunks(list, 2).map(
      ([outbox, count]) => [String(outbox), Number(count)] as const,
    )
    return { server: String(server), counts: new Map(counts) }
  }

  /** @returns all events of an outbox, in no order */
  async read(outbox: string): Promise<OutboxEvent[]> {
    const events = new Map<string, string>()
    let cursor = '0'
    do {
      const scan = ['HSCAN', `mr:node:${outbox}:outbox`, cursor, 'COUNT', String(PAGE)]
      const [next, list] = (await this.#redis.command(scan)) as [string, string[]]
      for (const [id, text] of chunks(list, 2) as [string, string][]) events.set(id, text)
      cursor = next
    } while (cursor !== '0')
    return [...events].map(([id, text]) => ({ id, text }))
  }

  /**
   * Runs whose end a node may announce: those that stopped without an owner, or whose owner has been silent for 5 s; after
   * a failover, which may have lost announcements, only its own at first.
   */
  async unannounced(node: string, limit: number): Promise<EndedRun[]> {
    const args = [node, this.#settleMs, limit]
    const list = (await runScript(this.#redis, 'unannounced', args)) as string[]
    return (chunks(list, 2) as [string, string][]).map(([name, end]) => {
      const [streamId = '', run] = name.split(' ')
      const [, reason, urls] = /^\S* (\S+) (.*)$/.exec(end) ?? []
      const webhookUrls = urls === '' ? undefined : (JSON.parse(urls!) as readonly string[])
      return { streamId, run: Number(run), reason: reason as StopReason, webhookUrls }
    })
  }

  /**
   * Announces the end of a run, which the registry has stopped.
   *
   * @param event  undefined: the stream has no webhooks
   * @returns whether the event is in the outbox of the node now; otherwise another one has announced the end, or will
   */
  async announce({ streamId, run }: RunName, node: string, event?: OutboxEvent): Promise<boolean> {
    const args = [streamId, run, node, event?.id ?? '', event?.text ?? '']
    return (await runScript(this.#redis, 'announce', args)) === 1
  }
}
